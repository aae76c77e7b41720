package server

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/store"
)

// Constants of the health check, chosen by this project. The health check needs no token, so that its
// result is cached to protect the store.
const (
	// healthCacheTime is how long a result is cached.
	healthCacheTime = time.Second
	// healthTimeout is the time in which the store must answer to count as healthy.
	healthTimeout = 3 * time.Second
)

// health caches the last result of the health check.
type health struct {
	mu     sync.Mutex
	at     time.Time
	leader string
	err    error
}

// now returns the cached result, or queries the store if the result is older than healthCacheTime.
func (h *health) now(ctx context.Context, s *store.Store) (leader string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.at.IsZero() && time.Since(h.at) < healthCacheTime {
		return h.leader, h.err
	}
	// Other requests wait for the same result, so that a client that disconnects must not cancel the query.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthTimeout)
	defer cancel()
	h.leader = ""
	if h.err = s.Ready(ctx); h.err == nil {
		h.leader, h.err = s.Leader(ctx)
	}
	if h.err != nil {
		h.err = fmt.Errorf("%w: %w", store.ErrUnavailable, h.err)
	}
	h.at = time.Now()
	return h.leader, h.err
}

// GetHealth reports whether the service is healthy.
func (s *Server) GetHealth(w http.ResponseWriter, r *http.Request) {
	leader, err := s.health.now(r.Context(), s.Store)
	out := api.Health{Version: s.Version, Writable: s.Writable(), Leader: optional(leader)}
	writeResource(w, r, out, err)
}
