package controller

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"headgate.dev/headgate/store"
)

// task is work that only the leader does. Each task runs in a goroutine of its own, from the start of the
// leader's term until ctx ends. A new task is a line in tasks.
type task struct {
	name string
	run  func(ctx context.Context, t store.Term)
}

// tasks are the leader's tasks.
func (c *Controller) tasks() []task {
	return []task{
		{"probe schedule", c.planMeasurements},
		{"network", c.leadNetwork},
		{"reservations", c.leadReservations},
		every(weakLinksInterval, "weak links", c.findWeakLinks),
		every(arrivalsInterval, "arrivals", c.seeArrivals),
		every(sweepInterval, "expired tokens", sweepTokens),
		every(sweepInterval, "idempotency keys", sweepAnswers),
		every(trimInterval, "many idempotency keys", trimAnswers),
		every(sweepInterval, "audit log", sweepAudit),
		every(sweepInterval, "removed interfaces", sweepRemoved),
		every(sweepInterval, "measurements", c.sweepProbes),
		every(sweepInterval, "revisions", func(ctx context.Context, t store.Term, now time.Time) error {
			return t.Compact(ctx, now.Add(-revisionRetention))
		}),
	}
}

// every is a task that does something at once and then at each interval. Errors are logged, and the next
// interval tries again.
func every(interval time.Duration, name string, do func(ctx context.Context, t store.Term, now time.Time) error) task {
	return task{name, func(ctx context.Context, t store.Term) {
		for tick := time.NewTicker(interval); ; {
			if err := do(ctx, t, time.Now()); err != nil && ctx.Err() == nil {
				slog.Warn("leader task failed", "task", name, "error", err)
			}
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	}}
}

// lead runs the leader's tasks until ctx ends.
func (c *Controller) lead(ctx context.Context, t store.Term) error {
	slog.Info("controller became leader", "name", c.config.Name)
	c.term.Store(&t)
	defer c.term.Store(nil)
	var running sync.WaitGroup
	for _, one := range c.tasks() {
		running.Go(func() { one.run(ctx, t) })
	}
	running.Wait()
	return ctx.Err()
}
