package ovsdb

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"
)

const (
	// A Monitor reconnects after minBackoff, and after twice the time for each further failure, up to maxBackoff. These
	// are the defaults of Open vSwitch's clients (lib/reconnect.c, RECONNECT_DEFAULT_MIN_BACKOFF and _MAX_BACKOFF).
	minBackoff = 1 * time.Second
	maxBackoff = 8 * time.Second

	// startTimeout bounds connecting and the first reply. A server that answers echo requests and nothing else would
	// otherwise never be reported.
	startTimeout = 30 * time.Second

	// monitorID identifies the one monitor of a session.
	monitorID = "headgate"
)

// Monitor follows a database.
type Monitor struct {
	Address string      // as for Dial
	TLS     *tls.Config // as for Dial

	// Changed is called with the state after each connect, and whenever it has changed. Changes that arrive together
	// are one call. The Snapshot is not modified afterwards. Changed must return within seconds: while it runs, only a
	// few updates are read, and then no echo request of the server is answered, which ends the connection.
	Changed func(*Snapshot)

	// Disconnected is called with the reason when the connection has ended or could not be made. The last Snapshot
	// may be outdated from then on, until Changed is called again. It may be nil.
	Disconnected func(error)

	dial func(context.Context) (net.Conn, error) // nil is connect; tests have others
}

// Run follows the database until ctx ends, and returns the error of ctx. Changed and Disconnected are called by the
// calling goroutine. After a failure of any kind it connects again, and reads the whole state.
func (m *Monitor) Run(ctx context.Context) error {
	for backoff := minBackoff; ; backoff = min(2*backoff, maxBackoff) {
		err := m.follow(ctx, func() { backoff = minBackoff })
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if m.Disconnected != nil {
			m.Disconnected(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(backoff):
		}
	}
}

// follow connects once, and follows the database until the connection or ctx ends. It calls connected when it has the
// state.
func (m *Monitor) follow(ctx context.Context, connected func()) error {
	start, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	dial := m.dial
	if dial == nil {
		dial = func(ctx context.Context) (net.Conn, error) { return connect(ctx, m.Address, m.TLS) }
	}
	conn, err := dial(start)
	if err != nil {
		return fmt.Errorf("cannot connect to the OVSDB server %s: %w", m.Address, err)
	}
	s := newSession(conn, m.Address, maxMessage, true)
	defer s.Close()
	requested, err := s.readSchema(start)
	if err != nil {
		return err
	}
	requests := map[string]any{}
	for table, columns := range requested {
		requests[table] = map[string]any{"columns": columns}
	}
	var initial json.RawMessage
	if err := s.Call(start, "monitor", &initial, database, monitorID, requests); err != nil {
		return err
	}
	t := tables{}
	if err := t.apply(initial, requested); err != nil {
		return s.name("monitor", err)
	}
	for {
		snapshot, err := t.snapshot()
		if err != nil {
			return s.name("monitor", err)
		}
		connected()
		m.Changed(snapshot)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case update, ok := <-s.updates:
			for waiting := len(s.updates); ; waiting-- {
				if !ok {
					return s.Err()
				}
				if err := t.update(update, requested); err != nil {
					return s.name("monitor", err)
				}
				if waiting == 0 {
					break
				}
				update, ok = <-s.updates
			}
		}
	}
}

// update applies an update notification (RFC 7047, section 4.1.6).
func (t tables) update(m message, requested schema) error {
	var params []json.RawMessage
	if m.Method != "update" {
		return nil // of an extension that was not asked for
	}
	if err := json.Unmarshal(m.Params, &params); err != nil || len(params) != 2 {
		return errors.New("the server sent an update of another form")
	}
	if string(params[0]) != `"`+monitorID+`"` {
		return fmt.Errorf("the server sent an update of the monitor %.40s, which was not requested", params[0])
	}
	return t.apply(params[1], requested)
}
