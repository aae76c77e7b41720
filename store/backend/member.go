package backend

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/store/etcd"
)

// Values chosen for Headgate.
const (
	// startTimeout is how long a starting controller waits for a quorum of the store's members.
	startTimeout = 2 * time.Minute
	// openTimeout is the timeout of connecting to a running store.
	openTimeout = 10 * time.Second
)

// Member returns the member of the store that a controller runs in its data directory.
func Member(dir, name string, c config.Controllers) etcd.Member {
	m := etcd.Member{Name: name, Peers: map[string]string{}, Dir: memberDir(dir), ClientPort: int(c.Store), PeerPort: int(c.Peers)}
	for _, p := range c.Members {
		m.Peers[p.Name] = p.Address
		if p.Unspecified() { // allowed only for a single controller
			m.Peers[p.Name] = "127.0.0.1"
		}
	}
	return m
}

func memberDir(dir string) string { return filepath.Join(dir, "store") }

// Run runs a member as a child process and opens the store. command is what etcd.Member.Run runs. The
// returned function closes the store and stops the member. The error is etcd.ErrNoAuthority if the
// member is one of several and its directory is not prepared.
func Run(ctx context.Context, m etcd.Member, command []string) (s *store.Store, closeStore func(), err error) {
	if len(m.Peers) > 1 && !m.Prepared() {
		return nil, nil, etcd.ErrNoAuthority
	}
	if err := m.Prepare(); err != nil {
		return nil, nil, err
	}
	if err := m.CheckData(); err != nil {
		return nil, nil, err
	}
	child := make(chan error, 1)
	end, cancel := context.WithCancel(context.Background()) // the store outlives the controller's ctx
	starting, stopStarting := context.WithCancelCause(ctx)
	defer stopStarting(nil)
	go func() {
		err := m.Run(end, command)
		if err != nil {
			stopStarting(err)
		}
		child <- err
	}()
	stop := func() { cancel(); <-child }
	tls, err := m.TLS()
	if err == nil {
		opening, opened := context.WithTimeout(starting, startTimeout)
		s, err = store.Open(opening, store.Endpoint{URLs: []string{m.URL()}, TLS: tls})
		opened()
	}
	if why := context.Cause(starting); err != nil && errors.Is(why, etcd.ErrNoStart) {
		err = fmt.Errorf("%w: if the data in %s is damaged, move it away and restore a backup with \"headgate controller restore\"", why, m.DataDir())
	}
	if err != nil {
		stop()
		return nil, nil, err
	}
	if err := s.Verify(ctx); err != nil {
		s.Close()
		stop()
		if errors.Is(err, store.ErrDamaged) {
			err = fmt.Errorf("%w: move %s away and restore a backup with \"headgate controller restore\"; one of several controllers is replaced with \"headgate controller replace-member\"", err, m.DataDir())
		}
		return nil, nil, err
	}
	if err := m.MarkData(); err != nil {
		s.Close()
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

// startNewEpoch starts a new epoch in a store that was restored from a backup.
func startNewEpoch(ctx context.Context, s *store.Store, m etcd.Member) error {
	id, confirmed, done, err := m.PendingRestore()
	if err != nil || id == "" {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.Restored(ctx, id, confirmed); err != nil {
		return err
	}
	return done()
}

// Connect opens the store of a controller that is running in a data directory.
func Connect(ctx context.Context, dir string) (*store.Store, error) {
	m, err := etcd.Read(memberDir(dir))
	if err != nil {
		return nil, fmt.Errorf("%s is not a controller's data directory: %w", dir, err)
	}
	tls, err := m.TLS()
	if err != nil {
		return nil, fmt.Errorf("%s is not a controller's data directory: %w", dir, err)
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	return store.Open(ctx, store.Endpoint{URLs: []string{m.URL()}, TLS: tls})
}

// ReplaceMember removes another member from the store, and creates the data directory of its
// replacement, which has the same name and address. m is a member that is running.
func ReplaceMember(ctx context.Context, m etcd.Member, name, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	return m.Replace(ctx, name, memberDir(dir))
}

// FreeSpace returns the free bytes on the file system of a directory.
func FreeSpace(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil
}
