package reserve

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"
)

// Uplink is the identity, in a Book, of what enters the network at a port: the line from its hosts. All reservations and
// claims that begin at the port share it.
func Uplink(p fabric.PortID) fabric.LinkID { return fabric.LinkID{To: p} }

// Downlink is the same for what leaves the network at a port.
func Downlink(p fabric.PortID) fabric.LinkID { return fabric.LinkID{From: p} }

// Limits say how much of each link can be reserved, where that is not the capacity of the topology.
type Limits struct {
	// Ports are the capacities, in each direction, of ports to which hosts are connected. A port that it does not have
	// has the speed that the switch reports, and no limit if the switch reports none.
	Ports map[fabric.PortID]unit.Rate
}

// unlimited is the limit of a port of which no speed is known. It is above every sum of rates, and far from an overflow.
const unlimited = int64(unit.MaxRate) * 1000

// ledger has all that is claimed of the network. Its lines are the links of the topology, in their order, and then both
// directions of each port without a link.
type ledger struct {
	top   *fabric.Topology
	ids   []fabric.LinkID
	index map[fabric.LinkID]int32
	// back is the line of the reverse of each link, -1 if there is none.
	back []int32
	// usable has, for each link, whether it carries traffic.
	usable []bool
	lines  []line
}

// line is what is claimed of one link in one direction, in bit/s.
type line struct {
	// limit is what can be reserved.
	limit int64
	// held is claimed at every moment (Book.Hold).
	held int64
	calendar
}

func newLedger(top *fabric.Topology, limits Limits) *ledger {
	l := &ledger{top: top, index: map[fabric.LinkID]int32{}}
	add := func(id fabric.LinkID, capacity int64) {
		l.index[id] = int32(len(l.ids))
		l.ids, l.lines = append(l.ids, id), append(l.lines, line{limit: capacity})
	}
	for _, k := range top.Links() {
		add(k.LinkID, int64(k.MaxReserved()))
		l.usable = append(l.usable, top.Usable(k.LinkID))
	}
	l.back = make([]int32, len(l.ids))
	for i, id := range l.ids {
		l.back[i] = -1
		if j, ok := l.index[id.Reverse()]; ok {
			l.back[i] = j
		}
	}
	for _, s := range top.Switches() {
		for _, p := range s.Ports {
			at := fabric.PortID{Switch: s.ID, Port: p.No}
			if top.CarriesLink(at) {
				continue
			}
			capacity := int64(p.Speed)
			if r, ok := limits.Ports[at]; ok {
				capacity = int64(r)
			}
			if capacity == 0 {
				capacity = unlimited
			}
			add(Uplink(at), capacity)
			add(Downlink(at), capacity)
		}
	}
	return l
}

// copy returns a ledger that can be changed without effect on this one.
func (l *ledger) copy() *ledger {
	c := *l
	c.lines = slices.Clone(l.lines)
	return &c
}

// claim is a rate that a reservation has on a line in [from, to).
type claim struct {
	id             fabric.LinkID
	from, to, rate int64
}

// claims returns what a reservation has.
func claims(r Reservation) (all []claim) {
	from, to := moment(r.Since), moment(r.End)
	add := func(id fabric.LinkID, rate unit.Rate) {
		if rate > 0 {
			all = append(all, claim{id, from, to, int64(rate)})
		}
	}
	for _, p := range r.Paths {
		for _, id := range p.Links {
			add(id, p.Forward)
			add(id.Reverse(), p.Reverse)
		}
	}
	// The spare path carries what another one loses, so that the ends carry no more.
	forward, reverse := total(r.Paths)
	for _, e := range hostLines(r.Request.Source.At, r.Request.Destination.At, forward, reverse) {
		add(e.id, e.rate)
	}
	return all
}

// hostLine is a line from or to the hosts at a port, and a rate that it carries.
type hostLine struct {
	id   fabric.LinkID
	rate unit.Rate
}

// hostLines are those of traffic between two ports, whatever its paths are.
func hostLines(from, to fabric.PortID, forward, reverse unit.Rate) [4]hostLine {
	return [4]hostLine{{Uplink(from), forward}, {Downlink(to), forward}, {Uplink(to), reverse}, {Downlink(from), reverse}}
}

// take adds the claims of a reservation, and drop removes them. Claims on links that do not exist are left out.
func (l *ledger) take(r Reservation) { l.change(claims(r), 1) }
func (l *ledger) drop(r Reservation) { l.change(claims(r), -1) }

func (l *ledger) change(all []claim, sign int64) {
	for _, c := range all {
		if i, ok := l.index[c.id]; ok {
			l.lines[i].calendar = l.lines[i].add(c.from, c.to, sign*c.rate)
		}
	}
}

// free returns the least rate that can be reserved on a line at every moment of [from, to). It is negative if the line
// is oversold.
func (l *line) free(from, to int64) int64 { return l.limit - l.held - l.highest(from, to) }

// leaves returns the highest level of the line's calendar that leaves a rate.
func (l *line) leaves(rate int64) int64 { return l.limit - l.held - rate }

// first and last bound the times of a calendar: those of which nanoseconds fit 64 bits, and a factor to spare.
var (
	first = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)
	last  = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

func moment(t time.Time) int64 { return t.UnixNano() }

// clock is the opposite of moment.
func clock(at int64) time.Time { return time.Unix(0, at).UTC() }

// scaled returns a*b/c, rounded down, and at most MaxInt64. None is negative, and c is not 0.
func scaled(a, b, c int64) int64 {
	q, _ := divided(a, b, c)
	return q
}

// scaledUp is the same, rounded up.
func scaledUp(a, b, c int64) int64 {
	q, rest := divided(a, b, c)
	if rest > 0 && q < math.MaxInt64 {
		q++
	}
	return q
}

func divided(a, b, c int64) (quotient int64, rest uint64) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return math.MaxInt64, 0
	}
	q, rest := bits.Div64(hi, lo, uint64(c))
	if q > math.MaxInt64 {
		return math.MaxInt64, 0
	}
	return int64(q), rest
}
