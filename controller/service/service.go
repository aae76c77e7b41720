package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/controller"
	"headgate.dev/headgate/internal/sdnotify"
	"headgate.dev/headgate/metrics"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/store/backend"
	"headgate.dev/headgate/store/etcd"
	"headgate.dev/headgate/unit"
)

// Options are what the controller needs of its user and of the program.
type Options struct {
	// Dir is the data directory.
	Dir string
	// Name is the controller's name among the Controllers, and Listen the address to listen on.
	Name        string
	Listen      string
	Controllers config.Controllers
	// Hosts are additional names and addresses of the controller.
	Hosts []string
	// Advertise are the names and addresses, with a port or without, at which agents reach a single controller; nil means Listen, or Hosts.
	Advertise []string
	// External is an external etcd; nil for one that the controller runs, as a child process with the command
	// StoreCommand, which calls etcd.RunChild.
	External     *store.Endpoint
	StoreCommand []string
	// OpenFlow is the address at which switches connect; "" disables it.
	OpenFlow string
	// Scheme is how unused reserved bandwidth is lent, by its name in cycle.SchemeNamed.
	Scheme string
	// Cycle is how often limits follow what reservations use; 0 is the default.
	Cycle time.Duration
	// Metrics is the address at which metrics are served; "" disables them.
	Metrics string
	// Version is the version that clients see.
	Version string
	// BucketSize returns the bucket size with which a limit is enforced; nil means unknown.
	BucketSize func(limit unit.Rate) unit.Bytes
	// OnToken is called with the first operator token, and OnReady when the controller serves.
	OnToken func(NewToken)
	OnReady func(api, agents, pin string)
}

// NewToken is an operator token that was created because none was valid.
type NewToken struct {
	store.Token
	File string // with the secret
	URL  string // of the controller's API
	Pin  string // of the service's certificate
}

// Member returns this controller's member of the store.
func (o Options) Member() etcd.Member { return backend.Member(o.Dir, o.Name, o.Controllers) }

// Run runs the controller until ctx ends. It logs to slog.Default. The error is etcd.ErrNoAuthority if the data
// directory of one of several controllers is not prepared, backend.ErrInUse if another process runs with the
// directory, and backend.ErrBackwards if an external etcd is at an earlier position than before.
func Run(ctx context.Context, o Options) (err error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return err
	}
	dir, err := backend.LockDirectory(o.Dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := waitForRoom(ctx, o.Dir); err != nil {
		return err
	}
	var listener net.Listener
	if o.Metrics != "" {
		if listener, err = metrics.Listen(o.Metrics); err != nil {
			return err
		}
		defer listener.Close()
	}
	s, closeStore, err := o.openStore(ctx)
	if err != nil {
		return err
	}
	defer closeStore()
	c, err := controller.New(ctx, s, controller.Config{
		Name: o.Name, Hosts: o.certificateNames(), AgentAddresses: o.agentAddresses(), Peers: o.peerAddresses(), Version: o.Version,
		API:      net.JoinHostPort(o.Listen, portText(o.Controllers.API)),
		Agents:   net.JoinHostPort(o.Listen, portText(o.Controllers.Agents)),
		OpenFlow: o.OpenFlow, Scheme: o.Scheme, Cycle: o.Cycle, FreeSpace: o.freeSpace(), Metrics: listener, BucketSize: o.BucketSize, Leases: dir,
	})
	if err != nil {
		return err
	}
	if err := o.firstToken(ctx, s, c.CertificatePin()); err != nil {
		return err
	}
	// A token that was made by a wrong clock may have expired by the right one.
	go watchClock(ctx, func() {
		if err := o.firstToken(ctx, s, c.CertificatePin()); err != nil {
			slog.Warn("cannot create an operator token", "error", err)
		}
	})
	api, agents := c.Addresses()
	o.OnReady(api, agents, c.CertificatePin())
	notify, _ := sdnotify.New()
	notify(fmt.Sprintf("READY=1\nSTATUS=serving https://%s, agents at %s", api, agents))
	defer notify("STOPPING=1")
	if o.External == nil {
		return c.Run(ctx)
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() { end(backend.External{Dir: o.Dir}.WatchPosition(ctx, s)) }()
	if err := c.Run(ctx); err != nil {
		return err
	}
	if err := context.Cause(ctx); errors.Is(err, backend.ErrBackwards) {
		return err
	}
	return nil
}

// openStore opens the store, and runs it unless it is an external etcd.
func (o Options) openStore(ctx context.Context) (*store.Store, func(), error) {
	if o.External != nil {
		s, err := backend.External{Endpoint: *o.External, Dir: o.Dir}.Open(ctx)
		if err != nil {
			return nil, nil, err
		}
		return s, func() { s.Close() }, nil
	}
	return backend.Run(ctx, o.Member(), o.StoreCommand)
}

// freeSpace returns a function that reports the free space on the disk of the store; nil for an external etcd.
func (o Options) freeSpace() func() (uint64, error) {
	if o.External != nil {
		return nil
	}
	return func() (uint64, error) { return backend.FreeSpace(o.Dir) }
}

// firstToken creates an operator token if none is valid, and passes it on.
func (o Options) firstToken(ctx context.Context, s *store.Store, pin string) error {
	file := filepath.Join(o.Dir, "operator.token")
	t, made, err := controller.EnsureOperatorTokenFile(ctx, s, file)
	if err != nil || !made {
		return err
	}
	o.OnToken(NewToken{t, file, "https://" + net.JoinHostPort(o.at(o.self())[0], portText(o.Controllers.API)), pin})
	return nil
}
