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
	// mostStreams are one's at a time: a tenant's with all its tokens, of which it makes as many as it
	// likes, or an operator's by one.
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

// begin counts one in until end.
func (s *streams) begin(p store.Token) (end func(), err error) {
	of := "token " + p.ID
	if p.Tenant != "" {
		of = "tenant " + p.Tenant
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[of] >= mostStreams {
		return nil, &Refusal{Status: http.StatusTooManyRequests, Detail: fmt.Sprintf("%d streams are open already, which is the most: end one", mostStreams), RetryAfter: int(takenWithin.Seconds())}
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
	}, nil
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

// stream tells somebody of events as they happen (server-sent events, WHATWG HTML 9.2).
type stream struct {
	mu sync.Mutex
	w  http.ResponseWriter
	rc *http.ResponseController
}

// startStream answers with one.
func startStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	return &stream{w: w, rc: http.NewResponseController(w)}
}

// send tells of an event; 0 is no id, after which one would go on.
func (s *stream) send(id int64, event string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	head := ""
	if id != 0 {
		head = fmt.Sprintf("id: %d\n", id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.rc.SetWriteDeadline(time.Now().Add(takenWithin))
	if _, err := fmt.Fprintf(s.w, "%sevent: %s\ndata: %s\n\n", head, event, text); err != nil {
		return err
	}
	if err := s.rc.Flush(); err != nil {
		return err
	}
	return s.rc.SetWriteDeadline(time.Time{}) // HTTP/2 would end a stream that is silent
}
