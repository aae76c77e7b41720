package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"headgate.dev/headgate/store"
)

// Limits of streams, chosen by this project.
const (
	// maxStreams is the quota of open streams: of a tenant with all its tokens, because it can create any
	// number of tokens, or of one token without a tenant.
	maxStreams = 100
	// tokenCheckInterval is the interval at which a stream's token is checked again. A stream with a revoked token
	// ends within twice this time.
	tokenCheckInterval = 5 * time.Second
	// writeTimeout is the write timeout for a client that does not read.
	writeTimeout = 10 * time.Second
)

// streams counts the open streams, by tenant or token.
type streams struct {
	mu   sync.Mutex
	open map[string]int
}

// begin counts a new stream until end is called, or refuses the stream if the quota is exceeded.
func (s *streams) begin(p store.Token, forwarded bool) (end func(), err error) {
	of := "token " + p.ID
	if p.Tenant != "" {
		of = "tenant " + p.Tenant
	}
	if forwarded { // those of clients of other controllers have a quota of their own
		of = "forwarded " + of
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[of] >= maxStreams {
		return nil, &Refusal{Status: http.StatusTooManyRequests, Detail: fmt.Sprintf("quota exceeded: %d streams are open: close one first", maxStreams), RetryAfter: int(writeTimeout.Seconds())}
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

// tokenContext returns a context that is done when the request ends or its token expires or is revoked.
func (s *Server) tokenContext(r *http.Request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithDeadline(r.Context(), principalOf(r).Expires)
	secret := bearerToken(r)
	go func() {
		defer cancel()
		tick := time.NewTicker(tokenCheckInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			one, end := context.WithTimeout(ctx, tokenCheckInterval)
			_, err := s.lookupToken(one, secret)
			end()
			var refusal *Refusal
			if errors.As(err, &refusal) { // other errors are the store's, and the token may be valid
				return
			}
		}
	}()
	return ctx, cancel
}

// stream sends server-sent events to a client (WHATWG HTML 9.2).
type stream struct {
	mu sync.Mutex
	w  http.ResponseWriter
	rc *http.ResponseController
}

// startStream starts the response as an event stream.
func startStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	return &stream{w: w, rc: http.NewResponseController(w)}
}

// send writes one event. The client resumes after the event's id; id 0 leaves the id out.
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
	_ = s.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := fmt.Fprintf(s.w, "%sevent: %s\ndata: %s\n\n", head, event, text); err != nil {
		return err
	}
	if err := s.rc.Flush(); err != nil {
		return err
	}
	return s.rc.SetWriteDeadline(time.Time{}) // otherwise HTTP/2 would reset an idle stream
}
