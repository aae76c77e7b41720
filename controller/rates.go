package controller

import (
	"maps"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/unit"
	"headgate.dev/headgate/usage"
)

// watchTimeout is how long an agent keeps the short report interval after the last request for rates.
const watchTimeout = 5 * time.Second

// watch has the agent report at the short interval while clients keep requesting rates.
func (l *link) watch(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// A single request does not change the report interval.
	again := now.Sub(l.lastWatched) < watchTimeout
	l.lastWatched = now
	if again && !l.fastReports {
		l.fastReports = l.trySend(agents.To(&agents.Watch{Closely: true}))
	}
}

// unwatch returns to the normal report interval after the last request for rates. It is called with
// each report.
func (l *link) unwatch(now time.Time) {
	if l.fastReports && now.Sub(l.lastWatched) > watchTimeout {
		l.fastReports = !l.trySend(agents.To(&agents.Watch{}))
	}
}

// trySend queues a message for the agent, and returns false if the queue is full.
func (l *link) trySend(m *agents.ToAgent) bool {
	select {
	case l.out <- m:
		return true
	default:
		return false
	}
}

// table holds the counters of a device's groups: the latest report and the one before.
type table struct {
	names             []string
	guarantee         []uint64
	current, previous reading
	// parents are the indexes of the groups' parents, -1 at the top, and leaves are the groups without a child.
	parents []int
	leaves  []bool
	used    []usage.Usage // between was and now, in the order of names; nil until it is needed
	// risk is, by group, whether the group got less than its guarantee between base and a later reading.
	base reading
	risk []bool
}

type reading struct {
	at                                  time.Duration // on the agent's clock
	bytes, backlog, drops, marks, delay []uint64
	queued, queuedBytes, readAt         []uint64 // empty if the agent does not send them
	directions                          []*agents.DirectionReport
}

// counters returns the counters of group n.
func (r *reading) counters(n int) usage.Counters {
	of := func(all []uint64) uint64 {
		if n < len(all) {
			return all[n]
		}
		return 0
	}
	c := usage.Counters{Bytes: of(r.bytes), Drops: of(r.drops), Marks: of(r.marks), Backlog: of(r.backlog), QueuedFor: time.Duration(of(r.queued)), Queued: of(r.queuedBytes), At: time.Unix(0, int64(r.at))}
	if at := of(r.readAt); at != 0 {
		c.At = time.Unix(0, int64(at))
	}
	return c
}

// report stores a report, which contains all devices that are shaped now.
func (l *link) report(r *agents.Report) {
	for _, d := range r.Devices {
		t := l.tables[d.Dev]
		if t == nil || len(d.Names) > 0 { // the groups have changed
			t = t.withGroups(d.Names, d.GuaranteeBps)
			l.tables[d.Dev] = t
		}
		now := reading{
			at: time.Duration(r.AtNs), bytes: d.Bytes, backlog: d.BacklogBytes, drops: d.Drops, marks: d.Marks, delay: d.QueueDelayNs,
			queued: d.QueuedNs, queuedBytes: d.QueuedBytes, readAt: asUint64(d.ReadAtNs), directions: d.Directions,
		}
		if now.at > t.current.at { // otherwise the report repeats the counters of the previous one
			t.previous = t.current
		}
		t.current, t.used = now, nil
		t.updateRisk()
	}
	if len(l.tables) > len(r.Devices) {
		maps.DeleteFunc(l.tables, func(dev string, _ *table) bool {
			return !slices.ContainsFunc(r.Devices, func(d *agents.DeviceReport) bool { return d.Dev == dev })
		})
	}
}

// withGroups returns a table for changed groups: existing groups keep their counters, new ones start at 0.
func (t *table) withGroups(names []string, guarantee []uint64) *table {
	out := &table{names: names, guarantee: guarantee}
	out.linkParents()
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
	}{{&out.previous, t.previous}, {&out.current, t.current}, {&out.base, t.base}} {
		*pair.to = reading{
			at: pair.from.at, bytes: moved(pair.from.bytes), backlog: moved(pair.from.backlog), drops: moved(pair.from.drops), marks: moved(pair.from.marks), delay: moved(pair.from.delay),
			queued: moved(pair.from.queued), queuedBytes: moved(pair.from.queuedBytes), readAt: moved(pair.from.readAt),
			directions: pair.from.directions,
		}
	}
	return out
}

// linkParents sets the parents and leaves of the groups.
func (t *table) linkParents() {
	at := map[string]int{}
	t.parents, t.leaves = make([]int, len(t.names)), make([]bool, len(t.names))
	for n, name := range t.names {
		at[name], t.leaves[n] = n, true
	}
	for n, name := range t.names {
		direction, path, _ := strings.Cut(name, "/")
		t.parents[n] = -1
		if parent, _ := group.Split(path); parent != "" {
			if p, ok := at[direction+"/"+parent]; ok {
				t.parents[n], t.leaves[p] = p, false
			}
		}
	}
}

// usage returns the usage of each group between the last two readings, in the order of names.
func (t *table) usage() []usage.Usage {
	if t.used != nil {
		return t.used
	}
	t.used = make([]usage.Usage, len(t.names))
	for _, direction := range []string{"out", "in"} {
		is, index := t.direction(direction, &t.current)
		before, _ := t.direction(direction, &t.previous)
		counters := before.Counters()
		if t.previous.at == 0 {
			clear(counters)
		}
		for n, u := range usage.Account(counters, is) {
			t.used[index[n]] = u
		}
	}
	return t.used
}

// direction returns one direction of a reading, and the index in names of each of its groups.
func (t *table) direction(name string, r *reading) (out usage.Direction, index []int) {
	out.Name = name
	for _, d := range r.directions {
		if d.Name == name {
			out.Limit, out.Control = unit.Rate(d.LimitBps), usage.Counters{Bytes: d.ControlBytes}
		}
	}
	at := make([]int, len(t.names))
	for n, key := range t.names {
		path, of := strings.CutPrefix(key, name+"/")
		if !of {
			continue
		}
		g := usage.Group{Path: path, Parent: -1, Leaf: t.leaves[n], Counters: r.counters(n)}
		if n < len(t.guarantee) {
			g.Guarantee = unit.Rate(t.guarantee[n])
		}
		if p := t.parents[n]; p >= 0 && p < n {
			g.Parent = at[p]
		}
		at[n] = len(index)
		index = append(index, n)
		out.Groups = append(out.Groups, g)
	}
	return out, index
}

// rate returns the rate of group n between the last two readings.
func (t *table) rate(n int) unit.Rate {
	u := t.usage()[n]
	return unit.Rate(u.Rate(u.Delivered))
}

// delay returns the queue delay of group n, nil without traffic or if the agent does not measure it.
func (t *table) delay(n int) *int64 {
	if t.rate(n) == 0 {
		return nil // the last measured delay may be old
	}
	return counterAt(t.current.delay, n)
}

// updateRisk updates which groups got less than their guarantee, once base is old enough.
func (t *table) updateRisk() {
	if t.base.at != 0 && t.current.at-t.base.at < usage.MinInterval && t.current.at >= t.base.at {
		return
	}
	risk := make([]bool, len(t.names))
	for n := range risk {
		known := n < len(t.guarantee) && n < len(t.base.bytes) && n < len(t.current.bytes)
		risk[n] = known && usage.Unmet(t.base.counters(n), t.current.counters(n), unit.Rate(t.guarantee[n]))
	}
	t.base, t.risk = t.current, risk
}

// atRisk reports whether group n has a backlog and gets less than its guarantee.
func (t *table) atRisk(n int) bool { return n < len(t.risk) && t.risk[n] }

// asUint64 converts timestamps to the type of counters.
func asUint64(all []int64) []uint64 {
	out := make([]uint64, len(all))
	for i, v := range all {
		out[i] = uint64(v)
	}
	return out
}
