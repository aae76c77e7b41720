package service

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// watching is a set of watchers of changes.
type watching struct {
	each []watcher
	all  sync.WaitGroup
}

// watcher is one stream.
type watcher struct {
	at      string // its controller
	open    atomic.Bool
	changes atomic.Int64
	mu      sync.Mutex
	err     error // why it ended
}

// watch starts watchers, distributed over the controllers, until ctx ends.
func (p *place) watch(ctx context.Context, n int) *watching {
	w := &watching{each: make([]watcher, n)}
	for i := range w.each {
		c, one := p.controllers[i%len(p.controllers)], &w.each[i]
		one.at = c.name
		w.all.Go(func() { one.end(one.watch(ctx, p.ask(c))) })
	}
	return w
}

func (w *watcher) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	w.open.Store(false)
}

func (w *watcher) watch(ctx context.Context, a *asking) error {
	a.client.Timeout = 0
	defer a.client.CloseIdleConnections()
	events, err := a.stream(ctx, "/v1/events")
	if err != nil {
		return err
	}
	defer events.Close()
	w.open.Store(true)
	lines := bufio.NewScanner(events)
	for lines.Scan() {
		if lines.Text() == "event: change" {
			w.changes.Add(1)
		}
	}
	return errors.Join(lines.Err(), errors.New("the stream has ended"))
}

// stream opens a stream of events, which the caller closes.
func (a *asking) stream(ctx context.Context, path string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+a.token)
	got, err := a.client.Do(r)
	if err != nil {
		return nil, err
	}
	if got.StatusCode != http.StatusOK {
		got.Body.Close()
		return nil, fmt.Errorf("%s: %s", path, got.Status)
	}
	return got.Body, nil
}

// open waits until all streams are open.
func (w *watching) open(ctx context.Context) error {
	for until := time.Now().Add(startPatience); ; time.Sleep(50 * time.Millisecond) {
		err := w.those(func(one *watcher) bool { return one.open.Load() }, "are open")
		if err == nil || ctx.Err() != nil || time.Now().After(until) {
			return err
		}
	}
}

// served returns an error unless all streams are open, and each has received changes.
func (w *watching) served() error {
	return w.those(func(one *watcher) bool { return one.open.Load() && one.changes.Load() > 0 }, "are open and have received changes")
}

// those returns an error with the streams that do not meet a condition.
func (w *watching) those(are func(*watcher) bool, wanted string) error {
	var not []string
	for i := range w.each {
		one := &w.each[i]
		if are(one) {
			continue
		}
		one.mu.Lock()
		not = append(not, fmt.Sprintf("%s: %v", one.at, one.err))
		one.mu.Unlock()
	}
	if len(not) == 0 {
		return nil
	}
	return fmt.Errorf("only %d of %d watchers %s (%s)", len(w.each)-len(not), len(w.each), wanted, strings.Join(not[:min(len(not), 3)], "; "))
}

// sum returns the total number of received changes.
func (w *watching) sum() (n int64) {
	for i := range w.each {
		n += w.each[i].changes.Load()
	}
	return n
}
