package session

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"headgate/probe"
)

// Two servers that each measure to the other, for two clients, each have a turn of
// their own and wait for the other's. So nobody waits for long: who does not get the
// other's gives its own back, and tries again after a while that is never the same.
const (
	// busyFor is how long that goes on.
	busyFor = 2 * time.Minute
	// leastPause and mostPause are between two tries. They are long beside the time
	// for which a try holds its own turn, so that two seldom meet again.
	leastPause, mostPause = 100 * time.Millisecond, 2 * time.Second
)

// TurnPatience is how long a server that holds its own turn waits for a peer's.
const TurnPatience = firstWord

// heartbeat is how often a client that has asked is told that it goes on.
const heartbeat = time.Second

// measureFor measures the path to a peer for a client.
func (s *Server) measureFor(ctx context.Context, conn *tls.Conn, l *lines, asked *measure, log *slog.Logger) {
	peer, err := s.allowed(asked.Peer)
	if err != nil {
		log.Info("a client may not measure to a peer", "error", err)
		conn.SetWriteDeadline(time.Now().Add(patience))
		l.write(message{Refused: err.Error()})
		return
	}
	log = log.With("peer", peer)
	// It has nothing more to say: a word, or its end, ends what is done for it.
	ctx, stop := watch(ctx, conn, l)
	defer stop()
	log.Info("a client measures to a peer")
	for begun := time.Now(); ; {
		release, err := s.wait(ctx, conn, l)
		if err != nil {
			log.Info("a client did not wait", "error", err)
			return
		}
		result, err := s.attempt(ctx, conn, l, peer, asked.Request)
		release()
		if errors.Is(err, ErrBusy) && time.Since(begun) < busyFor {
			if s.pause(ctx, conn, l) != nil {
				return
			}
			continue
		}
		out := measured{Result: result}
		if err != nil {
			out.Failed = err.Error()
		}
		log.Info("a client has measured to a peer", "failed", out.Failed)
		conn.SetWriteDeadline(time.Now().Add(patience))
		l.write(message{Measured: &out})
		return
	}
}

// allowed is the peer that a client means, if this server measures to it.
func (s *Server) allowed(text string) (probe.Address, error) {
	if s.Measure == nil || len(s.Peers) == 0 {
		return probe.Address{}, errors.New("this server measures to no other: start it with --peer and each that it may")
	}
	peer, err := probe.ParseAddress(text)
	if err != nil {
		return peer, err
	}
	if !slices.Contains(s.Peers, peer) {
		return peer, fmt.Errorf("this server does not measure to %s: start it with --peer %[1]s as well, and in the same words", peer)
	}
	return peer, nil
}

// attempt measures once, in this server's turn.
func (s *Server) attempt(ctx context.Context, conn *tls.Conn, l *lines, peer probe.Address, request json.RawMessage) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Caps.Time, fmt.Errorf("the %v that this server gives a client are over", s.Caps.Time))
	defer cancel()
	var said atomic.Pointer[string]
	var result json.RawMessage
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		result, err = s.Measure(ctx, peer, request, func(text string) { said.Store(&text) })
	}()
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return result, err
		case <-tick.C:
		}
		p := &progress{}
		if text := said.Swap(nil); text != nil {
			p.Text = *text
		}
		conn.SetWriteDeadline(time.Now().Add(patience))
		if l.write(message{Progress: p}) != nil {
			cancel() // nobody waits for the answer any more
		}
	}
}

// pause is between two tries.
func (s *Server) pause(ctx context.Context, conn *tls.Conn, l *lines) error {
	conn.SetWriteDeadline(time.Now().Add(patience))
	if err := l.write(message{Progress: &progress{"others measure at the peer"}}); err != nil {
		return err
	}
	select {
	case <-time.After(leastPause + rand.N(mostPause-leastPause)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
