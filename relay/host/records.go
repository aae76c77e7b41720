package host

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/relay/stripe"
)

const (
	// maxRecords is how many connections that have ended are kept for queries.
	maxRecords = 1000
	// maxUnlogged is how many records wait to be logged; further ones are only kept.
	maxUnlogged = 10_000
)

// records are the connections that have ended.
type records struct {
	log *slog.Logger

	mu   sync.Mutex
	last []ConnectionStatus // the oldest first
	sum  TotalStatus
	// unlogged are logged by a goroutine, because a log may block; logging is nil while there is none.
	unlogged []ConnectionStatus
	logging  chan struct{}
}

// add keeps and logs a record. It does not block.
func (r *records) add(c ConnectionStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.last) == 2*maxRecords {
		r.last = slices.Delete(r.last, 0, maxRecords)
	}
	r.last = append(r.last, c)
	r.sum.Ended++
	if c.State == Failed {
		r.sum.Failed++
	}
	r.sum.Sent += c.Sent
	r.sum.Received += c.Received
	if len(r.unlogged) < maxUnlogged {
		r.unlogged = append(r.unlogged, c)
	}
	if r.logging == nil {
		r.logging = make(chan struct{})
		go r.write()
	}
}

// write logs records until none is left.
func (r *records) write() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.unlogged) > 0 {
		all := r.unlogged
		r.unlogged = nil
		r.mu.Unlock()
		for _, c := range all {
			logRecord(r.log, c)
		}
		r.mu.Lock()
	}
	close(r.logging)
	r.logging = nil
}

// flush waits until all records are logged.
func (r *records) flush() {
	r.mu.Lock()
	logging := r.logging
	r.mu.Unlock()
	if logging != nil {
		<-logging
	}
}

func (r *records) total() TotalStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sum
}

// all returns the last maxRecords records, the oldest first.
func (r *records) all() []ConnectionStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Concat([]ConnectionStatus{}, r.last[max(len(r.last)-maxRecords, 0):])
}

func logRecord(log *slog.Logger, c ConnectionStatus) {
	attrs := []any{"client", c.Client, "destination", c.Destination}
	if c.Exit != "" {
		attrs = append(attrs, "exit", c.Exit)
	}
	if c.Entry != "" {
		attrs = append(attrs, "entry", c.Entry)
	}
	attrs = append(attrs, "sent_bytes", c.Sent, "received_bytes", c.Received, "duration", c.Age.Round(time.Microsecond))
	var paths []any
	for _, p := range c.Paths {
		paths = append(paths, slog.Group(p.Path, "sent_bytes", p.Sent, "received_bytes", p.Received))
	}
	attrs = append(attrs, slog.Group("paths", paths...))
	if c.DirectRate > 0 {
		attrs = append(attrs, "direct_rate_bps", c.DirectRate, "gain", c.Gain)
	}
	if c.Error != "" {
		attrs = append(attrs, "error", c.Error)
	}
	log.Info("connection ended", attrs...)
}

// describe keeps where a connection comes from and goes to. l.mu must be held.
func (l *Link) describe(k *conn, description []byte) {
	k.began = time.Now()
	k.beginDirect()
	_ = json.Unmarshal(description, &k.about) // a malformed one was refused by dial
}

// finish makes the record of a connection that has ended. link.mu must be held.
func (k *conn) finish() {
	if k.finished || k.link.observed.ended == nil {
		return
	}
	k.finished = true
	if k.c.Info().Sent >= minDirectBytes {
		k.link.readDirect()
	}
	c := k.status(time.Now())
	c.State, c.SendRate, c.ReceiveRate = "ended", 0, 0
	if k.err != nil {
		c.State, c.Error = Failed, k.err.Error()
	}
	if errors.Is(k.err, net.ErrClosed) {
		c.Error = "the session with the other agent ended"
	}
	k.link.observed.ended(c)
}

// refused makes the record of a connection whose destination could not be connected to. l.mu must be held.
func (l *Link) refused(description []byte, err error) {
	k := &conn{link: l, err: err}
	l.describe(k, description)
	if l.observed.ended != nil {
		l.observed.ended(ConnectionStatus{Client: k.about.From, Destination: k.about.To, Entry: l.observed.entry, State: Failed, Began: k.began.UTC(), Paths: []stripe.PathBytes{}, Error: err.Error()})
	}
}
