package server

import (
	"bytes"
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
	// minLiveInterval is the shortest interval between two requests for the same path. Agents report ten times a
	// second while a client watches, so that a rate is on the client's screen within a second.
	minLiveInterval = 500 * time.Millisecond
	// maxLiveInterval is the interval of requests for a path of which no change is announced: usage records, for
	// one, grow without a report. It is the interval of all requests if nothing announces changes.
	maxLiveInterval = 5 * time.Second
	// keepaliveInterval is the interval of the events by which a client knows that the stream is still there: the dashboard takes what it shows for stale after 3.5 s
	// without an event.
	keepaliveInterval = time.Second
	// maxUnconfirmed is the age of the store's last confirmation, which comes twice a second, after which these events cease: a
	// controller that is cut off from the others does not know of changes. With the 3.5 s of the dashboard that is 4.7 s.
	maxUnconfirmed = 1200 * time.Millisecond
)

// liveEvent is an event with the response of a path.
type liveEvent struct {
	Path   string          `json:"path"`
	Status int             `json:"status"`
	Data   json.RawMessage `json:"data,omitempty"`
}

// WatchLive streams the responses of several paths over one connection, each whenever it changes. After a change
// that is announced, a path is requested with the caller's token through the same handler as ordinary requests, so
// that the stream gives no access beyond that of the token.
func (s *Server) WatchLive(w http.ResponseWriter, r *http.Request, p api.WatchLiveParams) {
	for n, path := range p.See {
		if err := s.checkWatchable(path); err != nil {
			problem(w, r, invalidField(fmt.Sprintf("see.%d", n), err))
			return
		}
	}
	end, err := s.streams.begin(principalOf(r), Forwarded(r))
	if err != nil {
		problem(w, r, err)
		return
	}
	defer end()
	ctx, cancel := s.tokenContext(r)
	defer cancel()
	r = r.WithContext(ctx)
	out := startStream(w)
	changes := make([]<-chan struct{}, len(p.See))
	if s.Changes != nil {
		changes = s.Changes(r, p.See)
	}
	var all sync.WaitGroup
	for n, path := range p.See {
		all.Go(func() {
			defer cancel()
			s.watch(r, path, changes[n], out)
		})
	}
	all.Go(func() {
		defer cancel()
		tick := time.NewTicker(keepaliveInterval)
		defer tick.Stop()
		for ctx.Err() == nil {
			if s.confirmed() && out.send(0, "quiet", struct{}{}) != nil {
				return
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	})
	all.Wait()
}

// confirmed reports whether the store confirmed lately that this controller has all changes.
func (s *Server) confirmed() bool {
	return s.Confirmed == nil || time.Since(s.Confirmed()) < maxUnconfirmed
}

// checkWatchable refuses a path that does not exist, that does not answer GET, or that is a stream itself.
func (s *Server) checkWatchable(path string) error {
	q, err := http.NewRequest(http.MethodGet, path, http.NoBody)
	if err != nil {
		return fmt.Errorf("%q is not a valid path", path)
	}
	if o := s.Operation(q); o == nil || strings.HasPrefix(o.ID, "watch") {
		return fmt.Errorf("%s is not a path that can be watched", path)
	}
	return nil
}

// watch sends the response of a path whenever it changes, until the request is done or the client disconnects.
func (s *Server) watch(r *http.Request, path string, changed <-chan struct{}, out *stream) {
	var last Recorded
	for ctx := r.Context(); ; {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody)
		if err != nil {
			return
		}
		CopyHeader(q.Header, r.Header, "Authorization", ForwardedHeader)
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
		case <-time.After(minLiveInterval):
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-time.After(maxLiveInterval - minLiveInterval):
		}
	}
}
