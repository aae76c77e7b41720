package api

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"headgate/store"
)

// Ours: anybody may ask whether the service is well, and the store is asked for all of them.
const (
	// healthFor is how long an answer is good for.
	healthFor = time.Second
	// healthWithin is how long the store may take to answer, before it is not well.
	healthWithin = 5 * time.Second
)

// health is how the store was, when somebody asked last.
type health struct {
	mu     sync.Mutex
	at     time.Time
	leader string
	err    error
}

// now asks the store, or tells what it said a moment ago.
func (h *health) now(ctx context.Context, s *store.Store) (leader string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.at.IsZero() && time.Since(h.at) < healthFor {
		return h.leader, h.err
	}
	// For all that wait, and not just for this one, which may leave.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthWithin)
	defer cancel()
	h.leader = ""
	if h.err = s.Ready(ctx); h.err == nil {
		h.leader, h.err = s.Leader(ctx)
	}
	if h.err != nil {
		h.err = fmt.Errorf("%w: %w", store.ErrUnknown, h.err)
	}
	h.at = time.Now()
	return h.leader, h.err
}

// GetHealth says whether the service is well.
func (s *Server) GetHealth(w http.ResponseWriter, r *http.Request) {
	leader, err := s.health.now(r.Context(), s.Store)
	out := Health{Version: s.Version, Writable: s.Writable(), Leader: given(leader)}
	show(w, r, out, err)
}
