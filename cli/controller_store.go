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

// startPatience is for how long a controller waits for most of the others.
const startPatience = 2 * time.Minute

// member is this controller's part of the store.
func (r controllerRun) member() etcd.Member {
	m := etcd.Member{Name: r.name, Peers: map[string]string{}, Dir: filepath.Join(r.dir, "store"), ClientPort: int(r.controllers.Store), PeerPort: int(r.controllers.Peers)}
	for _, p := range r.controllers.Members {
		m.Peers[p.Name] = p.Address
		if everywhere(p.Address) { // it is the only one
			m.Peers[p.Name] = "127.0.0.1"
		}
	}
	return m
}

// begin opens the store, and runs it if it is the controller's own.
func (r controllerRun) begin(ctx context.Context) (s *store.Store, closeStore func(), err error) {
	if r.etcd.asked() {
		if s, err = r.etcd.open(ctx, startPatience); err != nil {
			return nil, nil, err
		}
		if err := r.advance(ctx, s); err != nil {
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
		return nil, nil, r.unprepared(fmt.Errorf("%s: %w", r.dir, etcd.ErrUnprepared))
	}
	if err := m.Prepare(); err != nil {
		return nil, nil, err
	}
	child := make(chan error, 1)
	end, cancel := context.WithCancel(context.Background()) // after the controller
	go func() { child <- m.Run(end, []string{self, "controller", "store"}) }()
	stop := func() { cancel(); <-child }
	tls, err := m.TLS()
	if err == nil {
		starting, started := context.WithTimeout(ctx, startPatience)
		s, err = store.Open(starting, store.Endpoint{URLs: []string{m.URL()}, TLS: tls})
		started()
	}
	if err != nil {
		stop()
		return nil, nil, err
	}
	if err := restored(ctx, s, m); err != nil {
		s.Close()
		stop()
		return nil, nil, err
	}
	return s, func() { s.Close(); stop() }, nil
}

// room tells what is free on the disk of its own store; another's is no concern of this machine's.
func (r controllerRun) room() func() (uint64, error) {
	if r.etcd.asked() {
		return nil
	}
	return func() (uint64, error) { return room(r.dir) }
}

// room is how much is free on a folder's disk.
func room(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil
}

// controllerStoreCommand is the child that a controller runs for the store.
func controllerStoreCommand() *cobra.Command {
	return &cobra.Command{
		Use: "store FILE", Short: "The store's part of a controller", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			spareMemory()
			return etcd.Child(args[0])
		},
	}
}
