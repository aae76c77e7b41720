package cycle

import (
	"cmp"
	"slices"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

// Cycle ties the reservations of a network to the limits at its points. It is a state machine: the caller calls Set when
// the network or the reservations change, and Step once per cycle, and passes on the changes that both return. It uses no
// clock, and one goroutine at a time may use it.
type Cycle struct {
	scheme   share.Scheme
	calendar Calendar
	now      time.Time
	minute   int64 // that of all accounts, since the epoch
	network  Network
	lines    lines
	plan     plan
	states   []*state // in the order of plan.flows
	byID     map[FlowID]*state
	lending  lending
	standing standing
	// ended are the accounts of flows that ended in the current minute.
	ended []Minute
	// scratch of Step
	offered, ends, wants, seen []unit.Rate
	drops                      []bool
}

// state is what is known of a flow.
type state struct {
	planned
	meter
	accounted
	seizer
	offered, delivered unit.Rate // of the latest interval
	limit              unit.Rate
	sent               bool
	// In the current step: whether a reading arrived, whether it gave a rate, and what it measured.
	heard, fresh bool
	step         measured
	end          unit.Rate // offered in the last part of the step
	wants        unit.Rate // the Wants of the latest step
	seen         unit.Rate // what Glance saw it offer above its limit
	glanced      meter     // of Glance and Step
	// ran reports whether the flow has been measured, missing in how many cycles since then it was not.
	ran     bool
	missing uint64
}

// New returns a cycle without a network. share.NewAdaptive(share.DefaultQuantum) is the scheme of the product.
func New(scheme share.Scheme) *Cycle {
	return &Cycle{scheme: scheme, byID: map[FlowID]*state{}}
}

// Changes are what a call changed.
type Changes struct {
	// Limits are the new limits, those that fall before those that rise, so that a link is not oversold for a moment if
	// they are sent in this order. Limits that stay are not among them.
	Limits []Limit
	// Removed are flows without a limit from now on, with the points that they had.
	Removed []Limit
	// Replaced reports that the flows may be others than before, and Ended has the last state of those that are not among them any more.
	Replaced bool
	Ended    []Status
	// Minutes are the accounts of the minutes that have ended.
	Minutes []Minute
	// Missing is the number of flows that were to be measured and were not. Their latest rates are repeated.
	Missing int
}

// Set replaces the network. Flows that stay keep their state. The changes are to be enforced at once: a path that has
// failed does not wait for the next cycle.
func (c *Cycle) Set(n Network, t Time) Changes {
	if c.network.Topology != n.Topology || !samePorts(c.network.Ports, n.Ports) {
		c.lines, c.standing = newLines(n), nil
	}
	c.network = n
	c.now = c.calendar.Advance(t)
	var ch Changes
	c.turn(&ch)
	c.rebuild(&ch)
	c.limit(c.scheme.SetNetwork(c.plan.reserved()), &ch)
	return ch
}

func samePorts(a, b map[fabric.PortID]unit.Rate) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}

// Step ends a cycle: it takes the readings that have arrived since the last one, those of a flow in their order, and returns the limits of
// the next cycle. If a flow has several, the scheme may learn from the last ones what it does at the end of the cycle. A flow without a reading repeats its latest rate, and one that was never measured counts as one that
// uses its reservation. Readings of unknown flows are ignored.
func (c *Cycle) Step(t Time, readings []Reading) Changes {
	var ch Changes
	c.now = c.calendar.Advance(t)
	c.turn(&ch)
	c.measure(readings, &ch)
	replaced := !c.plan.until.IsZero() && !c.now.Before(c.plan.until)
	if replaced {
		c.rebuild(&ch)
	}
	c.offered, c.ends, c.wants = c.offered[:0], c.ends[:0], c.wants[:0]
	wanter, ok := c.scheme.(share.Wanter)
	for _, s := range c.states {
		c.offered = append(c.offered, c.demand(s, func(s *state) unit.Rate {
			if ok {
				return s.offered
			}
			return max(s.offered, s.wants)
		}))
		c.ends = append(c.ends, c.demand(s, func(s *state) unit.Rate { return s.end }))
		c.wants = append(c.wants, c.demand(s, func(s *state) unit.Rate { return s.wants }))
	}
	if ok {
		wanter.Want(c.wants)
	}
	if e, ok := c.scheme.(share.Ender); ok {
		e.End(c.ends)
	}
	if d, ok := c.scheme.(share.Dropper); ok {
		c.drops = c.drops[:0]
		for _, s := range c.states {
			c.drops = append(c.drops, !s.fresh || len(s.spares) > 0 || s.step.offered > s.step.delivered)
		}
		d.Drop(c.drops)
	}
	c.drain()
	var limits []unit.Rate
	if replaced {
		limits = share.CycleOn(c.scheme, c.plan.reserved(), c.offered)
	} else {
		limits = c.scheme.Cycle(c.offered)
	}
	c.limit(limits, &ch)
	for i, s := range c.states {
		if s.class != share.BestEffort && len(s.spares) == 0 {
			s.seizer.take(limits[i], s.reserved)
		}
	}
	return ch
}

// risesOver is the part of its limit above which a flow rises by risesFrames, in bit, chosen for Headgate: less is a burst, noise, or that a counter counts whole frames.
const risesOver, risesFrames = 1.02, 2 * 1522 * 8

// Glance takes readings from within a cycle, and returns the limits that change because flows offered more than theirs since the readings before: so the time for
// which a flow does without what it offers more is a part of that between two calls, and not half a cycle in the mean. It may be called several times in a
// cycle. None of its readings is a sample of the cycle, unless Step gets it as well.
func (c *Cycle) Glance(readings []Reading) (ch Changes) {
	riser, ok := c.scheme.(share.Riser)
	if !ok {
		return ch
	}
	for _, s := range c.states {
		s.seen = 0
	}
	rises := false
	for i := range readings {
		r := &readings[i]
		s := c.flow(r)
		if s == nil || len(s.spares) > 0 {
			continue
		}
		m, ok := s.glanced.take(counted{r.At, r.Offered, r.Delivered}, s.limit)
		if !ok {
			continue
		}
		if offers := max(m.rate(), r.Wants); float64(offers) > risesOver*float64(s.limit)+risesFrames/m.took.Seconds() {
			// Best effort offers more than its limit wherever a link is full, so that it counts as a rise only if it wakes.
			s.seen, rises = offers, rises || s.class != share.BestEffort || s.offered < offers/2
		}
	}
	if !rises {
		return ch
	}
	c.seen = c.seen[:0]
	for _, s := range c.states {
		c.seen = append(c.seen, s.seen)
	}
	c.limit(riser.Rise(c.seen), &ch)
	return ch
}

// measure takes readings and adds them to the accounts.
func (c *Cycle) measure(readings []Reading, ch *Changes) {
	for _, s := range c.states {
		s.heard, s.fresh, s.step, s.end = false, false, measured{}, s.offered
	}
	for i := range readings {
		r := &readings[i]
		s := c.flow(r)
		if s == nil {
			continue
		}
		first := !s.known
		m, ok := s.meter.take(counted{r.At, r.Offered, r.Delivered}, s.limit)
		if ok {
			s.ran, s.fresh = true, true
			s.step.add(m)
			s.end, s.wants = m.rate(), r.Wants
		}
		s.heard = s.heard || ok || first
	}
	c.lending.begin()
	for _, s := range c.states {
		s.glanced = s.meter
		if s.fresh {
			s.offered, s.delivered = s.step.rate(), s.step.deliveredRate()
		}
		if len(s.spares) > 0 || s.point.Kind == Nowhere {
			continue
		}
		if !s.heard {
			s.missing++
			s.minute.Missing++
			ch.Missing++
		}
		if s.ran {
			c.lending.add(s.planned, float64(s.delivered))
		}
	}
	for _, s := range c.states {
		if s.fresh {
			s.accounted.add(s.step, s.guarantee(), c.lending.part(s.planned), c.now)
		}
	}
}

// flow returns the flow of a reading, nil for an unknown one.
func (c *Cycle) flow(r *Reading) *state {
	if 0 <= r.Index && r.Index < len(c.states) && c.states[r.Index].id == r.Flow {
		return c.states[r.Index]
	}
	return c.byID[r.Flow]
}

// demand returns the offered rate that the scheme gets for a flow, of one kind of rate.
func (c *Cycle) demand(s *state, rate func(*state) unit.Rate) unit.Rate {
	if len(s.spares) == 0 {
		if s.ran {
			return rate(s)
		}
		return s.reserved
	}
	var most unit.Rate
	for _, i := range s.spares {
		most = max(most, c.demand(c.states[i], rate))
	}
	return min(most, s.reserved)
}

// turn closes the accounts of a minute that has ended.
func (c *Cycle) turn(ch *Changes) {
	minute := c.now.Unix() / 60
	if minute == c.minute {
		return
	}
	c.minute = minute
	for _, m := range c.ended {
		if m.Minute != minute {
			ch.Minutes = append(ch.Minutes, m)
		}
	}
	c.ended = slices.DeleteFunc(c.ended, func(m Minute) bool { return m.Minute != minute })
	for _, s := range c.states {
		if s.minute.Minute == minute {
			continue
		}
		if !s.minute.empty() {
			ch.Minutes = append(ch.Minutes, s.minute)
		}
		s.minute = Minute{Minute: minute, Flow: s.id}
	}
}

// rebuild makes the plan of the moment.
func (c *Cycle) rebuild(ch *Changes) {
	ch.Replaced = true
	c.plan = c.network.planAt(c.lines, c.now)
	c.lending = newLending(c.plan)
	states, byID := make([]*state, len(c.plan.flows)), make(map[FlowID]*state, len(c.plan.flows))
	for i, f := range c.plan.flows {
		s := c.byID[f.id]
		if s == nil {
			s = &state{}
			s.minute = Minute{Minute: c.now.Unix() / 60, Flow: f.id}
			s.began = c.now
			s.limit = f.reserved
		}
		if s.sent && s.point != f.point {
			ch.Removed = append(ch.Removed, Limit{s.id, s.point, s.limit})
			s.sent, s.meter, s.glanced = false, meter{}, meter{} // another point has other counters
		}
		s.planned = f
		s.held = min(s.held, f.reserved) // a reservation that was lowered is not seized
		states[i], byID[f.id] = s, s
	}
	for _, s := range c.states {
		if byID[s.id] != nil {
			continue
		}
		ch.Ended = append(ch.Ended, s.status())
		if s.sent {
			ch.Removed = append(ch.Removed, Limit{s.id, s.point, s.limit})
		}
		if !s.minute.empty() {
			c.ended = append(c.ended, s.minute)
		}
	}
	c.states, c.byID = states, byID
}

// limit sets the limits, and adds those that changed.
func (c *Cycle) limit(limits []unit.Rate, ch *Changes) {
	var rises []Limit
	for i, s := range c.states {
		was, sent := s.limit, s.sent
		s.limit = limits[i]
		if s.point.Kind == Nowhere || sent && was == s.limit {
			continue
		}
		s.sent = true
		if l := (Limit{s.id, s.point, s.limit}); sent && s.limit < was {
			ch.Limits = append(ch.Limits, l)
		} else {
			rises = append(rises, l)
		}
	}
	ch.Limits = append(ch.Limits, rises...)
}

// Limits returns all limits in force, for a point that lost its own. They are in the order of points, and then of flows.
func (c *Cycle) Limits() []Limit {
	var all []Limit
	for _, s := range c.states {
		if s.sent {
			all = append(all, Limit{s.id, s.point, s.limit})
		}
	}
	slices.SortStableFunc(all, func(a, b Limit) int {
		return cmp.Or(cmp.Compare(a.Point.Kind, b.Point.Kind), a.Point.At.Compare(b.Point.At))
	})
	return all
}
