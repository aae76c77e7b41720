package server

import (
	"context"
	"errors"
	"net/http"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/store"
)

// WatchEvents streams changes as they are committed.
func (s *Server) WatchEvents(w http.ResponseWriter, r *http.Request, p api.WatchEventsParams) {
	by := principalOf(r)
	end, err := s.streams.begin(by, false)
	if err != nil {
		problem(w, r, err)
		return
	}
	defer end()
	ctx, cancel := s.tokenContext(r)
	defer cancel()
	after := valueOr(p.After, 0)
	if p.LastEventID != nil {
		after = *p.LastEventID
	}
	now, err := s.revision(ctx)
	if err != nil {
		problem(w, r, err)
		return
	}
	out := startStream(w)
	unknown := after > now // a revision of another store, or of this store before a restore
	if after == 0 || unknown {
		after = now
	}
	if out.send(after, "hello", struct {
		Revision int64 `json:"revision"`
	}{after}) != nil {
		return
	}
	if unknown && out.send(now, "reset", struct{}{}) != nil {
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
				if err := out.send(revision, "change", entryOf(entry, revision)); err != nil {
					return err
				}
			}
			return nil
		}, func(revision int64) error {
			after = revision
			return out.send(revision, "quiet", struct{}{})
		})
		if ctx.Err() != nil || !errors.Is(err, store.ErrCompacted) {
			return // the client reconnects with the last event id that it received
		}
		if after, err = s.revision(ctx); err != nil || out.send(after, "reset", struct{}{}) != nil {
			return
		}
	}
}

// revision returns the store's current revision.
func (s *Server) revision(ctx context.Context) (int64, error) {
	_, _, now, err := s.Store.List(ctx, store.Prefix(store.Service), "", 1)
	return now, err
}
