package live

import (
	"slices"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/program"
)

// Circuits change to new paths without a loss: first the switches after the first get the new paths, then the first one sends by them, and then
// the old ones end (SetCircuits).
const (
	// stageTimeout is for how long the switches of one of these steps are waited for: one that does not answer must not keep the others
	// from what they should have.
	stageTimeout = time.Second
	// stagePoll is how often they are looked at.
	stagePoll = 5 * time.Millisecond
	// drain is how long frames that were sent by an old path may be on their way, chosen for Headgate: longer than around the Earth.
	drain = 250 * time.Millisecond
)

// circuits are those that the network should have.
type circuits struct {
	set     bool // they are known
	change  int  // counts the calls of SetCircuits
	moving  bool // the newest list is not in force yet: changeCircuits runs
	carried []program.Circuit
	// coming and going are circuits whose paths are carried too: frames take them soon, or can be on their way by them.
	coming []program.Circuit
	going  []going
	limits map[uint32]program.Limit
	// reserved is the newest list of SetCircuits, if it was called: told. wanted is the newest list of these and of the paths between relay agents.
	told     bool
	reserved []program.Circuit
	wanted   []program.Circuit
	tallies  map[uint32]*tally
	readers  readers
}

// readers are the circuits that are read at each switch, in a plan.
type readers struct {
	plan *program.Circuits
	at   map[fabric.DPID][]reader
}

// reader is a circuit that is read.
type reader struct {
	number uint32
	index  int              // in circuits.reserved, 0 of others
	meter  openflow.MeterID // 0 if it has none
	shares bool             // with other circuits
	tally  *tally
}

// readersOf returns the circuits that are read in the plan in force. n.mu must be held.
func (n *Network) readersOf() readers {
	if n.plan == nil {
		return readers{}
	}
	c := &n.circuits
	if c.readers.plan == n.plan.Circuits {
		return c.readers
	}
	indices := make(map[uint32]int, len(c.reserved))
	for i := range c.reserved {
		indices[c.reserved[i].Number] = i
	}
	r := readers{plan: n.plan.Circuits, at: map[fabric.DPID][]reader{}}
	for _, s := range r.plan.States() {
		if s.BestEffort {
			continue
		}
		t := c.tallies[s.Number]
		if t == nil {
			t = &tally{}
			c.tallies[s.Number] = t
		}
		r.at[s.At()] = append(r.at[s.At()], reader{s.Number, indices[s.Number], s.Meter, len(s.Shares) > 0, t})
	}
	c.readers = r
	return r
}

// going are circuits whose paths end.
type going struct {
	circuits []program.Circuit
	until    time.Time // zero while their first switches can send by them
}

// plan returns the circuits in a topology, nil if they are not known: switches keep those that they have then.
func (c *circuits) plan(t *fabric.Topology, before *program.Connectivity) *program.Circuits {
	if !c.set {
		return nil
	}
	var old *program.Circuits
	if before != nil {
		old = before.Circuits
	}
	also := c.coming
	for _, g := range c.going {
		also = slices.Concat(also, g.circuits)
	}
	return program.PlanCircuits(t, c.carried, also, old)
}

// SetCircuits gives the network the circuits that it should have, in place of those before. It does not wait. Only the switches that a change
// concerns get messages, and flows and meters that are right are not touched. Before the first call the switches keep the circuits of
// an earlier controller. The slice and what is in it must not be modified.
func (n *Network) SetCircuits(all []program.Circuit) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.circuits.told, n.circuits.reserved = true, slices.Clone(all)
	n.combineCircuits()
}

// combineCircuits gives the network the circuits of SetCircuits and those of relay agents. n.mu must be held.
func (n *Network) combineCircuits() {
	c := &n.circuits
	all := c.reserved
	if r := &n.redirection; len(r.pathsFor) > 0 {
		taken := map[uint32]bool{}
		for _, one := range all {
			taken[one.Number] = true
		}
		paths := relayCircuits(r.pathsOf, r.pathsFor, taken)
		all = slices.Concat(all, slices.DeleteFunc(paths, func(one program.Circuit) bool { return reservedFor(c.reserved, one) }))
	}
	was := make(map[uint32]program.Limit, len(c.wanted))
	for _, one := range c.wanted {
		was[one.Number] = one.Limit()
	}
	limits, tallies := make(map[uint32]program.Limit, len(all)), make(map[uint32]*tally, len(all))
	for _, one := range all {
		if limit, ok := c.limits[one.Number]; ok && was[one.Number] == one.Limit() {
			limits[one.Number] = limit
		}
		if t := c.tallies[one.Number]; t != nil {
			tallies[one.Number] = t
		}
	}
	c.limits, c.tallies, c.wanted = limits, tallies, all
	c.change++
	if !c.moving {
		c.moving = true
		go n.changeCircuits()
	}
}

// changeCircuits brings the newest list of circuits into force, until there is no newer one. A list that comes meanwhile waits, so that
// many changes in a row do not keep each other from coming into force, and all that have come are then made at once.
func (n *Network) changeCircuits() {
	for {
		n.mu.Lock()
		change, wanted := n.circuits.change, n.circuits.wanted
		n.mu.Unlock()
		ok := n.stepCircuits(func(c *circuits) {
			if c.set {
				c.coming = wanted
				return
			}
			c.set, c.carried = true, wanted // it is not known what was carried
		}) && n.stepCircuits(func(c *circuits) {
			c.going = append(slices.Clone(c.going), going{circuits: c.carried})
			c.coming, c.carried = nil, wanted
		})
		for began := time.Now(); ok && !n.newerCircuits(change); {
			if time.Since(began) > drain { // else the old paths end with a step of the next list
				ok = n.stepCircuits(func(*circuits) {})
				break
			}
			ok = n.sleep(stagePoll)
		}
		n.mu.Lock()
		n.circuits.moving = ok && n.circuits.change != change
		moving := n.circuits.moving
		n.mu.Unlock()
		if !moving {
			return
		}
	}
}

func (n *Network) newerCircuits(change int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.circuits.change != change
}

func (n *Network) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-n.ctx.Done():
		return false
	}
}

// stepCircuits changes what circuits there are, gives the plan with them to the switches that it concerns, and waits until these have
// it. It is the next plan's affair if there is none yet. It reports false when the loop ends.
func (n *Network) stepCircuits(step func(c *circuits)) bool {
	// Hosts that are new get their rules in order.
	for began := time.Now(); n.handing() && time.Since(began) < 2*deliverFirst; {
		if !n.sleep(stagePoll) {
			return false
		}
	}
	version, concerned := n.planCircuits(step)
	for began := time.Now(); !n.reached(version, concerned) && time.Since(began) < stageTimeout; {
		if !n.sleep(stagePoll) {
			return false
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.circuits.going = slices.Clone(n.circuits.going) // makePlan reads the one before without n.mu
	for i, g := range n.circuits.going {
		if g.until.IsZero() {
			n.circuits.going[i].until = time.Now().Add(drain)
		}
	}
	return n.ctx.Err() == nil
}

// planCircuits makes the plan of a step the one in force, and returns its version and the switches that it concerns, nil for all.
func (n *Network) planCircuits(step func(c *circuits)) (version int, concerned map[fabric.DPID]bool) {
	n.making.Lock()
	defer n.making.Unlock()
	n.mu.Lock()
	step(&n.circuits)
	n.circuits.going = slices.DeleteFunc(slices.Clone(n.circuits.going), func(g going) bool { return !g.until.IsZero() && time.Now().After(g.until) })
	circuits, before := n.circuits, n.plan
	n.mu.Unlock()
	if before == nil {
		return 0, map[fabric.DPID]bool{}
	}
	plan := *before
	plan.Circuits = circuits.plan(plan.Topology, before)
	if before.Circuits != nil {
		concerned = plan.Circuits.Concerned(before.Circuits)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.installCircuits(&plan, concerned)
	return n.version, concerned
}

// handing reports whether some switches do not have the newest plan yet because others get it first.
func (n *Network) handing() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.plan != nil && n.handed.version < n.version
}

// installCircuits makes a plan the one in force that differs from the one before at some switches, or all if concerned is nil. n.mu and n.making must
// be held.
func (n *Network) installCircuits(c *program.Connectivity, concerned map[fabric.DPID]bool) {
	n.plan = c
	n.version++
	n.handed = handed{plan: c, version: n.version, at: time.Now()}
	for id, s := range n.switches {
		if concerned != nil && !concerned[id] && s.done == n.version-1 && s.problem == nil {
			s.done = n.version // it has what the plan says
			continue
		}
		s.wakeUp()
	}
}

// reached reports whether the switches of a step that are connected have what a plan says.
func (n *Network) reached(version int, concerned map[fabric.DPID]bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, s := range n.switches {
		if (concerned == nil || concerned[id]) && s.done < version {
			return false
		}
	}
	return true
}

// Circuits returns what became of the circuits in the plan in force, by number.
func (n *Network) Circuits() []program.CircuitState {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.plan == nil {
		return nil
	}
	return n.plan.Circuits.States()
}
