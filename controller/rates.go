package controller

import (
	"maps"
	"slices"
	"time"

	"headgate/api/agents"
	"headgate/unit"
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
}

type reading struct {
	at                                  time.Duration // on the agent's clock
	bytes, backlog, drops, marks, delay []uint64
}

// report takes a report in, which has all devices that are divided now.
func (l *link) report(r *agents.Report) {
	for _, d := range r.Devices {
		t := l.tables[d.Dev]
		if t == nil || len(d.Names) > 0 { // other groups than before
			t = t.with(d.Names, d.GuaranteeBps)
			l.tables[d.Dev] = t
		}
		now := reading{time.Duration(r.AtNs), d.Bytes, d.BacklogBytes, d.Drops, d.Marks, d.QueueDelayNs}
		if now.at > t.now.at { // else its agent has not counted anew since the report before
			t.was = t.now
		}
		t.now = now
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
	}{{&out.was, t.was}, {&out.now, t.now}} {
		*pair.to = reading{pair.from.at, moved(pair.from.bytes), moved(pair.from.backlog), moved(pair.from.drops), moved(pair.from.marks), moved(pair.from.delay)}
	}
	return out
}

// rate is what a group had from one report to the next.
func (t *table) rate(n int) unit.Rate {
	took := (t.now.at - t.was.at).Seconds()
	if took <= 0 || n >= len(t.was.bytes) || n >= len(t.now.bytes) || t.now.bytes[n] < t.was.bytes[n] {
		return 0
	}
	return unit.Rate(float64(t.now.bytes[n]-t.was.bytes[n]) * 8 / took)
}

// delay is how long packets of a group that carries something wait, nil if its agent does not measure it.
func (t *table) delay(n int) *int64 {
	if t.rate(n) == 0 {
		return nil // what waited last may have done so long ago
	}
	return counted(t.now.delay, n)
}

// atRisk tells whether a group waits and has less than it is guaranteed.
func (t *table) atRisk(n int) bool {
	return n < len(t.guarantee) && n < len(t.was.backlog) && n < len(t.now.backlog) && t.was.backlog[n] > 0 && t.now.backlog[n] > 0 &&
		!unit.Met(float64(t.rate(n)), float64(t.guarantee[n]))
}
