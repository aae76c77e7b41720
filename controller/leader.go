package controller

import (
	"context"
	"log/slog"
	"time"

	"headgate/store"
)

// Ours: how long what is over is kept.
const (
	answersKept = 24 * time.Hour
	auditKept   = 90 * 24 * time.Hour
	// revisionsKept is how far back an interface can be rolled back.
	revisionsKept = 7 * 24 * time.Hour
	// formerKept is longer than agents keep their record of what an interface had.
	formerKept = 8 * 24 * time.Hour
	sweepEvery = time.Hour
	// mostSwept goes in one transaction.
	mostSwept = 50
)

// lead does what has to be done once, until ctx ends.
func (c *Controller) lead(ctx context.Context, t store.Term) error {
	slog.Info("this controller is the leader", "name", c.config.Name)
	c.term.Store(&t)
	defer c.term.Store(nil)
	go c.measure(ctx, t)
	for {
		now := time.Now()
		for _, err := range []error{
			sweep(ctx, t, store.Tokens, func(d store.Doc) bool {
				var v store.Token
				return d.Into(&v) == nil && now.After(v.Expires)
			}),
			sweep(ctx, t, store.Answers, func(d store.Doc) bool {
				var v struct {
					At time.Time `json:"at"`
				}
				return d.Into(&v) == nil && now.Sub(v.At) > answersKept
			}),
			sweep(ctx, t, store.Audit, func(d store.Doc) bool {
				var v store.AuditEntry
				return d.Into(&v) == nil && now.Sub(v.At) > auditKept
			}),
			sweep(ctx, t, store.Former, func(d store.Doc) bool {
				var v store.Interface
				if d.Into(&v) != nil {
					return false
				}
				for _, at := range v.Handed {
					if now.Sub(at) < formerKept {
						return false
					}
				}
				return true
			}),
			c.sweepProbes(ctx, t, now),
			t.Compact(ctx, now.Add(-revisionsKept)),
		} {
			if err != nil {
				slog.Warn("what is over cannot be taken away", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(sweepEvery):
		}
	}
}

// sweep takes away documents of a kind that are over.
func sweep(ctx context.Context, t store.Term, kind string, over func(store.Doc) bool) error {
	below := store.Prefix(kind)
	for after := ""; ; {
		docs, more, _, err := t.Store().List(ctx, below, after, 1000)
		if err != nil {
			return err
		}
		var keys []string
		for _, d := range docs {
			after = d.Key
			if over(d) {
				keys = append(keys, d.Key)
			}
		}
		if err := remove(ctx, t, below, keys); err != nil || !more {
			return err
		}
	}
}

// remove takes documents away, some at a time.
func remove(ctx context.Context, t store.Term, below string, keys []string) error {
	for len(keys) > 0 {
		n := min(len(keys), mostSwept)
		if _, err := t.Do(ctx, below+"sweep", func(tx *store.Tx) error {
			for _, k := range keys[:n] {
				tx.Delete(k)
			}
			return nil
		}); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}
