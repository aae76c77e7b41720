package reserve

import (
	"slices"
	"testing"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"
)

// oracle is the slow oracle of a book: it has the reservations and claims alone, and tries every set of simple paths and
// every moment.
type oracle struct {
	top     *fabric.Topology
	granted []Reservation
	held    map[fabric.LinkID]unit.Rate
}

func newOracle(b *Book) oracle {
	o := oracle{top: b.ledger.top, granted: b.All(), held: map[fabric.LinkID]unit.Rate{}}
	for id, claims := range b.held {
		for _, rate := range claims {
			o.held[id] += rate
		}
	}
	return o
}

// without is the oracle of the book without a reservation.
func (o oracle) without(id ID) oracle {
	o.granted = slices.DeleteFunc(slices.Clone(o.granted), func(r Reservation) bool { return r.Request.ID == id })
	return o
}

func (o oracle) limit(id fabric.LinkID) unit.Rate {
	capacity := unit.Rate(0)
	if l, ok := o.top.Link(id); ok {
		if capacity = l.Capacity; l.Reservable > 0 {
			capacity = capacity * unit.Rate(l.Reservable) / 100
		}
	}
	for _, at := range []fabric.PortID{id.From, id.To} {
		if p, ok := o.top.Port(at); ok && capacity == 0 {
			capacity = p.Speed
		}
	}
	return capacity
}

// used is what is claimed of a link at a moment.
func (o oracle) used(id fabric.LinkID, at time.Time) unit.Rate {
	sum := o.held[id]
	for _, r := range o.granted {
		if at.Before(r.Since) || !at.Before(r.End) {
			continue
		}
		forward, reverse := unit.Rate(0), unit.Rate(0)
		for _, p := range r.Paths {
			if slices.Contains(p.Links, id) {
				sum += p.Forward
			}
			if slices.Contains(p.Links, id.Reverse()) {
				sum += p.Reverse
			}
			if !p.Spare {
				forward, reverse = forward+p.Forward, reverse+p.Reverse
			}
		}
		if id == Uplink(r.Request.Source.At) || id == Downlink(r.Request.Destination.At) {
			sum += forward
		}
		if id == Uplink(r.Request.Destination.At) || id == Downlink(r.Request.Source.At) {
			sum += reverse
		}
	}
	return sum
}

// moments are all at which what is used may change.
func (o oracle) moments() (all []time.Time) {
	for _, r := range o.granted {
		all = append(all, r.Since, r.End)
	}
	slices.SortFunc(all, time.Time.Compare)
	return slices.Compact(all)
}

// enough reports whether a link has a rate at every moment of [from, to).
func (o oracle) enough(id fabric.LinkID, rate unit.Rate, from, to time.Time) bool {
	for _, at := range append(o.moments(), from) {
		if !at.Before(from) && at.Before(to) && o.used(id, at)+rate > o.limit(id) {
			return false
		}
	}
	return true
}

// fits reports whether there are paths for the rates of a request in [from, to).
func (o oracle) fits(r Request, from, to time.Time) bool {
	n := max(r.Paths, 1)
	part := func(rate unit.Rate) unit.Rate { return (rate + unit.Rate(n) - 1) / unit.Rate(n) }
	s, d := r.Source.At, r.Destination.At
	for id, rate := range map[fabric.LinkID]unit.Rate{Uplink(s): r.Forward, Downlink(d): r.Forward, Uplink(d): r.Reverse, Downlink(s): r.Reverse} {
		if !o.enough(id, rate, from, to) {
			return false
		}
	}
	good := func(p fabric.Path) bool {
		for _, id := range p {
			if slices.Contains(r.Avoid, id) || slices.Contains(r.Avoid, id.Reverse()) || !o.enough(id, part(r.Forward), from, to) {
				return false
			}
			if r.Reverse > 0 && !(o.top.Usable(id.Reverse()) && o.enough(id.Reverse(), part(r.Reverse), from, to)) {
				return false
			}
		}
		return true
	}
	paths := simple(o.top, s.Switch, d.Switch)
	paths = slices.DeleteFunc(paths, func(p fabric.Path) bool { return !good(p) })
	count := n
	if r.Protected {
		count++
	}
	return disjoint(paths, nil, count, r.Disjoint)
}

// disjoint reports whether paths have a set of count disjoint ones, with those chosen.
func disjoint(paths, chosen []fabric.Path, count int, by fabric.Disjointness) bool {
	if len(chosen) == count {
		return true
	}
	for i, p := range paths {
		if !slices.ContainsFunc(chosen, func(q fabric.Path) bool { return share(p, q, by) }) && disjoint(paths[i+1:], append(chosen, p), count, by) {
			return true
		}
	}
	return false
}

func share(p, q fabric.Path, by fabric.Disjointness) bool {
	for i, l := range p {
		for j, m := range q {
			if l == m || l == m.Reverse() || by == fabric.BySwitch && i > 0 && j > 0 && l.From.Switch == m.From.Switch {
				return true
			}
		}
	}
	return false
}

// earliest is the first start, not before from, for a request, and false if there is none.
func (o oracle) earliest(r Request, from time.Time) (time.Time, bool) {
	for _, start := range append([]time.Time{from}, o.moments()...) {
		if !start.Before(from) && o.fits(r, start, start.Add(r.Duration)) {
			return start, true
		}
	}
	return time.Time{}, false
}

// oversold checks that nothing is, at any moment from now on.
func oversold(t interface {
	Helper()
	Fatalf(string, ...any)
}, b *Book, now time.Time,
) {
	t.Helper()
	o := newOracle(b)
	for _, at := range append(o.moments(), now) {
		if at.Before(now) {
			continue
		}
		for _, id := range b.ledger.ids {
			if used := o.used(id, at); used > o.limit(id) {
				t.Fatalf("%v has %v reserved of %v at %v", id, used, o.limit(id), at)
			}
		}
	}
	for _, id := range b.ledger.ids {
		steps, limit, _ := b.Calendar(id, now, last)
		if limit != o.limit(id) {
			t.Fatalf("the limit of %v is %v, want %v", id, limit, o.limit(id))
		}
		for _, s := range steps {
			if used := o.used(id, s.At); used != s.Reserved {
				t.Fatalf("the calendar of %v has %v at %v, want %v", id, s.Reserved, s.At, used)
			}
		}
	}
}

// sound checks the paths of a reservation that is not degraded: they are disjoint and usable, and have what is promised.
func sound(t interface {
	Helper()
	Fatalf(string, ...any)
}, o oracle, r Reservation,
) {
	t.Helper()
	q := r.Request
	count := max(q.Paths, 1)
	if q.Protected {
		count++
	}
	if len(r.Paths) != count {
		t.Fatalf("%d paths, want %d", len(r.Paths), count)
	}
	if f, v := r.Rates(); f != r.Forward || v != r.Reverse {
		t.Fatalf("the paths have %v and %v, and %v and %v are promised", f, v, r.Forward, r.Reverse)
	}
	for i, p := range r.Paths {
		at := q.Source.At.Switch
		for _, id := range p.Links {
			if id.From.Switch != at || !o.top.Usable(id) || p.Reverse > 0 && !o.top.Usable(id.Reverse()) {
				t.Fatalf("path %v does not lead over usable links", p.Links)
			}
			at = id.To.Switch
		}
		if at != q.Destination.At.Switch {
			t.Fatalf("path %v does not lead to the destination", p.Links)
		}
		if p.Spare != (q.Protected && i == count-1) {
			t.Fatalf("path %d: spare is %v", i, p.Spare)
		}
		for _, other := range r.Paths[:i] {
			if share(p.Links, other.Links, q.Disjoint) {
				t.Fatalf("paths %v and %v are not disjoint", p.Links, other.Links)
			}
			if p.Spare && (p.Forward < other.Forward || p.Reverse < other.Reverse) {
				t.Fatalf("the spare path has %v, and another one %v", p.Forward, other.Forward)
			}
		}
	}
}

func TestOracleKnowsASmallNetwork(t *testing.T) {
	b := lineBook(t)
	r := between("a", 1, 2, 60*unit.Mbit, zero, time.Hour)
	if _, err := b.Admit(r, zero); err != nil {
		t.Fatal(err)
	}
	o := newOracle(b)
	if o.fits(r, zero, zero.Add(time.Minute)) {
		t.Error("60 Mbit/s fit twice on a link of 100")
	}
	if at, ok := o.earliest(r, zero); !ok || !at.Equal(zero.Add(time.Hour)) {
		t.Errorf("the earliest start is %v, want an hour later", at)
	}
}
