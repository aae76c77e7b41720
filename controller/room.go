package controller

import (
	"context"
	"log/slog"
	"time"
)

// roomEvery is how often the store is asked how full it is, and roomAgain how long after something
// could not be done about it: a member that writes its file anew answers nobody meanwhile. Ours.
const roomEvery, roomAgain = 10 * time.Second, time.Minute

// room looks at how full the store is, and after it, until ctx ends. Every controller does: which one
// acts is the store's to say (store.Tend).
func (c *Controller) room(ctx context.Context) {
	var notBefore time.Time
	for {
		if r, err := c.store.Room(ctx); err != nil {
			slog.Debug("the store does not say how full it is", "error", err)
		} else {
			if full := !r.Writable(); c.full.Swap(full) != full {
				if full {
					slog.Warn("the store is nearly full, and no changes are taken; an etcd that is another's is theirs to compact, defragment and disarm", "size", r.Size, "in use", r.InUse, "quota", r.Quota)
				} else {
					slog.Warn("the store has room again, and changes are taken", "size", r.Size, "in use", r.InUse, "quota", r.Quota)
				}
			}
			if time.Now().After(notBefore) {
				err = c.store.Tend(ctx)
			}
			if err != nil && ctx.Err() == nil {
				slog.Warn("the store cannot be looked after", "error", err)
				notBefore = time.Now().Add(roomAgain)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(roomEvery):
		}
	}
}
