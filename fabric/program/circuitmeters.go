package program

import (
	"cmp"
	"fmt"
	"slices"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/unit"
)

// The bursts of meters, in parts of a second of the rate: with these UDP has its rate exactly, and TCP comes near it. A meter without a burst
// has one of a second in Open vSwitch (measured with 3.1 on its userspace datapath). A bucket is full after each pause, and after each change of
// the meter.
const (
	// With a tenth of a second for UDP a flow passed more than 105 % of its limit in up to 3 % of the seconds, of 440 (bench reservations, exact).
	// With 40 ms it was in one at most.
	burstUnresponsive, burstTCP = 25, 2
	// The limit of what is not reserved changes whenever reservations grow or shrink. Half a second of its rate is more than the queue of a link
	// holds, and reservations lost packets there; with a tenth, TCP that is not reserved had 3/4 of its rate.
	burstRest = 5
	// burstLink is in parts of a second of the slowest link that traffic crosses. TCP passes more than its limit while it empties its bucket, and what it
	// passes more waits in the queue of the link, for as long as limits total the capacity. Without this bound a queue of 50 ms was always full: what
	// was reserved beside TCP lost 0.2 to 0.8 % (bench reservations, exact/lost/tcp), with 40 ms 0.03 to 0.15, and with 20 ms nothing, while the TCP had 0.5 %
	// less. leastBurstTCP is in kbit: 32 frames of 1,522 bytes, which links below 20 Mbit/s send in more than 20 ms. With 16 all traffic had 98.1 % of the ideal, and 98.8
	// without the bound (table 4.1, random, TCP, 5 Mbit/s).
	burstLink, leastBurstTCP = 50, 390
	// burstFull is in parts of a second of that link, for UDP: 5 ms. Each change of a meter fills its bucket, and what is not reserved has another limit in most
	// cycles: with 40 ms of its rate it passed 2 % of a link of 100 Mbit/s more than its limit in each.
	burstFull = 200
	// leastBurst is in kbit: two frames of 1,522 bytes. A bucket with less would pass less than its rate.
	leastBurst = 25
)

// circuitMeter is a meter of circuits.
type circuitMeter struct {
	numbers []uint32  // of the circuits, sorted
	limit   Limit     // the sum of theirs, unresponsive if all are
	rest    bool      // what is not reserved passes it
	link    unit.Rate // the capacity of the slowest link that its traffic crosses, 0 if it crosses none
}

func (m circuitMeter) equal(o circuitMeter) bool {
	return m.limit == o.limit && m.rest == o.rest && m.link == o.link && slices.Equal(m.numbers, o.numbers)
}

// assignMeters gives the circuits of a switch meters, begins and circuits in the same order. If it has too few, all circuits of a class
// share one, those of the class with the most first, because that saves the most.
func (p *circuitPlanner) assignMeters(s fabric.Switch, begins []begin, circuits []*planned) {
	budget := metersFor(s)
	needed, byClass := 0, map[int][]int{}
	for n, c := range circuits {
		if c.Rate > 0 {
			needed++
			class := c.Class
			if c.Unreserved { // of each port by itself: a sum would say nothing about either
				class = -1 - n
			}
			byClass[class] = append(byClass[class], n)
		}
	}
	classes := make([]int, 0, len(byClass))
	for k := range byClass {
		classes = append(classes, k)
	}
	slices.SortFunc(classes, func(a, b int) int { return cmp.Or(cmp.Compare(len(byClass[b]), len(byClass[a])), cmp.Compare(b, a)) })
	shared := map[int]bool{}
	for _, k := range classes {
		if needed <= budget {
			break
		}
		needed -= len(byClass[k]) - 1
		shared[k] = true
	}
	meters := map[openflow.MeterID]circuitMeter{}
	ids := slots{size: uint32(firstPortMeter) - 1}
	left := budget
	for _, k := range classes {
		sets := [][]int{byClass[k]}
		if !shared[k] {
			sets = nil
			for _, n := range byClass[k] {
				sets = append(sets, []int{n})
			}
		}
		for _, set := range sets {
			if left == 0 {
				for _, n := range set {
					p.lack(circuits[n].Number, fmt.Sprintf("it has no limit, because switch %s has no meter for it", p.t.SwitchLabel(s.ID)))
				}
				continue
			}
			left--
			m := circuitMeter{limit: Limit{Unresponsive: true}, rest: circuits[set[0]].Unreserved}
			id := openflow.MeterID(1 + ids.take(circuits[set[0]].Number))
			for _, n := range set {
				m.numbers, m.limit = append(m.numbers, circuits[n].Number), m.limit.and(circuits[n].Limit())
				m.link = slower(m.link, p.slowest(circuits[n]))
				begins[n].meter = id
			}
			slices.Sort(m.numbers)
			meters[id] = m
			for _, n := range m.numbers {
				p.shares(n, id, m.numbers)
			}
		}
	}
	p.meters[s.ID] = meters
}

// slowest returns the capacity of the slowest link that a circuit crosses, 0 if it crosses none.
func (p *circuitPlanner) slowest(c *planned) (rate unit.Rate) {
	if l, ok := p.t.LinkFrom(c.From); ok && c.Unreserved {
		return l.Capacity
	}
	for _, path := range c.Paths {
		for _, id := range path {
			if l, ok := p.t.Link(id); ok {
				rate = slower(rate, l.Capacity)
			}
		}
	}
	return rate
}

// slower returns the lower of two rates, of which 0 is none.
func slower(a, b unit.Rate) unit.Rate {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

func (p *circuitPlanner) lack(number uint32, text string) {
	s := p.states[number]
	s.Lacks = append(s.Lacks, text)
	p.states[number] = s
}

func (p *circuitPlanner) shares(number uint32, id openflow.MeterID, with []uint32) {
	s := p.states[number]
	s.Meter = id
	if len(with) > 1 {
		s.Shares = slices.DeleteFunc(slices.Clone(with), func(n uint32) bool { return n == number })
		s.Lacks = append(s.Lacks, fmt.Sprintf("it shares a meter with %d other circuits of class %d, because switch %s has few: they are held to the sum of their rates", len(s.Shares), s.Class, p.t.SwitchLabel(s.At())))
	}
	p.states[number] = s
}

// At returns the switch at which a circuit begins.
func (c *Circuit) At() fabric.DPID { return c.From.Switch }

// metersFor returns how many meters of a switch are for circuits: those that ports have for the controller are left out.
func metersFor(s fabric.Switch) int {
	c := s.Capabilities
	all := min(c.Meters, int(firstPortMeter)-1)
	if formOf(c).meters {
		all = min(all, c.Meters-max(needMeters/2, len(s.Ports)*int(Classes)))
	}
	return max(all, 0)
}

// and returns the limit of two circuits together.
func (l Limit) and(o Limit) Limit { return Limit{l.Rate + o.Rate, l.Unresponsive && o.Unresponsive} }

// band returns the flags and the band of a meter with a limit: it drops what exceeds it.
func (m circuitMeter) band(l Limit) (openflow.MeterFlags, []openflow.Band) {
	kbits := (max(l.Rate, 1) + unit.Kbit - 1) / unit.Kbit
	kbits = min(kbits, 1<<32-1)
	burst := max(parts(kbits, burstUnresponsive), leastBurst)
	switch {
	case l.Unresponsive && m.link > 0:
		burst = max(min(burst, parts(m.link/unit.Kbit, burstFull)), leastBurst)
	case !l.Unresponsive:
		most := parts(kbits, burstTCP)
		if m.rest {
			most = parts(kbits, burstRest)
		}
		if m.link > 0 {
			most = min(most, max(burst, leastBurstTCP, parts(m.link/unit.Kbit, burstLink)))
		}
		burst = max(burst, most)
	}
	return openflow.MeterKbps | openflow.MeterBurst, []openflow.Band{openflow.DropBand{BandLimit: openflow.BandLimit{Rate: uint32(kbits), Burst: uint32(burst)}}}
}

// parts returns what is sent in one of several parts of a second, rounded up.
func parts(rate unit.Rate, of unit.Rate) unit.Rate { return (rate + of - 1) / of }

// meter returns a meter of circuits with a limit.
func (m circuitMeter) meter(id openflow.MeterID, l Limit) Meter {
	why := fmt.Sprintf("hold circuit %d to its rate", m.numbers[0])
	if len(m.numbers) > 1 {
		why = fmt.Sprintf("hold %d circuits to the sum of their rates, circuit %d among them", len(m.numbers), m.numbers[0])
	}
	flags, bands := m.band(l)
	return Meter{ID: id, Flags: flags, Bands: bands, Why: why}
}

// Limits returns the meters of a switch with limits in place of those that circuits began with: those that have none in limits keep theirs.
func (c *Circuits) Limits(id fabric.DPID, limits map[uint32]Limit) (all []Meter) {
	if c == nil {
		return nil
	}
	for n := range c.meters[id] {
		m, _ := c.Limited(id, n, limits)
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Meter) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Limited returns one of the meters that Limits returns. It reports false for a meter that circuits do not use.
func (c *Circuits) Limited(id fabric.DPID, meter openflow.MeterID, limits map[uint32]Limit) (Meter, bool) {
	if c == nil {
		return Meter{}, false
	}
	m, ok := c.meters[id][meter]
	if !ok {
		return Meter{}, false
	}
	sum := Limit{Unresponsive: true}
	for _, number := range m.numbers {
		limit, ok := limits[number]
		if !ok {
			s := c.states[number]
			limit = s.Limit()
		}
		sum = sum.and(limit)
	}
	return m.meter(meter, sum), true
}

// Metered returns the circuits of a meter of a switch, none for a meter that circuits do not use.
func (c *Circuits) Metered(id fabric.DPID, meter openflow.MeterID) []uint32 {
	if c == nil {
		return nil
	}
	return c.meters[id][meter].numbers
}

// IsCircuitMeter reports whether a meter of Headgate is for circuits.
func IsCircuitMeter(id openflow.MeterID) bool { return firstMeter <= id && id < firstPortMeter }
