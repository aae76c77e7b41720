package circuits

import (
	"context"
	"slices"
	"time"

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
	// Interval is the length of a cycle, that of the paper (reservations, section 3.3).
	Interval = time.Second
	// readTimeout is how long switches are waited for: what has not answered then repeats its latest rates.
	readTimeout = 500 * time.Millisecond
	// grace is how long traffic of a reservation that has ended keeps a limit of its own: programs end a little late.
	grace = time.Minute
)

// Switches are those of a network: a live.Network.
type Switches interface {
	SetCircuits([]program.Circuit)
	SetLimits(map[uint32]unit.Rate)
	ReadCircuits(context.Context) map[uint32]live.CircuitReading
}

// Book has the reservations: a reservations.Owner.
type Book interface {
	List() []reserve.Reservation
	Topology() *fabric.Topology
	Watch(context.Context) <-chan struct{}
}

// Loop keeps the circuits and limits of a network. One goroutine may use it, and any may call Usage.
type Loop struct {
	switches Switches
	book     Book
	now      func() time.Time
	began    time.Time // for the monotonic clock

	cycle *cycle.Cycle
	// top and reservations are those of the last Update.
	top          *fabric.Topology
	reservations []reserve.Reservation

	plan plan
	set  bool // the switches have a plan

	usages usages
}

// New returns a loop without circuits. now is the clock.
func New(s Switches, b Book, now func() time.Time) *Loop {
	return &Loop{switches: s, book: b, now: now, began: now(), cycle: cycle.New(share.NewAdaptive(share.DefaultQuantum))}
}

// Run gives the switches what they should have, once per Interval and when reservations change, until ctx ends.
func (l *Loop) Run(ctx context.Context) {
	changed := l.book.Watch(ctx)
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	l.Update()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			l.Update()
		case <-tick.C:
			l.Step(ctx)
		}
	}
}

func (l *Loop) time() cycle.Time {
	now := l.now()
	return cycle.Time{Elapsed: now.Sub(l.began), Wall: now}
}

// Update takes the reservations and the network as they are now.
func (l *Loop) Update() {
	l.top, l.reservations = l.book.Topology(), l.current()
	n := cycle.Network{Topology: l.top, Reservations: l.reservations, Grace: grace, Enforcers: enforcers(l.top)}
	for _, a := range cycle.BestEffort(n, l.top.NextHops()) {
		if a.Leaves && a.Links[0].To != (fabric.PortID{}) { // between switches
			n.BestEffort = append(n.BestEffort, a)
		}
	}
	l.enforce(l.cycle.Set(n, l.time()), true)
}

// current returns the reservations that have not ended by the calendar of the cycle, which a step of the clock does not move. The book
// keeps them for longer.
func (l *Loop) current() []reserve.Reservation {
	now, _ := l.cycle.Now()
	return slices.DeleteFunc(l.book.List(), func(r reserve.Reservation) bool { return !now.Before(r.End.Add(grace)) })
}

// Step ends a cycle.
func (l *Loop) Step(ctx context.Context) {
	if l.book.Topology() != l.top {
		l.Update()
	}
	var readings []cycle.Reading
	if len(l.plan.circuits) > 0 {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		readings = l.read(ctx)
	}
	ch := l.cycle.Step(l.time(), readings)
	l.enforce(ch, false)
	if len(ch.Removed) > 0 { // links on which nothing is reserved any more need no limit
		l.Update()
	}
}

// read returns what each flow has sent. Of a circuit with several paths each is taken to have an equal part.
func (l *Loop) read(ctx context.Context) (all []cycle.Reading) {
	counted := l.switches.ReadCircuits(ctx)
	for k, flows := range l.plan.flows {
		r, ok := counted[l.plan.numbers[k]]
		if !ok {
			continue
		}
		parts := uint64(len(flows))
		for _, f := range flows {
			all = append(all, cycle.Reading{Flow: f, At: r.At.Sub(l.began), Offered: r.OfferedBytes / parts, Delivered: r.PassedBytes / parts})
		}
	}
	return all
}

// enforce passes on changes: limits alone, unless the circuits are others, which they may be without a change of limits if the reservations or the
// network changed.
func (l *Loop) enforce(ch cycle.Changes, changed bool) {
	l.usages.take(l.cycle, ch.Minutes)
	if l.set && len(ch.Limits) == 0 && len(ch.Removed) == 0 && !changed {
		return
	}
	now := planOf(l.reservations, l.cycle.Flows())
	before := l.plan
	l.plan = now
	if !l.set || !now.same(before) {
		l.set = true
		l.switches.SetCircuits(now.circuits)
		return
	}
	limits := map[uint32]unit.Rate{}
	for i, c := range now.circuits {
		if c.Rate != before.circuits[i].Rate {
			limits[c.Number] = c.Rate
		}
	}
	if len(limits) > 0 {
		l.switches.SetLimits(limits)
	}
}

// enforcers returns what can limit traffic: switches with meters.
func enforcers(t *fabric.Topology) cycle.Enforcers {
	meters := map[fabric.DPID]bool{}
	for _, s := range t.Switches() {
		if s.Capabilities.Meters > 0 {
			meters[s.ID] = true
		}
	}
	return cycle.Enforcers{Meters: meters, Leaving: meters}
}
