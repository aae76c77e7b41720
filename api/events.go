package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"headgate/store"
)

// Ours.
const (
	// mostStreams of events are one's at a time: a tenant's with all its tokens, of which it makes as many
	// as it likes, or an operator's by one.
	mostStreams = 100
	// knownEvery is how often a stream's token is looked at again: one that was taken back is out within
	// twice that.
	knownEvery = 5 * time.Second
	// takenWithin is for how long a client that takes nothing is waited for.
	takenWithin = 10 * time.Second
)

// streams are how many are open, by whose they are.
type streams struct {
	mu   sync.Mutex
	open map[string]int
}

// begin counts one in until end; false is that there are too many.
func (s *streams) begin(p store.Token) (end func(), ok bool) {
	of := "token " + p.ID
	if p.Tenant != "" {
		of = "tenant " + p.Tenant
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[of] >= mostStreams {
		return nil, false
	}
	if s.open == nil {
		s.open = map[string]int{}
	}
	s.open[of]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.open[of]--; s.open[of] == 0 {
			delete(s.open, of)
		}
	}, true
}

// whileKnown ends with the request, or when its token is over or was taken back.
func (s *Server) whileKnown(r *http.Request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithDeadline(r.Context(), principalOf(r).Expires)
	secret := secretOf(r)
	go func() {
		defer cancel()
		tick := time.NewTicker(knownEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			one, end := context.WithTimeout(ctx, knownEvery)
			_, err := s.whose(one, secret)
			end()
			var refusal *Refusal
			if errors.As(err, &refusal) { // else the store does not answer, which is not the token's fault
				return
			}
		}
	}()
	return ctx, cancel
}

// WatchEvents tells of changes as they are made.
func (s *Server) WatchEvents(w http.ResponseWriter, r *http.Request, p WatchEventsParams) {
	by := principalOf(r)
	end, ok := s.streams.begin(by)
	if !ok {
		problem(w, r, &Refusal{Status: http.StatusTooManyRequests, Detail: fmt.Sprintf("%d streams of events are open already, which is the most: end one", mostStreams), RetryAfter: int(takenWithin.Seconds())})
		return
	}
	defer end()
	ctx, cancel := s.whileKnown(r)
	defer cancel()
	after := or(p.After, 0)
	if p.LastEventID != nil {
		after = *p.LastEventID
	}
	rc := http.NewResponseController(w)
	send := func(id int64, event string, data any) error {
		text, err := json.Marshal(data)
		if err != nil {
			return err
		}
		_ = rc.SetWriteDeadline(time.Now().Add(takenWithin))
		if _, err := fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", id, event, text); err != nil {
			return err
		}
		if err := rc.Flush(); err != nil {
			return err
		}
		return rc.SetWriteDeadline(time.Time{}) // HTTP/2 would end a stream that is silent
	}
	now, err := s.revision(ctx)
	if err != nil {
		problem(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	unknown := after > now // of another store, or of this one before it was restored
	if after == 0 || unknown {
		after = now
	}
	if send(after, "hello", struct {
		Revision int64 `json:"revision"`
	}{after}) != nil {
		return
	}
	if unknown && send(now, "reset", struct{}{}) != nil {
		return
	}
	for {
		err := s.Store.Watch(ctx, store.Prefix(store.Audit), after, func(revision int64, events []store.Event) error {
			after = revision
			for _, e := range events {
				var entry store.AuditEntry
				if e.Value == nil || e.Into(&entry) != nil || by.Tenant != "" && entry.Tenant != by.Tenant {
					continue
				}
				if err := send(revision, "change", entryOf(entry, revision)); err != nil {
					return err
				}
			}
			return nil
		}, func(revision int64) error {
			after = revision
			return send(revision, "quiet", struct{}{})
		})
		if ctx.Err() != nil || !errors.Is(err, store.ErrCompacted) {
			return // the client comes again, with what it has seen
		}
		if after, err = s.revision(ctx); err != nil || send(after, "reset", struct{}{}) != nil {
			return
		}
	}
}

// revision is the store's now.
func (s *Server) revision(ctx context.Context) (int64, error) {
	_, _, now, err := s.Store.List(ctx, store.Prefix(store.Service), "", 1)
	return now, err
}
