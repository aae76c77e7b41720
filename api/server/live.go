package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	api "headgate.dev/headgate/api/client"
)

// Intervals of the stream, chosen by this project.
const (
	// livePollInterval is the interval at which each path is polled. Agents report ten times a second while a
	// client watches, so that a rate is on the client's screen within a second.
	livePollInterval = 500 * time.Millisecond
	// keepaliveInterval is the interval of the events that keep an idle stream open.
	keepaliveInterval = 15 * time.Second
)

// liveEvent is an event with the response of a path.
type liveEvent struct {
	Path   string          `json:"path"`
	Status int             `json:"status"`
	Data   json.RawMessage `json:"data,omitempty"`
}

// WatchLive streams the responses of several paths over one connection, each whenever it changes. The paths
// are requested with the caller's token through the same handler as ordinary requests, so that the stream
// gives no access beyond that of the token.
func (s *Server) WatchLive(w http.ResponseWriter, r *http.Request, p api.WatchLiveParams) {
	for n, path := range p.See {
		if err := s.checkWatchable(path); err != nil {
			problem(w, r, invalidField(fmt.Sprintf("see.%d", n), err))
			return
		}
	}
	end, err := s.streams.begin(principalOf(r))
	if err != nil {
		problem(w, r, err)
		return
	}
	defer end()
	ctx, cancel := s.tokenContext(r)
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
		tick := time.NewTicker(keepaliveInterval)
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

// checkWatchable refuses a path that does not exist, that does not answer GET, or that is a stream itself.
func (s *Server) checkWatchable(path string) error {
	q, err := http.NewRequest(http.MethodGet, path, http.NoBody)
	if err != nil {
		return fmt.Errorf("%q is not a valid path", path)
	}
	_, pattern := s.mux.Handler(q)
	_, at, _ := strings.Cut(pattern, " ")
	item := s.spec.Paths.Find(at)
	if item == nil || item.Get == nil || strings.HasPrefix(item.Get.OperationID, "watch") {
		return fmt.Errorf("%s is not a path that can be watched", path)
	}
	return nil
}

// watch sends the response of a path whenever it changes, until ctx is done or the client disconnects.
func (s *Server) watch(ctx context.Context, r *http.Request, path string, out *stream) {
	var last Recorded
	tick := time.NewTicker(livePollInterval)
	defer tick.Stop()
	for {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody)
		if err != nil {
			return
		}
		q.Header.Set("Authorization", r.Header.Get("Authorization"))
		q.RemoteAddr, q.Host = r.RemoteAddr, r.Host
		now := RecordResponse(s.Cluster, q)
		if ctx.Err() != nil {
			return
		}
		// While the caller is over its rate limit, its last response stays valid.
		if now.Status != http.StatusTooManyRequests && (now.Status != last.Status || !bytes.Equal(now.Body.Bytes(), last.Body.Bytes())) {
			if out.send(0, "seen", liveEvent{path, now.Status, now.Body.Bytes()}) != nil {
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
