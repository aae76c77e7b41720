package circuits

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"headgate.dev/headgate/controller/points"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/live"
	"headgate.dev/headgate/fabric/program"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/fabric/reserve/cycle"
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

// Values chosen for Headgate.
const (
	// DefaultInterval is the length of a cycle, that of the paper (reservations, section 3.3), and LeastInterval and MostInterval bound it: a cycle
	// of 10,000 reservations takes up to 0.1 s.
	DefaultInterval = time.Second
	LeastInterval   = 100 * time.Millisecond
	MostInterval    = 10 * time.Second
	// Counters are read twice in a cycle: lastPart of wholePart before its end, and then. A rate that changed before the first reading is known at the
	// second as it is, and not as a mean. Parts that are shorter count fewer frames, with a greater error. They are also read after each other part, if that is not
	// shorter than leastReport: a flow that rises has more then.
	lastPart, wholePart = 2, 5
	// glances is the number of switches that are read before that last part, at most, and others that after each of the other parts: all, or those with most flows that may
	// exceed their limits. A reading takes about 40 µs of a processor, mostly to wake up for the answer, and what it adds is 0.3 % of the throughput of flows whose rate
	// changes.
	glances, others = 200, 50
	// readPart is the part of a cycle for which switches are waited for, at most: what has not answered then repeats its latest rates.
	readPart = 2
	// reports is how often agents report in a cycle, but not more often than leastReport.
	reports     = 5
	leastReport = 100 * time.Millisecond
	// grace is how long traffic of a reservation that has ended keeps a limit of its own: programs end a little late.
	grace = time.Minute
	// Reservations are taken ahead of their beginning, and looked for again after lookEvery: a calendar may have thousands for later, which concern no
	// switch now.
	ahead, lookEvery = 2 * time.Minute, time.Minute
	// After an update the next one waits restFactor times as long as that took, but restPart of a cycle at most, so that changes which come one after the
	// other are taken together: an update with 10,000 reservations takes some tenths of a second.
	restFactor, restPart = 4, 2
)

// CheckInterval reports a length of a cycle that is out of range.
func CheckInterval(d time.Duration) error {
	if d < LeastInterval || d > MostInterval {
		return fmt.Errorf("a cycle of reservations of %v is out of range: set --reservation-cycle to %v to %v", d, LeastInterval, MostInterval)
	}
	return nil
}

// Switches are those of a network: a live.Network.
type Switches interface {
	SetCircuits([]program.Circuit)
	SetLimits(map[uint32]program.Limit)
	ReadCircuits(_ context.Context, of map[fabric.DPID]bool) []live.CircuitReading
}

// Book has the reservations: a reservations.Owner.
type Book interface {
	Between(from, to time.Time) []reserve.Reservation
	Topology() *fabric.Topology
	Watch(context.Context) <-chan struct{}
}

// Loop keeps the circuits and limits of a network. One goroutine may use it, and any may call Usage.
type Loop struct {
	switches Switches // nil without any
	agents   Agents
	book     Book
	term     uint64
	interval time.Duration // of a cycle
	now      func() time.Time
	began    time.Time // for the monotonic clock

	cycle *cycle.Cycle
	// top and reservations are those of the last Update.
	top          *fabric.Topology
	reservations map[reserve.ID]reserve.Reservation
	looked       time.Time // when they were looked for, by the calendar

	demand demand
	// interfaces are those of the agents at the last Update, and places where they are.
	interfaces map[fabric.MAC]points.Interface
	places     places
	told       told

	plan    plan
	at      map[cycle.FlowID]int // the circuits in plan whose limits follow from those of flows
	numbers map[uint32]int       // the circuits in plan by number
	taken   []cycle.Reading      // of Glance before the last part of this cycle; the buffer of Step
	seen    []cycle.Reading      // the buffer of Glance after other parts
	set     bool                 // the switches have a plan
	senders map[key]*senders
	turned  []int // circuits in plan whose limits may be others than they have

	usages usages
}

// Options are those of a Loop.
type Options struct {
	// Scheme decides about limits, and has no flows.
	Scheme share.Scheme
	// Term is a number of the leader's term, which is higher than those before.
	Term uint64
	// Interval is the length of a cycle, 0 is DefaultInterval.
	Interval time.Duration
	// Now is the clock.
	Now func() time.Time
}

// New returns a loop without circuits. s is nil in a network without switches.
func New(s Switches, a Agents, b Book, o Options) *Loop {
	c := cycle.New(o.Scheme)
	return &Loop{
		switches: s, agents: a, book: b, term: o.Term, interval: cmp.Or(o.Interval, DefaultInterval), now: o.Now, began: o.Now(),
		demand: demand{}, senders: map[key]*senders{}, cycle: c, usages: usages{cycle: c, accounts: map[cycle.FlowID]*account{}},
	}
}

// Run gives the switches what they should have, once per cycle and when reservations change, until ctx ends.
func (l *Loop) Run(ctx context.Context) {
	changed := l.book.Watch(ctx)
	each, part := l.interval/wholePart, 1
	end := time.Now().Add(l.interval)
	next := time.NewTimer(each)
	defer next.Stop()
	l.Update()
	heard := changed
	var rest <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-heard:
			began := time.Now()
			l.Update()
			heard, rest = nil, time.After(min(restFactor*time.Since(began), l.interval/restPart)) // changed keeps that there is another change
		case <-rest:
			heard = changed
		case <-next.C:
			switch {
			case part == wholePart:
				l.Step(ctx)
				if end = end.Add(l.interval); time.Until(end) < lastPart*each { // it took too long
					end = time.Now().Add(l.interval)
				}
				part = 0
			case part == wholePart-lastPart:
				l.Glance(ctx, true)
			case each >= leastReport:
				l.Glance(ctx, false)
			}
			part++
			next.Reset(time.Until(end.Add(time.Duration(part-wholePart) * each)))
		}
	}
}

func (l *Loop) time() cycle.Time {
	now := l.now()
	return cycle.Time{Elapsed: now.Sub(l.began), Wall: now}
}

// Update takes the reservations and the network as they are now.
func (l *Loop) Update() {
	all := l.current()
	if l.set && !l.moved() && l.has(all) {
		return
	}
	l.taken = l.taken[:0] // another point may limit a flow now, with other counters
	l.reservations = make(map[reserve.ID]reserve.Reservation, len(all))
	for _, r := range all {
		l.reservations[r.Request.ID] = r
	}
	l.top, l.interfaces = l.book.Topology(), l.agents.Interfaces()
	l.places = placesOf(l.top, l.interfaces)
	n := cycle.Network{Topology: l.top, Reservations: all, Grace: grace, Tags: true, Enforcers: enforcers(l.top, l.places)}
	n.BestEffort = cycle.BestEffortOfLinks(n)
	l.usages.change(func(c *cycle.Cycle) cycle.Changes { return c.Set(n, l.time()) })
	if !l.set {
		for _, f := range l.cycle.Flows() {
			l.demand.assume(keyOf(f.Flow), l.now())
		}
	}
	l.enforce()
}

// current returns the reservations that have begun, or do so soon, and have not ended by the calendar of the cycle, which a step of the clock does not move. The book
// keeps them for longer.
func (l *Loop) current() []reserve.Reservation {
	now, _ := l.cycle.Now()
	if now.IsZero() {
		now = l.now()
	}
	l.looked = now
	return l.book.Between(now.Add(-grace), now.Add(ahead))
}

// moved reports whether the network or the agents are others than at the last Update.
func (l *Loop) moved() bool {
	return l.book.Topology() != l.top || !maps.Equal(l.interfaces, l.agents.Interfaces())
}

// has reports whether these are the reservations of the last Update.
func (l *Loop) has(all []reserve.Reservation) bool {
	return len(all) == len(l.reservations) && !slices.ContainsFunc(all, func(r reserve.Reservation) bool {
		return !reflect.DeepEqual(r, l.reservations[r.Request.ID])
	})
}

// Glance reads what switches have counted within a cycle. Flows that offer more than their limits have more at once. last reports that the last part of the cycle
// begins, for which Step needs the readings.
func (l *Loop) Glance(ctx context.Context, last bool) {
	most, readings := others, &l.seen
	if last {
		most, readings = glances, &l.taken
	}
	at := l.plan.watched(l.cycle.Tight, most)
	if len(at) == 0 {
		return
	}
	*readings = l.read(ctx, at, last, (*readings)[:0])
	l.adjust(l.usages.change(func(c *cycle.Cycle) cycle.Changes { return c.Glance(*readings) }).Limits)
}

// Step ends a cycle.
func (l *Loop) Step(ctx context.Context) {
	if now, _ := l.cycle.Now(); l.moved() || now.Sub(l.looked) >= lookEvery {
		l.Update()
	}
	l.heard()
	l.taken = l.read(ctx, nil, true, l.taken)
	ch := l.usages.change(func(c *cycle.Cycle) cycle.Changes { return c.Step(l.time(), l.taken) })
	l.taken = l.taken[:0]
	if ch.Replaced || l.demanded() || len(l.told.again) > 0 {
		l.enforce()
	} else {
		l.adjust(ch.Limits)
	}
	if len(ch.Removed) > 0 { // links on which nothing is reserved any more need no limit
		l.Update()
	}
}

// read appends what each flow has sent, of all switches or some. Of a circuit with several paths each is taken to have an equal part. What is known of senders follows
// from readings at the ends of the two parts of a cycle.
func (l *Loop) read(ctx context.Context, of map[fabric.DPID]bool, part bool, readings []cycle.Reading) []cycle.Reading {
	if len(l.plan) == 0 {
		return readings
	}
	ctx, cancel := context.WithTimeout(ctx, l.interval/readPart)
	defer cancel()
	now := l.now()
	for _, r := range l.switches.ReadCircuits(ctx, of) {
		i := r.Index
		if i >= len(l.plan) || l.plan[i].Number != r.Number { // it is of another list
			var ok bool
			if i, ok = l.numbers[r.Number]; !ok {
				continue
			}
		}
		c := &l.plan[i]
		if c.onDemand {
			l.demand.count(c.key, r.OfferedBytes, now)
		}
		if c.shaped {
			continue // its agent measures it
		}
		var wants unit.Rate
		if part {
			mean := c.senders.since(r)
			if c.senders.observe(mean, c.Rate) {
				l.turned = append(l.turned, i)
			}
			wants = c.senders.wants(mean, c.Rate)
		}
		parts := uint64(len(c.flows))
		for _, f := range c.flows {
			readings = append(readings, cycle.Reading{Flow: f.FlowID, Index: f.index, At: r.At.Sub(l.began), Offered: r.OfferedBytes / parts, Delivered: r.PassedBytes / parts, Wants: wants / unit.Rate(parts)})
		}
	}
	return readings
}

// demanded reports whether a circuit that is pushed on demand has begun or ceased to have traffic.
func (l *Loop) demanded() bool {
	return slices.ContainsFunc(l.plan, func(c carried) bool { return c.onDemand && c.Waiting != l.demand.waits(c.key, l.now()) })
}

// enforce passes on the circuits and limits: limits alone, unless the circuits are others, which they may be without a change of limits if the
// reservations or the network changed.
func (l *Loop) enforce() {
	flows := l.cycle.Flows()
	l.tell(directions(l.top, l.places, l.reservations, flows))
	if l.switches == nil {
		l.set = true
		return
	}
	now := planOf(l.reservations, flows, l.cycle.LimitOf, func(k key) bool {
		if _, known := l.demand[k]; !known && l.senders[k] != nil {
			l.demand.assume(k, l.now()) // it was not on demand until now
		}
		return l.demand.waits(k, l.now())
	})
	l.demand = l.demand.only(now)
	l.respond(now)
	before := l.plan
	l.plan, l.at, l.numbers = now, now.limits(), now.numbers()
	if !l.set || !now.same(before) {
		l.set = true
		l.switches.SetCircuits(now.circuits())
		return
	}
	limits := map[uint32]program.Limit{}
	for i, c := range now {
		if c.Limit() != before[i].Limit() {
			limits[c.Number] = c.Limit()
		}
	}
	l.setLimits(limits)
}

// adjust passes on the limits that changed, of the same circuits, and those of circuits whose senders are others than was known.
func (l *Loop) adjust(changed []cycle.Limit) {
	atAgents := false
	for _, c := range changed {
		if i, ok := l.at[c.Flow]; ok {
			l.turned = append(l.turned, i)
		}
		atAgents = atAgents || c.Point.Kind == cycle.Host || c.Point.Kind == cycle.Router
	}
	if atAgents {
		l.tell(directions(l.top, l.places, l.reservations, l.cycle.Flows()))
	}
	limits := map[uint32]program.Limit{}
	for _, i := range l.turned {
		c := &l.plan[i]
		was := c.Limit()
		c.Rate, c.Unresponsive = c.total(l.cycle.LimitOf), c.senders.unresponsive
		if now := c.Limit(); now != was {
			limits[c.Number] = now
		}
	}
	l.turned = l.turned[:0]
	l.setLimits(limits)
}

func (l *Loop) setLimits(limits map[uint32]program.Limit) {
	if len(limits) > 0 {
		l.switches.SetLimits(limits)
	}
}

// respond sets what is known of the senders of circuits, and forgets those of others.
func (l *Loop) respond(p plan) {
	before := l.senders
	l.senders, l.turned = make(map[key]*senders, len(p)), nil
	for i := range p {
		c := &p[i]
		c.senders = before[c.key]
		if c.senders == nil {
			of := sendersOf(c.Circuit)
			c.senders = &of
		}
		l.senders[c.key], c.Unresponsive = c.senders, c.senders.unresponsive
	}
}

// enforcers returns what can limit traffic: hosts and routers with agents, and switches with meters.
func enforcers(t *fabric.Topology, p places) cycle.Enforcers {
	meters, routers, hosts := map[fabric.DPID]bool{}, map[fabric.DPID]bool{}, map[fabric.PortID]bool{}
	for at := range p.hosts {
		hosts[at] = true
	}
	for _, s := range t.Switches() {
		if s.IsRouter() && p.routers[s.Agent] {
			routers[s.ID] = true
		}
		if s.Capabilities.Meters > 0 {
			meters[s.ID] = true
		}
	}
	return cycle.Enforcers{Hosts: hosts, Routers: routers, Meters: meters, Leaving: meters}
}
