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

	"headgate.dev/headgate/probe"
)

// Two servers that measure to each other, each for a client, both hold their own turn and
// wait for the other's. To avoid a deadlock, a server waits only PeerQueueTimeout for the
// peer's turn, then releases its own and retries after a random pause.
const (
	// maxBusyRetry bounds the retries.
	maxBusyRetry = 2 * time.Minute
	// minRetryPause and maxRetryPause bound the pause between retries. It is long compared with
	// the time that a try holds its own turn, so that the two servers rarely collide
	// again.
	minRetryPause, maxRetryPause = 100 * time.Millisecond, 2 * time.Second
)

// PeerQueueTimeout is how long a server that holds its own turn waits for a turn at the peer.
const PeerQueueTimeout = firstWaitDelay

// heartbeat is the interval of the progress messages to the client.
const heartbeat = time.Second

// measureFor measures the path to a peer for a client.
func (s *Server) measureFor(ctx context.Context, conn *tls.Conn, l *lines, asked *measure, log *slog.Logger) {
	peer, err := s.allowed(asked.Peer)
	if err != nil {
		log.Info("measurement to peer rejected", "error", err)
		conn.SetWriteDeadline(time.Now().Add(handshakeTimeout))
		l.write(message{Refused: err.Error()})
		return
	}
	log = log.With("peer", peer)
	// The client sends nothing until the result: a byte, or the end of its connection,
	// cancels the measurement.
	ctx, stop := watch(ctx, conn, l)
	defer stop()
	log.Info("measurement to peer started")
	for begun := time.Now(); ; {
		release, err := s.wait(ctx, conn, l)
		if err != nil {
			log.Info("client left the queue", "error", err)
			return
		}
		result, err := s.attempt(ctx, conn, l, peer, asked.Request)
		release()
		if errors.Is(err, ErrBusy) && time.Since(begun) < maxBusyRetry {
			if s.pause(ctx, conn, l) != nil {
				return
			}
			continue
		}
		out := measured{Result: result}
		if err != nil {
			out.Failed = err.Error()
		}
		log.Info("measurement to peer finished", "failed", out.Failed)
		conn.SetWriteDeadline(time.Now().Add(handshakeTimeout))
		l.write(message{Measured: &out})
		return
	}
}

// allowed parses a client's peer, and returns an error if the server may not measure to
// it.
func (s *Server) allowed(text string) (probe.Address, error) {
	if s.Measure == nil || len(s.Peers) == 0 {
		return probe.Address{}, errors.New("server has no peers: start it with --peer for each server that it may measure to")
	}
	peer, err := probe.ParseAddress(text)
	if err != nil {
		return peer, err
	}
	if !slices.Contains(s.Peers, peer) {
		return peer, fmt.Errorf("%s is not a peer of this server: start the server with --peer %[1]s, spelled the same", peer)
	}
	return peer, nil
}

// attempt measures once, while this server holds its own turn.
func (s *Server) attempt(ctx context.Context, conn *tls.Conn, l *lines, peer probe.Address, request json.RawMessage) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Caps.Time, fmt.Errorf("measurement exceeded the time cap of the server: %v", s.Caps.Time))
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
		conn.SetWriteDeadline(time.Now().Add(handshakeTimeout))
		if l.write(message{Progress: p}) != nil {
			cancel() // the client has disconnected
		}
	}
}

// pause waits between two tries.
func (s *Server) pause(ctx context.Context, conn *tls.Conn, l *lines) error {
	conn.SetWriteDeadline(time.Now().Add(handshakeTimeout))
	if err := l.write(message{Progress: &progress{"peer is busy, retrying"}}); err != nil {
		return err
	}
	select {
	case <-time.After(minRetryPause + rand.N(maxRetryPause-minRetryPause)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
