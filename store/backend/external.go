package backend

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"headgate.dev/headgate/internal/wholefile"
	"headgate.dev/headgate/store"
)

// External is an external etcd, which the controller does not run itself.
type External struct {
	store.Endpoint
	// Dir is the data directory of the controller, which has the last seen position of the etcd.
	Dir string
}

// Open connects to the etcd, and retries for a while. It returns ErrBackwards if the etcd is at an
// earlier position than before.
func (e External) Open(ctx context.Context) (*store.Store, error) {
	s, err := e.connect(ctx, startTimeout)
	if err != nil {
		return nil, err
	}
	if err := e.checkPosition(ctx, s); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// connect connects to the etcd, and retries until the timeout. It logs the cause of a failure at once,
// before it retries.
func (e External) connect(ctx context.Context, timeout time.Duration) (*store.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	problem := e.probeMembers(ctx)
	if problem != nil {
		slog.Warn("cannot connect to etcd, retrying", "error", problem)
	}
	s, err := store.Open(ctx, e.Endpoint)
	if err != nil && problem != nil {
		err = fmt.Errorf("%w: %w", err, problem)
	}
	return s, err
}

// probeMembers tries to connect to each member, and returns why none is reachable; nil if one is. It exists
// because etcd's client reports only a timeout.
func (e External) probeMembers(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	for _, text := range e.URLs {
		u, wrong := url.Parse(text)
		if wrong != nil {
			return wrong
		}
		var conn net.Conn
		if e.TLS == nil {
			conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
		} else {
			h2 := e.TLS.Clone()
			h2.NextProtos = []string{"h2"}
			conn, err = (&tls.Dialer{Config: h2}).DialContext(ctx, "tcp", u.Host)
		}
		if err != nil {
			continue
		}
		// A server rejects the client certificate only after the handshake, so read from the connection.
		conn.SetReadDeadline(time.Now().Add(reachTimeout / 10))
		_, err = conn.Read(make([]byte, 1))
		conn.Close()
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
	}
	return err
}

// reachTimeout is the timeout of probeMembers for all members together.
const reachTimeout = 3 * time.Second

// ErrNoService means that an etcd has no data of a service.
var ErrNoService = errors.New("no data of a service")

// Restored starts a new epoch in an external etcd that its own tools restored, so that hosts accept its
// state. It returns the epoch, and ErrNoService if there is no state.
func (e External) Restored(ctx context.Context) (epoch uint64, err error) {
	s, err := e.connect(ctx, openTimeout)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	docs, _, _, err := s.List(ctx, store.Prefix(store.Service), "", 1)
	if err != nil {
		return 0, err
	}
	if len(docs) == 0 {
		return 0, ErrNoService
	}
	if err := s.Restored(ctx, rand.Text(), false); err != nil {
		return 0, err
	}
	p, err := s.Position(ctx)
	return p.Epoch, err
}

const positionFile = "etcd-position.json"

// PositionInterval is the interval at which a controller checks and stores the position of an external
// etcd.
const PositionInterval = 2 * time.Second

// ErrBackwards means that the revision or epoch of the external etcd is lower than before.
var ErrBackwards = errors.New("etcd revision went backwards")

// checkPosition compares the etcd's position with the last one stored in the data directory, and stores the
// new one. An etcd whose position went backwards was restored, or is another one: hosts have seen later
// revisions and would reject its state, and the state that controllers have read is stale.
func (e External) checkPosition(ctx context.Context, s *store.Store) error {
	file := filepath.Join(e.Dir, positionFile)
	var before store.Position
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &before)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot read the last etcd position from %s: %w", file, err)
	}
	now, err := s.Position(ctx)
	if err != nil {
		return err
	}
	if now.Before(before) {
		return fmt.Errorf("%w from %d (epoch %d) to %d (epoch %d)", ErrBackwards, before.Revision, before.Epoch, now.Revision, now.Epoch)
	}
	if now == before {
		return nil
	}
	if text, err = json.Marshal(now); err != nil {
		return err
	}
	return wholefile.Write(file, text, 0o600)
}

// WatchPosition checks the etcd's position until ctx ends. It returns ErrBackwards when the position
// went backwards.
func (e External) WatchPosition(ctx context.Context, s *store.Store) error {
	tick := time.NewTicker(PositionInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := e.checkPosition(ctx, s)
		switch {
		case errors.Is(err, ErrBackwards):
			return err
		case err != nil && ctx.Err() == nil:
			slog.Warn("cannot store etcd position", "error", err)
		}
	}
}
