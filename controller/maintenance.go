package controller

import (
	"context"
	"log/slog"
	"time"
)

// storeCheckInterval is how often the store's size is queried. maintenanceBackoff is the back-off after maintenance
// failed: a member answers no requests during defragmentation. The values are chosen for Headgate.
const storeCheckInterval, maintenanceBackoff = 10 * time.Second, time.Minute

// monitorStore monitors and maintains the store's size until ctx ends. Every controller does so;
// store.Store.Maintain decides which one acts.
func (c *Controller) monitorStore(ctx context.Context) {
	var notBefore time.Time
	for {
		if r, err := c.store.Space(ctx); err != nil {
			slog.Debug("cannot query the store's size", "error", err)
		} else {
			if full := !r.Writable(); c.full.Swap(full) != full {
				if full {
					slog.Warn("store is nearly full, rejecting changes; the operator of an external etcd must compact and defragment it and disarm its alarm", "size", r.Size, "in_use", r.InUse, "quota", r.Quota)
				} else {
					slog.Warn("store has free space again, accepting changes", "size", r.Size, "in_use", r.InUse, "quota", r.Quota)
				}
			}
			if time.Now().After(notBefore) {
				err = c.store.Maintain(ctx)
			}
			if err != nil && ctx.Err() == nil {
				slog.Warn("cannot maintain the store", "error", err)
				notBefore = time.Now().Add(maintenanceBackoff)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(storeCheckInterval):
		}
	}
}
