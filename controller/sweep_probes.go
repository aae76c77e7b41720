package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	"headgate.dev/headgate/probe/schedule"
	"headgate.dev/headgate/store"
)

// resultRetention is how long a result is kept without a newer one. The value is chosen for Headgate.
const resultRetention = 90 * 24 * time.Hour

// sweepProbes deletes results that are old or of removed hosts, and outdated state of the schedule.
// Above twice totalResults it also deletes results of tasks that are no longer scheduled.
func (c *Controller) sweepProbes(ctx context.Context, t store.Term, now time.Time) error {
	if !c.cache.isCurrent() {
		return nil // the list of hosts may be outdated
	}
	tasks, there := c.cache.scheduledTasks()
	keys, err := t.Store().Keys(ctx, store.Prefix(store.Probes))
	if err != nil {
		return err
	}
	many := len(keys) > 2*totalResults
	keys = slices.DeleteFunc(keys, func(key string) bool { // results to keep
		_, name := store.Name(key)
		if len(name) != 3 {
			return false
		}
		at, measure, ok := store.ParseProbeName(name[2])
		task := schedule.Task{From: name[0], To: name[1], Measure: measure}
		return ok && there[task.From] && there[task.To] && now.Sub(at) <= resultRetention && (!many || tasks[task])
	})
	return errors.Join(
		remove(ctx, t, store.Prefix(store.Probes), keys),
		sweep(ctx, t, store.Newest, func(d store.Doc) bool {
			var v store.ProbeResult
			return d.Into(&v) == nil && (!there[v.From] || !there[v.To] || now.Sub(v.Attempted) > resultRetention)
		}),
		sweep(ctx, t, store.Probing, func(d store.Doc) bool { return outdated(d, tasks, now) }),
	)
}

// scheduledTasks returns the scheduled tasks in both directions, and the existing hosts.
func (c *cache) scheduledTasks() (tasks map[schedule.Task]bool, there map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tasks, there = map[schedule.Task]bool{}, map[string]bool{}
	var names []string
	for name, h := range c.hosts {
		if h.host != nil {
			there[name] = true
			names = append(names, name)
		}
	}
	if c.probing.schedule != nil {
		for _, t := range c.probing.schedule.Tasks(names) {
			tasks[t], tasks[schedule.Task{From: t.To, To: t.From, Measure: t.Measure}] = true, true
		}
	}
	return tasks, there
}

// outdated reports whether a document of scheduled measurements is outdated: the last attempt of a task
// that is no longer scheduled, or the bytes used before yesterday.
func outdated(d store.Doc, tasks map[schedule.Task]bool, now time.Time) bool {
	_, name := store.Name(d.Key)
	switch {
	case len(name) == 4 && name[0] == "last":
		return !tasks[schedule.Task{From: name[1], To: name[2], Measure: name[3]}]
	case len(name) == 2 && name[0] == "spent":
		var l schedule.Ledger
		return d.Into(&l) == nil && l.Day < now.Add(-2*24*time.Hour).Format(time.DateOnly)
	}
	return false
}
