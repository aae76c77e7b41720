package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/agent"
	"headgate.dev/headgate/config"
	"headgate.dev/headgate/controller"
	"headgate.dev/headgate/metrics"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/store/backend"
	"headgate.dev/headgate/store/etcd"
)

const controllerDir = "/var/lib/headgate/controller"

// controllerOptions has the options of "headgate controller".
type controllerOptions struct {
	dir, name   string
	listen      string
	files       *[]string
	hosts       []string
	metrics     string
	level       slog.Level
	controllers config.Controllers
	etcd        externalEtcd
}

func controllerCommand(a *app) *cobra.Command {
	var r controllerOptions
	c := &cobra.Command{
		Use:   "controller",
		Short: "Run the controller: the HTTPS API, and the service for agents",
		Long: `Controller serves the API over HTTPS, and the agents of hosts over mutual TLS. It stores
the desired state of operators and tenants in an etcd that it runs itself, in --data.

At its first start it creates a certificate authority and the first operator token, and
prints the token's file and expiry. At any later start at which no operator token is valid
it creates another one. It listens on loopback unless --listen is set. With --listen
0.0.0.0 or :: it listens on all addresses of the machine, and announces the names of
--certificate-for to agents.

With -f and a document of kind: Controllers it is one of several controllers, which find
each other by that file. Each needs a data directory made by "headgate controller
prepare".

With --etcd it stores everything in an existing etcd, which other programs may use too.
Several controllers then need -f as well, but no prepared data directories.`,
		Example: `  headgate controller --data ./controller
  headgate controller --listen 10.0.0.1
  headgate controller --listen :: --certificate-for headgate.example.org
  headgate controller -f controllers.yaml --name c1
  headgate controller --etcd https://10.0.0.5:2379 --etcd-ca ca.pem --etcd-cert headgate.pem --etcd-key headgate.key --etcd-prefix /prod`,
		Args: cobra.NoArgs,
	}
	r.flags(c)
	c.Flags().StringVar(&r.listen, "listen", "127.0.0.1", "the `ADDRESS` to listen on, for API clients and agents")
	c.Flags().StringSliceVar(&r.hosts, "certificate-for", nil, "additional `NAMES` and addresses of the controller, for its certificate")
	c.Flags().StringVar(&r.metrics, "metrics", "", "serve metrics for Prometheus at this `ADDRESS`, such as 127.0.0.1:9421, under /metrics")
	level := logLevel(slog.LevelInfo)
	c.Flags().Var(&level, "log-level", "minimum level of log messages")
	completeFlag(c, "log-level", oneOf("debug", "info", "warn", "error"))
	c.RunE = func(c *cobra.Command, _ []string) error {
		r.level = slog.Level(level)
		if err := r.read(a, c); err != nil {
			return err
		}
		if err := r.checkNames(); err != nil {
			return usageError{err, c.CommandPath()}
		}
		spareMemory()
		return a.controller(r)
	}
	c.AddCommand(controllerPrepareCommand(a), controllerBackupCommand(a), controllerRestoreCommand(a), controllerReplaceCommand(a), controllerStoreCommand())
	return c
}

// flags adds the flags that select a controller and its data directory.
func (r *controllerOptions) flags(c *cobra.Command) {
	c.Flags().StringVar(&r.dir, "data", controllerDir, "the data `DIR`")
	c.Flags().StringVar(&r.name, "name", "c1", "the name of this controller in the file of -f")
	r.files = fileFlag(c)
	r.etcd.flags(c)
}

// read validates the flags and reads the list of controllers.
func (r *controllerOptions) read(a *app, c *cobra.Command) error {
	if err := r.etcd.check(); err != nil {
		return usageError{err, c.CommandPath()}
	}
	r.controllers = config.Controllers{
		Members: []config.Member{{Name: r.name, Address: r.listen}},
		API:     config.APIPort, Agents: config.AgentsPort, Store: config.StorePort, Peers: config.PeersPort,
	}
	if len(*r.files) == 0 {
		if err := r.checkAddresses(); err != nil {
			return usageError{fmt.Errorf("--listen: %w", err), c.CommandPath()}
		}
		return nil
	}
	set, err := read(*r.files, a.in)
	if err != nil {
		return err
	}
	if len(set.Controllers) != 1 {
		return config.Errors{{File: (*r.files)[0], Message: "must have exactly one document of kind: Controllers"}}
	}
	r.controllers = set.Controllers[0]
	if err := r.checkAddresses(); err != nil {
		return r.configError(err)
	}
	for _, m := range r.controllers.Members {
		if m.Name == r.name {
			r.listen = m.Address
			return nil
		}
	}
	return usageError{fmt.Errorf("--name %s is not a controller in %s", r.name, r.controllers.File), c.CommandPath()}
}

func (a *app) controller(r controllerOptions) (err error) {
	ctx, stop := interrupted()
	defer stop()
	slog.SetDefault(slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: r.level, ReplaceAttr: dropTimeInJournal})))
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	var listener net.Listener
	if r.metrics != "" {
		if listener, err = metrics.Listen(r.metrics); err != nil {
			return err
		}
		defer listener.Close()
	}
	s, closeStore, err := r.openStore(ctx)
	if err != nil {
		return err
	}
	defer closeStore()
	c, err := controller.New(ctx, s, controller.Config{
		Name: r.name, Hosts: r.certificateNames(), AgentAddresses: r.agentAddresses(), Peers: r.peerAddresses(), Version: version,
		API:       net.JoinHostPort(r.listen, portText(r.controllers.API)),
		Agents:    net.JoinHostPort(r.listen, portText(r.controllers.Agents)),
		FreeSpace: r.freeSpace(), Metrics: listener, BucketSize: tuneBurst,
	})
	if err != nil {
		return err
	}
	if err := a.firstToken(ctx, s, r, c.CertificatePin()); err != nil {
		return err
	}
	api, agents := c.Addresses()
	a.note("serving https://%s, agents at %s; certificate pin %s", api, agents, c.CertificatePin())
	notify, _ := agent.Notifier()
	notify(fmt.Sprintf("READY=1\nSTATUS=serving https://%s, agents at %s", api, agents))
	defer notify("STOPPING=1")
	if !r.etcd.configured() {
		return c.Run(ctx)
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go r.etcd.watchPosition(ctx, s, r.dir, end)
	if err := c.Run(ctx); err != nil {
		return err
	}
	if err := context.Cause(ctx); errors.Is(err, backend.ErrBackwards) {
		return err
	}
	return nil
}

// member returns this controller's member of the store.
func (r controllerOptions) member() etcd.Member {
	return backend.Member(r.dir, r.name, r.controllers)
}

// openStore opens the store, and runs it unless it is an external etcd.
func (r controllerOptions) openStore(ctx context.Context) (*store.Store, func(), error) {
	if r.etcd.configured() {
		s, err := r.etcd.open(ctx, r.dir)
		if err != nil {
			return nil, nil, err
		}
		return s, func() { s.Close() }, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	s, closeStore, err := backend.Run(ctx, r.member(), []string{self, "controller", "store"})
	if errors.Is(err, etcd.ErrNoAuthority) {
		err = r.withPrepareRemedy(fmt.Errorf("%s: %w", r.dir, err))
	}
	return s, closeStore, err
}

// freeSpace returns a function that reports the free space on the disk of the store; nil for an external etcd.
func (r controllerOptions) freeSpace() func() (uint64, error) {
	if r.etcd.configured() {
		return nil
	}
	return func() (uint64, error) { return backend.FreeSpace(r.dir) }
}

// controllerStoreCommand is the command of the child process that runs the controller's own etcd.
func controllerStoreCommand() *cobra.Command {
	return &cobra.Command{
		Use: "store FILE", Short: "Run the controller's store", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			spareMemory()
			return etcd.RunChild(args[0])
		},
	}
}

func controllerPrepareCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "prepare -f FILE",
		Short: "Create the data directories of several controllers, with their certificates",
		Long: `Prepare creates a data directory for each controller of a file, with the store's
certificate authority and certificates. Copy each directory to its machine, and start the
controller there with --data.`,
		Example: `  headgate controller prepare -f controllers.yaml --to ./folders`,
		Args:    cobra.NoArgs,
	}
	files := fileFlag(c)
	to := c.Flags().String("to", "", "create the data directories in this `DIR`")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *to == "" || len(*files) == 0 {
			return usageError{errors.New("-f or --to is missing: set -f to a file and --to to a directory"), c.CommandPath()}
		}
		r := controllerOptions{files: files}
		set, err := read(*files, a.in)
		if err != nil {
			return err
		}
		if len(set.Controllers) != 1 {
			return config.Errors{{File: (*files)[0], Message: "must have exactly one document of kind: Controllers"}}
		}
		r.controllers = set.Controllers[0]
		if err := r.checkAddresses(); err != nil {
			return r.configError(err)
		}
		var first etcd.Member
		for i, m := range r.controllers.Members {
			r.name, r.dir = m.Name, filepath.Join(*to, m.Name)
			member := r.member()
			if i == 0 {
				first = member
			} else if err := first.Copy(member.Dir); err != nil {
				return err
			}
			if err := member.Prepare(); err != nil {
				return err
			}
			a.note("%s: copy it to %s and start \"headgate controller -f %s --name %s --data DIR\" there", r.dir, m.Address, strings.Join(*files, " -f "), m.Name)
		}
		return nil
	}
	return c
}
