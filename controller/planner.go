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

	"headgate.dev/headgate/probe/schedule"
	"headgate.dev/headgate/store"
)

// Values chosen for Headgate.
const (
	// planInterval is how often the planner checks for due measurements.
	planInterval = time.Second
	// findTimeout is the longest time until a connected agent is found.
	findTimeout = 3 * time.Second
	// minBackoff is the back-off for a host whose agent was not connected. It doubles up to maxBackoff.
	minBackoff, maxBackoff = time.Minute, 10 * time.Minute
	// totalResults is the approximate number of results in total. Each direction of a pair keeps between
	// minKept and maxKept results of each measure. A result takes some 2 kB.
	totalResults, minKept, maxKept = 100_000, 10, 100
)

// planner starts due measurements, and ends those that timed out. Only the leader runs it.
type planner struct {
	*Controller
	term     store.Term
	seen     map[string]time.Time // when this leader first saw each running measurement
	backoffs map[string]backoff   // by host
}

// backoff is the back-off of a host whose agent was not connected.
type backoff struct {
	until time.Time
	pause time.Duration
}

// planMeasurements runs the planner until ctx ends.
func (c *Controller) planMeasurements(ctx context.Context, t store.Term) {
	p := &planner{c, t, map[string]time.Time{}, map[string]backoff{}}
	tick := time.NewTicker(planInterval)
	defer tick.Stop()
	for {
		if err := p.next(ctx, time.Now()); err != nil && ctx.Err() == nil {
			slog.Warn("cannot schedule measurements", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-c.plan:
		case <-tick.C:
		}
	}
}

// next ends measurements that timed out, and starts the due ones.
func (p *planner) next(ctx context.Context, now time.Time) error {
	if !p.cache.isCurrent() || !p.writable() {
		return nil
	}
	is, hosts := p.cache.measurements()
	if err := p.timeOut(ctx, now, is.runs); err != nil || is.schedule == nil {
		return err
	}
	st := schedule.State{Hosts: hosts, Last: is.last, Ledgers: is.spent, Unavailable: map[string]bool{}}
	for _, r := range is.runs {
		st.Running = append(st.Running, r.Run)
	}
	for host, a := range p.backoffs {
		if now.Sub(a.until) > maxBackoff { // absent would begin with the first back-off
			delete(p.backoffs, host)
			continue
		}
		st.Unavailable[host] = now.Before(a.until) && p.hub.link(host) == nil
	}
	for _, t := range is.schedule.Next(now, st) {
		if err := p.start(ctx, now, t, is.last[t].At, hosts); err != nil {
			return err
		}
	}
	return nil
}

// timeOut ends measurements that timed out. The time counts from when this leader first saw them,
// because the clocks of controllers may differ.
func (p *planner) timeOut(ctx context.Context, now time.Time, runs map[string]store.ProbeRun) error {
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
		case r.Client == "" && age > findTimeout:
			o, still = p.notConnected(now, r.From), func(now store.ProbeRun) bool { return now.Client == "" }
		case r.Client != "" && r.Server == "" && age > findTimeout+serveTimeout+planInterval:
			o, still = p.notConnected(now, r.To), func(now store.ProbeRun) bool { return now.Server == "" }
		case age > schedule.MaxDuration(r.Time):
			o = unansweredOutcome(r, errors.New("the measurement timed out"))
		default:
			continue
		}
		all = append(all, endRun(ctx, p.store, id, still, o))
	}
	return errors.Join(all...)
}

// notConnected returns the outcome of a measurement whose host's agent is not connected, and backs off from
// that host.
func (p *planner) notConnected(now time.Time, host string) outcome {
	a := p.backoffs[host]
	a.pause = min(max(2*a.pause, minBackoff), maxBackoff)
	a.until = now.Add(a.pause)
	p.backoffs[host] = a
	return failedOutcome(fmt.Errorf("the agent of %s is not connected", host))
}

// start starts a measurement, unless the store has changed so that it is not due any more. last is
// the time of its previous run according to the cache.
func (p *planner) start(ctx context.Context, now time.Time, t schedule.Task, last time.Time, hosts []string) error {
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
		st, err := storedState(tx, t)
		if err != nil || !slices.Contains(s.Tasks(hosts), t) || !s.CanStart(now, t, st) {
			return err
		}
		day, cost := s.Day(now), s.Cost(t.Measure)
		bytes, longest := s.Bounds(t.Measure)
		for _, host := range []string{t.From, t.To} {
			if err := tx.Put(store.LedgerKey(host), st.Ledgers[host].Reserve(day, cost)); err != nil {
				return err
			}
		}
		return tx.Put(store.RunKey(id), store.ProbeRun{
			ID: id, Run: schedule.Run{Task: t, Day: day, Reserved: cost}, Bytes: bytes, Time: longest, Zone: s.Zone, Began: now.UTC(),
			Keep:   min(max(totalResults/(2*len(s.Tasks(hosts))), minKept), maxKept),
			FromAt: s.Host(t.From).Address, ToAt: s.Host(t.To).Address,
		})
	})
	return err
}

// storedState reads from the store the state by which a task may start.
func storedState(tx *store.Tx, t schedule.Task) (st schedule.State, err error) {
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
	st.Ledgers = map[string]schedule.Ledger{}
	for _, host := range []string{t.From, t.To} {
		var l schedule.Ledger
		if _, _, err := tx.Get(store.LedgerKey(host), &l); err != nil {
			return st, err
		}
		st.Ledgers[host] = l
	}
	return st, nil
}
