package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Ours.
const (
	// liveEvery is how often what somebody sees is asked for: with agents that report ten times a second
	// while somebody watches, a rate is on the screen within a second.
	liveEvery = 500 * time.Millisecond
	// quietEvery is how often one is told that a stream goes on.
	quietEvery = 15 * time.Second
)

// told is an event of what a path answers.
type told struct {
	Path   string          `json:"path"`
	Status int             `json:"status"`
	Data   json.RawMessage `json:"data,omitempty"`
}

// WatchLive tells what paths answer, whenever that is another: what one looks at, by one stream. They are
// asked for as anybody would, of this controller as a whole, so that nobody sees more by it.
func (s *Server) WatchLive(w http.ResponseWriter, r *http.Request, p WatchLiveParams) {
	for n, path := range p.See {
		if err := s.mayBeSeen(path); err != nil {
			problem(w, r, wrong(fmt.Sprintf("see.%d", n), err))
			return
		}
	}
	end, err := s.streams.begin(principalOf(r))
	if err != nil {
		problem(w, r, err)
		return
	}
	defer end()
	ctx, cancel := s.whileKnown(r)
	defer cancel()
	out := startStream(w)
	var all sync.WaitGroup
	for _, path := range p.See {
		all.Go(func() {
			defer cancel()
			s.watch(ctx, r, path, out)
		})
	}
	all.Go(func() {
		defer cancel()
		tick := time.NewTicker(quietEvery)
		defer tick.Stop()
		for ctx.Err() == nil && out.send(0, "quiet", struct{}{}) == nil {
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	})
	all.Wait()
}

// mayBeSeen refuses what is not there, and what does not end.
func (s *Server) mayBeSeen(path string) error {
	q, err := http.NewRequest(http.MethodGet, path, http.NoBody)
	if err != nil {
		return fmt.Errorf("%q is no path", path)
	}
	_, pattern := s.mux.Handler(q)
	_, at, _ := strings.Cut(pattern, " ")
	item := s.spec.Paths.Find(at)
	if item == nil || item.Get == nil || strings.HasPrefix(item.Get.OperationID, "watch") {
		return fmt.Errorf("%s is nothing to get", path)
	}
	return nil
}

// watch sends what a path answers when it is another, until ctx ends or nobody takes it.
func (s *Server) watch(ctx context.Context, r *http.Request, path string, out *stream) {
	var last Recorded
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	for {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody)
		if err != nil {
			return
		}
		q.Header.Set("Authorization", r.Header.Get("Authorization"))
		q.RemoteAddr, q.Host = r.RemoteAddr, r.Host
		now := Record(s.Whole, q)
		if ctx.Err() != nil {
			return
		}
		// Who asks too often is shown what was.
		if now.Status != http.StatusTooManyRequests && (now.Status != last.Status || !bytes.Equal(now.Body.Bytes(), last.Body.Bytes())) {
			if out.send(0, "seen", told{path, now.Status, now.Body.Bytes()}) != nil {
				return
			}
			last = *now
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
