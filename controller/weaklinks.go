package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/controller/circuits"
	"headgate.dev/headgate/controller/points"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/bottleneck"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/schedule"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/unit"
)

// Values chosen for Headgate.
const (
	// weakLinksInterval is the interval at which the leader looks at new results of measurements.
	weakLinksInterval = 2 * time.Second
	// resultAge is how old a result may be that says something about a link.
	resultAge = 7 * 24 * time.Hour
	// ownLimitPart: a result of more than this part of a limit that Headgate enforced shows the limit.
	ownLimitPart = 0.9
	// near is the part of a rate by which two lower bounds of one limiter differ: of 40 over a shaper of 30 Mbit/s, all but 6 were 28.95 to 29.14.
	near = 0.01
	// readAfter is after what time the counters of ports have been read after a measurement.
	readAfter = 2500 * time.Millisecond
	// othersPart is the part of a rate below which the traffic of others does not hide a limit. A measurement in the other direction is up to 4 %.
	othersPart = 0.05
	// uncertain is the part of a rate by which its interval may be higher. A capacity over a slow link on a busy host had 17 to 1140 Mbit/s.
	uncertain = 0.1
)

// findWeakLinks stores which links give less than their capacity by the newest results of scheduled measurements between hosts with agents. What was found
// of a link stays until a later measurement over it shows more.
func (c *Controller) findWeakLinks(ctx context.Context, t store.Term, now time.Time) error {
	c.cache.mu.Lock()
	network, before, last := c.cache.network, c.cache.weak, maps.Clone(c.cache.probing.last)
	c.cache.mu.Unlock()
	owner, live := c.reservations.Load(), c.switches.Live()
	if network == nil || owner == nil || live == nil {
		return nil
	}
	top, err := c.topology()
	if err != nil {
		return nil // the term of the switches has not begun
	}
	w := weakLinks{top: top, hosts: circuits.HostsAt(top, c.hub.Interfaces())}
	if c.looked.same(w, last) {
		return nil
	}
	docs, _, err := t.Store().All(ctx, store.Prefix(store.Newest), 0)
	if err != nil {
		return err
	}
	// What was beside a result is looked up when it is new: a reservation that is cancelled later leaves no trace in the book, and counters are kept for
	// seconds.
	results, seen, all := map[schedule.Task]store.ProbeResult{}, map[string]beside{}, true
	for _, d := range docs {
		var r store.ProbeResult
		if d.Into(&r) != nil || len(r.Answer) == 0 || now.Sub(r.At) > resultAge {
			continue
		}
		if now.Sub(r.At) < readAfter { // it is looked at next time
			all = false
			continue
		}
		results[r.Task] = r
		if b, known := c.seen[keyOf(r)]; known {
			seen[keyOf(r)] = b
		}
	}
	w.beside = func(r store.ProbeResult, path []fabric.LinkID) beside {
		b, known := seen[keyOf(r)]
		if !known {
			b.reserved = slices.ContainsFunc(owner.Between(r.At.Add(-time.Minute), r.At), func(v reserve.Reservation) bool {
				return slices.ContainsFunc(path, func(l fabric.LinkID) bool { return crosses(v, l) })
			})
			b.others, b.counted = othersTraffic(r, path, live.Readings)
			seen[keyOf(r)] = b
		}
		return b
	}
	found := w.find(results, before)
	c.seen = seen
	if !slices.EqualFunc(found, before, sameFinding) {
		_, err = t.Do(ctx, store.WeakLinksKey, func(tx *store.Tx) error {
			return tx.Put(store.WeakLinksKey, store.WeakLinks{Links: found})
		})
	}
	if err == nil && all {
		c.looked = looked{top.Links(), w.hosts, last}
	}
	return err
}

// keyOf returns what tells a result from all others.
func keyOf(r store.ProbeResult) string { return r.ID + " " + r.From + " " + r.To }

// looked is what the last look for weak links was made with. The end of a measurement changes the time of its pair in the cache, so that the results of
// all pairs are only read when one is new.
type looked struct {
	links []fabric.Link
	hosts map[fabric.PortID]points.Interface
	last  map[schedule.Task]schedule.Last
}

// same reports whether another look would find the same.
func (l looked) same(w weakLinks, last map[schedule.Task]schedule.Last) bool {
	return l.last != nil && maps.Equal(l.last, last) && maps.Equal(l.hosts, w.hosts) && slices.Equal(l.links, w.top.Links())
}

// crosses reports whether a reservation has a path over a link, in any direction.
func crosses(r reserve.Reservation, l fabric.LinkID) bool {
	return slices.ContainsFunc(r.Paths, func(p reserve.Path) bool {
		return slices.Contains(p.Links, l) || slices.Contains(p.Links, l.Reverse())
	})
}

// sameFinding reports whether two findings differ by no more than measurements do.
func sameFinding(a, b store.WeakLink) bool {
	likely := a.Likely == b.Likely || a.Likely != nil && b.Likely != nil && *a.Likely == *b.Likely
	return likely && slices.Equal(a.Links, b.Links) && a.Capacity == b.Capacity && a.Arrived == b.Arrived && a.At.Equal(b.At) && bottleneck.Apart(a.Rate, b.Rate) <= near
}

// weakLinks finds weak links in a network.
type weakLinks struct {
	top   *fabric.Topology
	hosts map[fabric.PortID]points.Interface
	// beside returns what else was on the path of a result.
	beside func(r store.ProbeResult, path []fabric.LinkID) beside
}

// beside is what else was on a path while it was measured.
type beside struct {
	// reserved reports that something was reserved on a link, so that what was not had a limit.
	reserved bool
	// others is the rate of other traffic on the link with the most of it, if counted reports that the switches have counted it.
	others  unit.Rate
	counted bool
}

// othersTraffic returns the rate of other traffic on the links of a path and on the lines of its hosts during a measurement, that of the one with the most. It
// reports false if that is not known of all of them.
func othersTraffic(r store.ProbeResult, over []fabric.LinkID, readings func(fabric.PortID) fabric.Readings) (most unit.Rate, ok bool) {
	var a path.Answer
	if json.Unmarshal(r.Answer, &a) != nil {
		return 0, false
	}
	begin, end := r.At.Add(-time.Duration((a.Seconds+1)*float64(time.Second))), r.At.Add(time.Second)
	for _, l := range over {
		rx, tx, ok := readings(cmp.Or(l.From, l.To)).Between(begin, end)
		if !ok {
			return 0, false
		}
		passed := tx
		if l.From == (fabric.PortID{}) { // the line from a host
			passed = rx
		}
		others := max(0, passed.Bytes-float64(a.Bytes)) * 8 / end.Sub(begin).Seconds()
		most = max(most, unit.Rate(others))
	}
	return most, true
}

// find returns what results show, and what is known of links of which they show nothing.
func (w weakLinks) find(results map[schedule.Task]store.ProbeResult, before []store.WeakLink) (found []store.WeakLink) {
	var all []bottleneck.Measurement
	by := map[unit.Rate]store.ProbeResult{}
	type shows struct {
		rate unit.Rate
		at   time.Time
	}
	shown := map[fabric.LinkID][]shows{} // by the measurements that count
	pairs := map[[2]string]bool{}
	for t := range results {
		pairs[[2]string{t.From, t.To}] = true
	}
	for _, pair := range slices.SortedFunc(maps.Keys(pairs), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		r, m, bounded, ok := newest(results, pair[0], pair[1])
		if !ok {
			continue
		}
		m.Path = w.path(r)
		if m.Path == nil || w.exceeds(m) {
			continue
		}
		b := w.beside(r, m.Path)
		if b.reserved {
			continue
		}
		// Other traffic may hide a limit: not if the switches counted none.
		if bounded && b.counted && float64(b.others) < othersPart*float64(m.Rate) {
			m.AtLeast = false
		}
		all = append(all, m)
		by[m.Rate] = r
		for _, l := range m.Path {
			shown[l] = append(shown[l], shows{m.Rate, r.At})
		}
	}
	w.agree(all)
	for _, f := range bottleneck.Find(w.capacity, all) {
		r := by[f.Rate]
		one := store.WeakLink{Rate: fourDigits(f.Rate), From: r.From, To: r.To, At: r.At}
		for _, l := range f.Links {
			one.Links = append(one.Links, store.LinkOf(l))
			for _, s := range shown[l] {
				if s.at.After(one.At) {
					one.At = s.at
				}
			}
			if c := w.capacity(l); one.Capacity == 0 || c < one.Capacity {
				one.Capacity = c
			}
		}
		if f.Likely != (fabric.LinkID{}) {
			likely := store.LinkOf(f.Likely)
			one.Likely, one.Capacity = &likely, w.capacity(f.Likely)
		}
		for _, b := range before { // what arrived counts until another rate is measured
			if slices.Equal(b.Links, one.Links) && bottleneck.Same(b.Rate, one.Rate) && b.Arrived < one.Rate {
				one.Arrived = b.Arrived
			}
		}
		if slices.ContainsFunc(f.Links, w.isLink) { // the line of a host alone is no matter of the network
			found = append(found, one)
		}
	}
	// What was found stays until a later measurement shows more: fewer that count, as while something is reserved, show nothing. It is not given up for a longer
	// list of suspects.
	for _, f := range before {
		refuted := slices.ContainsFunc(f.Links, func(l store.ReservationLink) bool {
			return slices.ContainsFunc(shown[l.ID()], func(s shows) bool { return s.at.After(f.At) && s.rate > f.Rate && !bottleneck.Same(s.rate, f.Rate) })
		})
		if refuted {
			continue
		}
		found = slices.DeleteFunc(found, func(one store.WeakLink) bool { return len(one.Links) > len(f.Links) && overlap(one, f) })
		if !slices.ContainsFunc(found, func(one store.WeakLink) bool { return overlap(one, f) }) {
			found = append(found, f)
		}
	}
	slices.SortFunc(found, func(a, b store.WeakLink) int {
		return cmp.Or(cmp.Compare(len(a.Links), len(b.Links)), slices.CompareFunc(a.Links, b.Links, func(l, m store.ReservationLink) int { return l.ID().Compare(m.ID()) }))
	})
	return found
}

// overlap reports whether two findings have a suspect in common.
func overlap(a, b store.WeakLink) bool {
	return slices.ContainsFunc(a.Links, func(l store.ReservationLink) bool { return slices.Contains(b.Links, l) })
}

// agree takes lower bounds for the rates themselves where another path over one of the links has the same bound: other traffic, which hides a token rate, would not
// be the same twice. A limiter was found on both, or on one if they are as close as measurements of one limiter are.
func (w weakLinks) agree(all []bottleneck.Measurement) {
	over := map[fabric.LinkID][]int{} // the measurements over each link, without the lines of hosts
	for i, m := range all {
		for _, l := range m.Path {
			if w.isLink(l) {
				over[l] = append(over[l], i)
			}
		}
	}
	before := slices.Clone(all)
	confirms := func(a, b bottleneck.Measurement) bool {
		return a.Limited && b.Limited && bottleneck.Same(a.Rate, b.Rate) || (a.Limited || b.Limited) && bottleneck.Apart(a.Rate, b.Rate) <= near
	}
	for i, m := range before {
		if m.AtLeast {
			all[i].AtLeast = !slices.ContainsFunc(m.Path, func(l fabric.LinkID) bool {
				return slices.ContainsFunc(over[l], func(j int) bool { return i != j && confirms(m, before[j]) })
			})
		}
	}
}

// exceeds reports whether a measurement shows more than the capacity of a link of its path, so that one of both is wrong: what a busy host held back arrives at
// once, and 1.4 Gbit/s were measured over a port of 200 Mbit/s (bench loop).
func (w weakLinks) exceeds(m bottleneck.Measurement) bool {
	return slices.ContainsFunc(m.Path, func(l fabric.LinkID) bool {
		c := w.capacity(l)
		return c > 0 && m.Rate > c && !bottleneck.Same(m.Rate, c)
	})
}

// isLink reports whether a link is between switches, and not the line of a host.
func (w weakLinks) isLink(id fabric.LinkID) bool {
	_, ok := w.top.Link(id)
	return ok
}

// fourDigits rounds a rate down to four digits: no measurement has more.
func fourDigits(r unit.Rate) unit.Rate {
	step := unit.Rate(1)
	for r/step >= 10_000 {
		step *= 10
	}
	return r - r%step
}

// newest returns the latest result of a pair of hosts that has a rate, and the rate: the least of capacity and token rate, or of what is known of them. bounded
// reports that a limit was seen, and that other traffic may have hidden a part of its rate. It reports false if no rate is known, or if Headgate itself
// limited what was measured.
func newest(results map[schedule.Task]store.ProbeResult, from, to string) (last store.ProbeResult, m bottleneck.Measurement, bounded, ok bool) {
	capacity, tokens, baseline := probe.NoEstimate("not measured"), probe.NoEstimate("not measured"), probe.NoEstimate("not measured")
	for _, measure := range []string{"capacity", "tokenrate", "limiter", "path", "credits"} { // a path has all but the last
		r, there := results[schedule.Task{From: from, To: to, Measure: measure}]
		var a path.Answer
		if !there || json.Unmarshal(r.Answer, &a) != nil {
			continue
		}
		later := r.At.After(last.At)
		if e := a.Capacity; e != nil && e.Known() && !e.Carried() && (later || !capacity.Known()) {
			capacity = *e
		}
		if a.Credits != nil {
			baseline = a.Credits.Baseline
		} else if t := a.TokenRate; t != nil && (later || !tokens.Known()) {
			tokens, m.Bytes, m.Took = t.Rate.WithoutCarried(), 0, 0
			bounded = tokens.Known() && tokens.AtLeast
			if !tokens.Known() && t.Joint != nil { // no limit was found, up to this rate
				tokens, m.Bytes, m.Took = probe.Estimate{Value: t.Joint.Rate, AtLeast: true}, t.Joint.Bytes, t.Joint.Took
			}
		}
		if a.Limiter != nil && (later || !m.Limited) {
			m.Limited = a.HasBucket()
		}
		if later {
			last = r
		}
	}
	if baseline.Known() && (!tokens.Known() || tokens.Value > baseline.Value) {
		// Shorter trains passed on the burst credits of a limiter, which shows to a longer transfer.
		tokens, m.Bytes, m.Took, m.Limited, bounded = baseline, 0, 0, true, false
	}
	if tokens.Known() && !certain(tokens) { // only the lower end of its interval says something
		tokens = probe.Estimate{Value: tokens.Low, AtLeast: true}
	}
	if !tokens.Known() || tokens.Value == 0 {
		return last, m, false, false
	}
	m.Rate, m.AtLeast = unit.Rate(tokens.Value), tokens.AtLeast
	if c := unit.Rate(capacity.Value); capacity.Known() && !capacity.AtLeast && certain(capacity) && (c < m.Rate || m.AtLeast && bottleneck.Same(c, m.Rate)) {
		m.Rate, m.AtLeast = c, false
	}
	return last, m, bounded && m.AtLeast, last.OwnLimit == 0 || float64(m.Rate) < ownLimitPart*float64(last.OwnLimit)
}

// certain reports whether an estimate's interval is narrow enough for its value to say something.
func certain(e probe.Estimate) bool { return e.High <= e.Value*(1+uncertain) }

// path returns the links that a measurement crossed, with the lines of both hosts, nil if they are not known.
func (w weakLinks) path(r store.ProbeResult) []fabric.LinkID {
	from, ok := w.port(r.From, r.FromDevices)
	to, there := w.port(r.To, r.ToDevices)
	if !ok || !there {
		return nil
	}
	links, ok := w.top.Shortest(from.Switch, to.Switch, fabric.Cost, nil)
	if !ok {
		return nil
	}
	return slices.Concat([]fabric.LinkID{reserve.Uplink(from)}, links, []fabric.LinkID{reserve.Downlink(to)})
}

// port returns the port at which a host has one of some devices.
func (w weakLinks) port(host string, devices []string) (at fabric.PortID, ok bool) {
	for port, i := range w.hosts {
		if i.Host == host && slices.Contains(devices, i.Dev) {
			return port, true
		}
	}
	return at, false
}

// capacity returns what is configured or reported of a link, 0 if that is not known.
func (w weakLinks) capacity(id fabric.LinkID) unit.Rate {
	if l, ok := w.top.Link(id); ok {
		return cmp.Or(l.Nominal, l.Capacity)
	}
	at := id.From
	if at == (fabric.PortID{}) {
		at = id.To
	}
	p, _ := w.top.Port(at)
	return p.Speed
}

// configured returns the configuration of the network with the measured capacities that it puts in force, nil without one. c.mu must be held.
func (c *contents) configured() *fabric.Config {
	if c.network == nil {
		return nil
	}
	out := *c.network
	out.Measured = map[fabric.LinkID]unit.Rate{}
	for _, w := range c.weak {
		if inForce(c.network, w) {
			out.Measured[w.Links[0].ID()] = w.Gives()
		}
	}
	return &out
}

// inForce reports whether it is known which link gives less, and the operator lets what was measured of it be in force.
func inForce(n *fabric.Config, w store.WeakLink) bool {
	return len(w.Links) == 1 && n.ApplyMeasured > 0 && uint64(w.Gives())*100 >= uint64(w.Capacity)*uint64(n.ApplyMeasured)
}

// weakLinkFaults returns the links that were found.
func (c *Controller) weakLinkFaults() (all []fabric.Fault) {
	c.cache.mu.Lock()
	network, weak := c.cache.network, c.cache.weak
	c.cache.mu.Unlock()
	top, err := c.topology()
	if network == nil || err != nil {
		return nil
	}
	for _, w := range weak {
		id := w.Links[0].ID()
		if w.Likely != nil {
			id = w.Likely.ID()
		}
		f := fabric.Fault{Kind: fabric.WeakLink, Port: id.From}
		if f.Port == (fabric.PortID{}) {
			f.Port = id.To
		}
		f.Text = weakText(top, network, w)
		all = append(all, f)
	}
	return all
}

// weakText says what was found, and what to do.
func weakText(top *fabric.Topology, n *fabric.Config, w store.WeakLink) string {
	var names []string
	for _, l := range w.Links {
		if w.Likely == nil || l != *w.Likely {
			names = append(names, reserve.LinkLabel(top, l.ID()))
		}
	}
	gives := fmt.Sprintf("gives %v and not its capacity of %v, measured from %s to %s at %s", w.Rate, w.Capacity, w.From, w.To, w.At.UTC().Format(time.DateTime))
	if w.Arrived > 0 {
		gives += fmt.Sprintf(", and %v arrived at its end while more was sent", w.Arrived)
	}
	switch {
	case w.Likely != nil:
		return fmt.Sprintf("%s probably %s: all measurements that show this rate have it in common, and nothing else. Not excluded is that several of %s give no more: schedule measurements between hosts at each of these switches, or write the capacity where you know it",
			reserve.LinkLabel(top, w.Likely.ID()), gives, strings.Join(names, ", "))
	case len(w.Links) > 1:
		return fmt.Sprintf("one of %s %s; schedule measurements between hosts at each of these switches to find which", strings.Join(names, ", "), gives)
	case w.Links[0].ID().From == (fabric.PortID{}) || w.Links[0].ID().To == (fabric.PortID{}):
		return fmt.Sprintf("%s %s", names[0], gives)
	case inForce(n, w):
		return fmt.Sprintf("%s %s; the measured capacity is in force (apply_measured: %d%%)", names[0], gives, n.ApplyMeasured)
	case n.ApplyMeasured > 0:
		return fmt.Sprintf("%s %s, which is less than apply_measured: %d%% lets be in force; write capacity: %v for the link", names[0], gives, n.ApplyMeasured, w.Gives())
	}
	return fmt.Sprintf("%s %s; write capacity: %[3]v for the link, or apply_measured: %[4]d%% to put what is measured in force", names[0], gives, w.Gives(), max(1, uint64(w.Gives())*90/max(1, uint64(w.Capacity))))
}
