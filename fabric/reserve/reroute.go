package reserve

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"headgate.dev/headgate/fabric"
)

// Rerouted is a reservation that Reroute changed.
type Rerouted struct{ Before, After Reservation }

// Reroute replaces the topology, and plans all reservations together that lost a link, that are on a link which is now
// oversold, or that are degraded: the lowest number of a class first, then the greatest rate, then by name. A reservation
// keeps the paths that it still has where others can be found for the rest; its spare path then takes the place of a lost
// one. Where less remains than was promised, it gets the most that there is, without a spare path if need be, and says
// so in Degraded. Reservations that are whole are not moved for others. It returns what changed, in that order.
//
// The state of the ports at the two ends has no effect: a reservation waits for a host that restarts.
func (b *Book) Reroute(top *fabric.Topology, now time.Time) (changed []Rerouted) {
	was := b.ledger
	b.ledger = newLedger(top, b.limits)
	l := b.ledger
	fresh := map[fabric.LinkID]bool{}
	for i, id := range l.ids {
		if j, ok := was.index[id]; ok {
			l.lines[i].calendar = was.lines[j].calendar
		} else {
			fresh[id] = true
		}
		for _, rate := range b.held[id] {
			l.lines[i].held += int64(rate)
		}
	}
	var hit []*rerouting
	for _, one := range b.reservations {
		r := *one
		if len(fresh) > 0 { // what was restored can have claims on links that were not there
			l.change(slices.DeleteFunc(claims(r), func(c claim) bool { return !fresh[c.id] }), 1)
		}
		if !now.Before(r.End) {
			continue
		}
		left := r.Paths
		if dead := func(p Path) bool { return !l.alive(r, p) }; slices.ContainsFunc(left, dead) {
			left = slices.DeleteFunc(slices.Clone(left), dead)
		} else if r.Degraded == "" {
			continue
		}
		h := &rerouting{before: r, kept: r}
		h.kept.Paths = left
		l.drop(r)
		l.take(h.kept)
		hit = append(hit, h)
	}
	hit = b.relieve(hit, now)
	slices.SortFunc(hit, rank)
	for _, h := range hit {
		l.drop(h.kept)
		after := h.before
		after.Since = after.remains(now)
		l.replan(&after, h.kept.Paths)
		if reflect.DeepEqual(after.Paths, h.before.Paths) && after.Degraded == h.before.Degraded {
			after = h.before
		} else {
			after.Generation++
			changed = append(changed, Rerouted{h.before, after})
		}
		b.reservations[after.Request.ID] = &after
		l.take(after)
	}
	return changed
}

// rerouting is a reservation that is planned again, and what it keeps of its paths until then.
type rerouting struct{ before, kept Reservation }

// rank orders reservations by who is planned first.
func rank(r, s *rerouting) int {
	if c := cmp.Compare(r.before.Request.Class, s.before.Request.Class); c != 0 {
		return c
	}
	if c := cmp.Compare(s.before.Forward+s.before.Reverse, r.before.Forward+r.before.Reverse); c != 0 {
		return c
	}
	return compare(r.before.Request.ID, s.before.Request.ID)
}

// relieve takes reservations off the links that are oversold after now, the last in rank first, and returns hit with
// them.
func (b *Book) relieve(hit []*rerouting, now time.Time) []*rerouting {
	l := b.ledger
	if !slices.ContainsFunc(l.lines, func(n line) bool { return n.free(moment(now), never) < 0 }) {
		return hit
	}
	chosen := map[ID]*rerouting{}
	for _, h := range hit {
		chosen[h.before.Request.ID] = h
	}
	var on []*rerouting
	for id, r := range b.reservations {
		h := chosen[id]
		if h == nil {
			h = &rerouting{before: *r, kept: *r}
		}
		if l.burdens(h.kept, now) {
			on = append(on, h)
		}
	}
	slices.SortFunc(on, func(r, s *rerouting) int { return rank(s, r) })
	for _, h := range on {
		if !l.burdens(h.kept, now) {
			continue // others have left
		}
		l.drop(h.kept)
		h.kept.Paths = nil
		if chosen[h.before.Request.ID] == nil {
			hit = append(hit, h)
		}
	}
	return hit
}

// burdens reports whether a reservation has a claim on a line that is oversold at some moment of it from now on.
func (l *ledger) burdens(r Reservation, now time.Time) bool {
	return now.Before(r.End) && slices.ContainsFunc(claims(r), func(c claim) bool { return l.oversold(c, now) })
}

// alive reports whether a path of a reservation carries traffic.
func (l *ledger) alive(r Reservation, p Path) bool {
	for _, at := range []fabric.PortID{r.Request.Source.At, r.Request.Destination.At} {
		if _, ok := l.index[Uplink(at)]; !ok {
			return false
		}
	}
	return !slices.ContainsFunc(p.Links, func(id fabric.LinkID) bool {
		i, ok := l.index[id]
		return !ok || !l.usable[i] || p.Reverse > 0 && (l.back[i] < 0 || !l.usable[l.back[i]])
	})
}

// oversold reports whether the line of a claim is, at some moment of it from now on.
func (l *ledger) oversold(c claim, now time.Time) bool {
	i, ok := l.index[c.id]
	from := max(c.from, moment(now))
	return ok && from < c.to && l.lines[i].free(from, c.to) < 0
}

// replan sets the paths of a reservation from Since on, of which left can stay.
func (l *ledger) replan(r *Reservation, left []Path) {
	r.Paths, r.Degraded = nil, "the port of an end is not in the network"
	if !l.alive(*r, Path{}) {
		return
	}
	from, to := moment(r.Since), moment(r.End)
	a := newAsk(r.rest())
	if r.Paths, r.Degraded = l.complete(a, left, from, to), ""; r.Paths != nil {
		return
	}
	if a.count > a.parts {
		bare := a
		bare.count = a.parts
		if r.Paths, r.Degraded = l.complete(bare, left, from, to), "no spare path has enough bandwidth"; r.Paths != nil {
			return
		}
	}
	r.Degraded = "no path has bandwidth"
	most := int64(0)
	for parts := a.parts; parts >= 1; parts-- {
		less := a
		less.parts, less.count = parts, parts
		if forward := min(l.most(less, l.during(from, to)), a.forward); forward > most {
			less = less.with(forward)
			if paths := l.find(less, from, to); paths != nil {
				most, r.Paths, r.Degraded = forward, less.divide(paths), "the paths that are left have less bandwidth"
			}
		}
	}
	forward, _ := total(left)
	if int64(forward) >= most && len(left) > 0 && forward > 0 {
		r.Paths, r.Degraded = left, "the paths that are left have less bandwidth"
	}
}

// complete returns paths for an ask, of which those of left stay if possible, and nil if there are none.
func (l *ledger) complete(a ask, left []Path, from, to int64) []Path {
	routes := routesOf(left)
	routes = routes[:min(len(routes), a.count)]
	if len(routes) > 0 && l.carries(a, routes, from, to) {
		if len(routes) == a.count {
			return a.divide(routes)
		}
		others := a
		others.closed, others.passed = map[fabric.LinkID]bool{}, map[fabric.DPID]bool{}
		for id := range a.closed {
			others.closed[id] = true
		}
		for _, p := range routes {
			for i, id := range p {
				others.close(id)
				if i > 0 && a.by == fabric.BySwitch {
					others.passed[id.From.Switch] = true
				}
			}
		}
		others.count -= len(routes)
		if more := l.find(others, from, to); more != nil {
			return a.divide(append(routes, more...))
		}
	}
	if routes := l.find(a, from, to); routes != nil {
		return a.divide(routes)
	}
	return nil
}
