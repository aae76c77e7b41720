package controller

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"headgate/probe/schedule"
	"headgate/store"
)

// Ours.
const (
	// planEvery is how often it is looked whether something is to be measured.
	planEvery = time.Second
	// findPatience is how long it takes at the most until an agent is found, if it is connected.
	findPatience = 3 * time.Second
	// awayFirst is how long a host is not asked again that was not there, twice as long each time, up to
	// awayLast.
	awayFirst, awayLast = time.Minute, 10 * time.Minute
	// allResults is about how many results there are in all, of which each direction of a pair has from
	// leastKept to mostKept of each measure: one takes some 2 kB.
	allResults, leastKept, mostKept = 100_000, 10, 100
)

// planner begins measurements as the schedule says, and ends those that nobody ends: the leader does.
type planner struct {
	*Controller
	term store.Term
	seen map[string]time.Time // when each measurement that is under way was seen first
	away map[string]absence   // by host
}

// absence is of a host whose agent was not found.
type absence struct {
	until time.Time
	pause time.Duration
}

// measure plans until ctx ends.
func (c *Controller) measure(ctx context.Context, t store.Term) {
	p := &planner{c, t, map[string]time.Time{}, map[string]absence{}}
	tick := time.NewTicker(planEvery)
	defer tick.Stop()
	for {
		if err := p.next(ctx, time.Now()); err != nil && ctx.Err() == nil {
			slog.Warn("measurements cannot be planned", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-c.plan:
		case <-tick.C:
		}
	}
}

// next ends what is over by its time, and begins what is next.
func (p *planner) next(ctx context.Context, now time.Time) error {
	if !p.cache.sound() || !p.writable() {
		return nil
	}
	is, hosts := p.cache.measurements()
	if err := p.tend(ctx, now, is.runs); err != nil || is.schedule == nil {
		return err
	}
	st := schedule.State{Hosts: hosts, Last: is.last, Spent: is.spent, Away: map[string]bool{}}
	for _, r := range is.runs {
		st.Running = append(st.Running, r.Run)
	}
	for host, a := range p.away {
		st.Away[host] = now.Before(a.until) && p.hub.link(host) == nil
	}
	for _, t := range is.schedule.Next(now, st) {
		if err := p.begin(ctx, now, t, is.last[t].At, hosts); err != nil {
			return err
		}
	}
	return nil
}

// tend ends measurements that nobody carries on. Their time is counted from when this leader has seen
// them: another's clock may be another.
func (p *planner) tend(ctx context.Context, now time.Time, runs map[string]store.ProbeRun) error {
	for id := range p.seen {
		if _, goesOn := runs[id]; !goesOn {
			delete(p.seen, id)
		}
	}
	var all []error
	for id, r := range runs {
		if _, ok := p.seen[id]; !ok {
			p.seen[id] = now
		}
		age := now.Sub(p.seen[id])
		var o outcome
		still := func(store.ProbeRun) bool { return true }
		switch {
		case r.Client == "" && age > findPatience:
			o, still = p.absent(now, r.From), func(now store.ProbeRun) bool { return now.Client == "" }
		case r.Client != "" && r.Server == "" && age > findPatience+servePatience+planEvery:
			o, still = p.absent(now, r.To), func(now store.ProbeRun) bool { return now.Server == "" }
		case age > (&schedule.Schedule{Time: r.Time}).Longest():
			o = lost(r, errors.New("nothing was heard of it any more"))
		default:
			continue
		}
		all = append(all, endRun(ctx, p.store, id, still, o))
	}
	return errors.Join(all...)
}

// absent is what becomes of a measurement whose host is not there, which is left alone for a while.
func (p *planner) absent(now time.Time, host string) outcome {
	a := p.away[host]
	a.pause = min(max(2*a.pause, awayFirst), awayLast)
	if now.Sub(a.until) > awayLast { // it was there for long
		a.pause = awayFirst
	}
	a.until = now.Add(a.pause)
	p.away[host] = a
	return failed(fmt.Errorf("the agent of %s is not connected", host))
}

// begin begins a measurement, if nothing has changed by which it may not be: last is when it was made
// before, as far as is known here.
func (p *planner) begin(ctx context.Context, now time.Time, t schedule.Task, last time.Time, hosts []string) error {
	var b [8]byte
	rand.Read(b[:])
	id := hex.EncodeToString(b[:])
	_, err := p.term.Do(ctx, store.Prefix(store.Probing), func(tx *store.Tx) error {
		var s schedule.Schedule
		if _, ok, err := tx.Get(store.ScheduleKey, &s); err != nil || !ok {
			return err
		}
		var before schedule.Last
		if _, _, err := tx.Get(store.LastKey(t), &before); err != nil || !before.At.Equal(last) {
			return err
		}
		st, err := underWay(tx, t)
		if err != nil || !slices.Contains(s.Tasks(hosts), t) || !s.May(now, t, st) {
			return err
		}
		day := s.Day(now)
		for _, host := range []string{t.From, t.To} {
			if err := tx.Put(store.SpentKey(host), st.Spent[host].Reserve(day, s.Cost())); err != nil {
				return err
			}
		}
		return tx.Put(store.RunKey(id), store.ProbeRun{
			ID: id, Run: schedule.Run{Task: t, Day: day, Reserved: s.Cost()}, Bytes: s.Bytes, Time: s.Time, Zone: s.Zone, Began: now.UTC(),
			Keep:   min(max(allResults/(2*len(s.Tasks(hosts))), leastKept), mostKept),
			FromAt: s.Host(t.From).Address, ToAt: s.Host(t.To).Address,
		})
	})
	return err
}

// underWay is what a task is decided by, as it is in the store.
func underWay(tx *store.Tx, t schedule.Task) (st schedule.State, err error) {
	docs, err := tx.All(store.Prefix(store.Probing, "runs"))
	if err != nil {
		return st, err
	}
	for _, d := range docs {
		var r store.ProbeRun
		if err := d.Into(&r); err != nil {
			return st, err
		}
		st.Running = append(st.Running, r.Run)
	}
	st.Spent = map[string]schedule.Ledger{}
	for _, host := range []string{t.From, t.To} {
		var l schedule.Ledger
		if _, _, err := tx.Get(store.SpentKey(host), &l); err != nil {
			return st, err
		}
		st.Spent[host] = l
	}
	return st, nil
}
