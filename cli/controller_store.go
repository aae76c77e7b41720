package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"headgate/store"
	"headgate/store/etcd"
)

// startTimeout is how long a starting controller waits for a quorum of the store's members.
const startTimeout = 2 * time.Minute

// member returns this controller's member of the store.
func (r controllerOptions) member() etcd.Member {
	m := etcd.Member{Name: r.name, Peers: map[string]string{}, Dir: filepath.Join(r.dir, "store"), ClientPort: int(r.controllers.Store), PeerPort: int(r.controllers.Peers)}
	for _, p := range r.controllers.Members {
		m.Peers[p.Name] = p.Address
		if isUnspecified(p.Address) { // allowed only for a single controller
			m.Peers[p.Name] = "127.0.0.1"
		}
	}
	return m
}

// openStore opens the store, and runs it unless it is an external etcd.
func (r controllerOptions) openStore(ctx context.Context) (s *store.Store, closeStore func(), err error) {
	if r.etcd.configured() {
		if s, err = r.etcd.open(ctx, startTimeout); err != nil {
			return nil, nil, err
		}
		if err := r.checkPosition(ctx, s); err != nil {
			s.Close()
			return nil, nil, err
		}
		return s, func() { s.Close() }, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	m := r.member()
	if len(m.Peers) > 1 && !m.Prepared() {
		return nil, nil, r.withPrepareRemedy(fmt.Errorf("%s: %w", r.dir, etcd.ErrNoAuthority))
	}
	if err := m.Prepare(); err != nil {
		return nil, nil, err
	}
	child := make(chan error, 1)
	end, cancel := context.WithCancel(context.Background()) // the store outlives the controller's ctx
	go func() { child <- m.Run(end, []string{self, "controller", "store"}) }()
	stop := func() { cancel(); <-child }
	tls, err := m.TLS()
	if err == nil {
		starting, started := context.WithTimeout(ctx, startTimeout)
		s, err = store.Open(starting, store.Endpoint{URLs: []string{m.URL()}, TLS: tls})
		started()
	}
	if err != nil {
		stop()
		return nil, nil, err
	}
	if err := startNewEpoch(ctx, s, m); err != nil {
		s.Close()
		stop()
		return nil, nil, err
	}
	return s, func() { s.Close(); stop() }, nil
}

// freeSpaceFunc returns a function that reports the free space on the disk of the store; nil for an external etcd.
func (r controllerOptions) freeSpaceFunc() func() (uint64, error) {
	if r.etcd.configured() {
		return nil
	}
	return func() (uint64, error) { return freeSpace(r.dir) }
}

// freeSpace returns the free bytes on a directory's file system.
func freeSpace(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil
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
