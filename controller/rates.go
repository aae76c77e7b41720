package controller

import (
	"maps"
	"slices"
	"time"

	"headgate/api/agents"
	"headgate/unit"
	"headgate/usage"
)

// watchedFor is how long an agent reports closely after somebody has looked.
const watchedFor = 5 * time.Second

// watch has the agent report closely while somebody looks again and again.
func (l *link) watch(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Once is no watching.
	again := now.Sub(l.watched) < watchedFor
	l.watched = now
	if again && !l.closely {
		l.closely = l.tell(&agents.ToAgent{Message: &agents.ToAgent_Watch{Watch: &agents.Watch{Closely: true}}})
	}
}

// unwatch lets it report as ever when nobody does any more; it is called with each report.
func (l *link) unwatch(now time.Time) {
	if l.closely && now.Sub(l.watched) > watchedFor {
		l.closely = !l.tell(&agents.ToAgent{Message: &agents.ToAgent_Watch{Watch: &agents.Watch{}}})
	}
}

// tell sends something if there is room for it.
func (l *link) tell(m *agents.ToAgent) bool {
	select {
	case l.out <- m:
		return true
	default:
		return false
	}
}

// table is what the groups of a device carry: the newest report, and the one before.
type table struct {
	names     []string
	guarantee []uint64
	now, was  reading
	// risk is by group whether it had less than its guarantee from base to a reading later.
	base reading
	risk []bool
}

type reading struct {
	at                                  time.Duration // on the agent's clock
	bytes, backlog, drops, marks, delay []uint64
	queued, queuedBytes, readAt         []uint64 // empty of an agent that does not tell
}

// counters are a group's at a reading.
func (r *reading) counters(n int) usage.Counters {
	of := func(all []uint64) uint64 {
		if n < len(all) {
			return all[n]
		}
		return 0
	}
	c := usage.Counters{Bytes: of(r.bytes), Backlog: of(r.backlog), QueuedFor: time.Duration(of(r.queued)), Queued: of(r.queuedBytes), At: time.Unix(0, int64(r.at))}
	if at := of(r.readAt); at != 0 {
		c.At = time.Unix(0, int64(at))
	}
	return c
}

// report takes a report in, which has all devices that are divided now.
func (l *link) report(r *agents.Report) {
	for _, d := range r.Devices {
		t := l.tables[d.Dev]
		if t == nil || len(d.Names) > 0 { // other groups than before
			t = t.with(d.Names, d.GuaranteeBps)
			l.tables[d.Dev] = t
		}
		now := reading{
			at: time.Duration(r.AtNs), bytes: d.Bytes, backlog: d.BacklogBytes, drops: d.Drops, marks: d.Marks, delay: d.QueueDelayNs,
			queued: d.QueuedNs, queuedBytes: d.QueuedBytes, readAt: times(d.ReadAtNs),
		}
		if now.at > t.now.at { // else its agent has not counted anew since the report before
			t.was = t.now
		}
		t.now = now
		t.judge()
	}
	if len(l.tables) > len(r.Devices) {
		maps.DeleteFunc(l.tables, func(dev string, _ *table) bool {
			return !slices.ContainsFunc(r.Devices, func(d *agents.DeviceReport) bool { return d.Dev == dev })
		})
	}
}

// with is a table of other groups: those that stay go on, and those that are new begin with nothing.
func (t *table) with(names []string, guarantee []uint64) *table {
	out := &table{names: names, guarantee: guarantee}
	if t == nil {
		return out
	}
	at := map[string]int{}
	for n, name := range t.names {
		at[name] = n
	}
	moved := func(all []uint64) []uint64 {
		to := make([]uint64, len(names))
		for i, name := range names {
			if n, ok := at[name]; ok && n < len(all) {
				to[i] = all[n]
			}
		}
		return to
	}
	for _, pair := range []struct {
		to   *reading
		from reading
	}{{&out.was, t.was}, {&out.now, t.now}, {&out.base, t.base}} {
		*pair.to = reading{
			at: pair.from.at, bytes: moved(pair.from.bytes), backlog: moved(pair.from.backlog), drops: moved(pair.from.drops), marks: moved(pair.from.marks), delay: moved(pair.from.delay),
			queued: moved(pair.from.queued), queuedBytes: moved(pair.from.queuedBytes), readAt: moved(pair.from.readAt),
		}
	}
	return out
}

// rate is what a group had from one report to the next.
func (t *table) rate(n int) unit.Rate {
	if t.was.at == 0 || n >= len(t.was.bytes) || n >= len(t.now.bytes) {
		return 0
	}
	return unit.Rate(usage.Rate(t.was.counters(n), t.now.counters(n)))
}

// delay is how long packets of a group that carries something wait, nil if its agent does not measure it.
func (t *table) delay(n int) *int64 {
	if t.rate(n) == 0 {
		return nil // what waited last may have done so long ago
	}
	return counted(t.now.delay, n)
}

// judge tells which groups had less than their guarantee, if there is a reading to judge by.
func (t *table) judge() {
	if t.base.at != 0 && t.now.at-t.base.at < usage.Least && t.now.at >= t.base.at {
		return
	}
	risk := make([]bool, len(t.names))
	for n := range risk {
		known := n < len(t.guarantee) && n < len(t.base.bytes) && n < len(t.now.bytes)
		risk[n] = known && usage.Unmet(t.base.counters(n), t.now.counters(n), unit.Rate(t.guarantee[n]))
	}
	t.base, t.risk = t.now, risk
}

// atRisk tells whether a group waits and has less than it is guaranteed.
func (t *table) atRisk(n int) bool { return n < len(t.risk) && t.risk[n] }

// times are times as counters are.
func times(all []int64) []uint64 {
	out := make([]uint64, len(all))
	for i, v := range all {
		out[i] = uint64(v)
	}
	return out
}
