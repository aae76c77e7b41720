package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	"headgate/probe/schedule"
	"headgate/store"
)

// resultsKept is how long a result is kept that no newer one has replaced. Ours.
const resultsKept = 90 * 24 * time.Hour

// sweepProbes takes away what is over of measurements: results that are old, or of hosts that there
// are no more; and, if there are more than there should be, those of what is measured no more.
func (c *Controller) sweepProbes(ctx context.Context, t store.Term, now time.Time) error {
	if !c.cache.sound() {
		return nil // which hosts there are is not known
	}
	tasks, there := c.cache.measuredNow()
	keys, err := t.Store().Keys(ctx, store.Prefix(store.Probes))
	if err != nil {
		return err
	}
	many := len(keys) > 2*allResults
	keys = slices.DeleteFunc(keys, func(key string) bool { // those that stay
		_, name := store.Name(key)
		if len(name) != 3 {
			return false
		}
		at, measure, ok := store.ProbeOf(name[2])
		task := schedule.Task{From: name[0], To: name[1], Measure: measure}
		return ok && there[task.From] && there[task.To] && now.Sub(at) <= resultsKept && (!many || tasks[task])
	})
	return errors.Join(
		remove(ctx, t, store.Prefix(store.Probes), keys),
		sweep(ctx, t, store.Newest, func(d store.Doc) bool {
			var v store.ProbeResult
			return d.Into(&v) == nil && (!there[v.From] || !there[v.To] || now.Sub(v.Tried) > resultsKept)
		}),
		sweep(ctx, t, store.Probing, func(d store.Doc) bool { return over(d, tasks, now) }),
	)
}

// measuredNow are the tasks of the schedule, both ways round, and the hosts that there are.
func (c *cache) measuredNow() (tasks map[schedule.Task]bool, there map[string]bool) {
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

// over tells whether a document of the schedule is: when something was measured last that is
// measured no more, and what was spent before yesterday.
func over(d store.Doc, tasks map[schedule.Task]bool, now time.Time) bool {
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
