package program

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
)

// Circuits are the circuits of a network as its switches can have them now. They never change, so that any number of goroutines can read
// them.
type Circuits struct {
	labels PathLabels
	states map[uint32]CircuitState
	begins map[fabric.DPID][]begin
	hops   map[fabric.DPID][]hop
	meters map[fabric.DPID]map[openflow.MeterID]circuitMeter
}

// CircuitState is what became of a circuit.
type CircuitState struct {
	// Circuit is what was asked for.
	Circuit
	// InUse are the paths that carry it.
	InUse []fabric.Path
	// Lacks says what is missing of what was asked for: sentences without a full stop.
	Lacks []string
	// BestEffort reports that the circuit's traffic is sent like that of others: it has no path of its own, and no limit.
	BestEffort bool
	// Meter is the meter of its first switch, 0 if it has none, and Shares the other circuits that have the same.
	Meter  openflow.MeterID
	Shares []uint32
}

// begin is a circuit at its first switch.
type begin struct {
	number  uint32
	name    string
	classes []class
	dscp    uint8
	out     fabric.PortNo // of the host, if that is at the same switch
	ways    []way
	choice  openflow.GroupID // of its select group, if it has several ways
	meter   openflow.MeterID
	// leaves is the port of an Unreserved circuit, 0 of others.
	leaves fabric.PortNo
	rest   bool // of Circuit
}

// way is a route as its first switch takes it.
type way struct {
	label, spare PathLabel
	out, instead fabric.PortNo // of the path, and of the spare one or 0
	to           fabric.DPID
}

// hop is a route at a switch after the first.
type hop struct {
	label   PathLabel
	in, out fabric.PortNo // out is 0 at the last switch
	to      fabric.DPID
	rest    bool // it passes the meters of what is not reserved
	deliver []delivery
}

func (b begin) equal(o begin) bool {
	return b.number == o.number && b.name == o.name && b.dscp == o.dscp && b.out == o.out && b.choice == o.choice && b.meter == o.meter && b.leaves == o.leaves && b.rest == o.rest &&
		slices.Equal(b.classes, o.classes) && slices.Equal(b.ways, o.ways)
}

func (h hop) equal(o hop) bool {
	return h.label == o.label && h.in == o.in && h.out == o.out && h.to == o.to && h.rest == o.rest && slices.Equal(h.deliver, o.deliver)
}

// delivery is a host to which circuits of a path go.
type delivery struct {
	mac fabric.MAC
	out fabric.PortNo
}

// PlanCircuits returns how the switches of a topology carry circuits. Routes of circuits in coming are carried too, although no frame takes
// them yet: circuits change to new paths without a loss if all switches after the first have those before. Labels of routes in before, which
// may be nil, stay.
func PlanCircuits(t *fabric.Topology, circuits, coming []Circuit, before *Circuits) *Circuits {
	p := circuitPlanner{
		t: t, routes: map[string]route{}, deliveries: map[string][]delivery{},
		Circuits: &Circuits{states: map[uint32]CircuitState{}, begins: map[fabric.DPID][]begin{}, hops: map[fabric.DPID][]hop{}, meters: map[fabric.DPID]map[openflow.MeterID]circuitMeter{}},
	}
	planned := p.survey(circuits)
	p.survey(coming)
	var have PathLabels
	if before != nil {
		have = before.labels
	}
	p.labels = have.assign(p.routes)
	p.carry()
	p.begin(planned)
	return p.Circuits
}

// circuitPlanner plans circuits.
type circuitPlanner struct {
	*Circuits
	t          *fabric.Topology
	routes     map[string]route
	deliveries map[string][]delivery // by route
}

// planned is a circuit with what it uses now.
type planned struct {
	Circuit
	routes []route
	hosts  []fabric.Host
	lacks  []string
	fault  error // it is sent like best effort
}

// survey finds the routes of circuits. They are returned in the order of their classes and numbers.
func (p *circuitPlanner) survey(circuits []Circuit) []*planned {
	all := make([]*planned, 0, len(circuits))
	for _, c := range circuits {
		if c.Waiting = c.Waiting && p.canWait(c.From.Switch); c.Waiting {
			c.Rate, c.Paths, c.Spare = 0, nil, nil
		}
		one := &planned{Circuit: c}
		if one.fault = one.check(); one.fault == nil && !c.Unreserved {
			one.fault = p.resolve(one)
		}
		all = append(all, one)
		if one.fault != nil {
			continue
		}
		for _, r := range one.routes {
			p.add(r, one)
			if r.spare != nil {
				p.add(route{path: r.spare, rest: r.rest}, one)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *planned) int { return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Number, b.Number)) })
	return all
}

// canWait reports whether a switch can count the traffic of a circuit and send it like other traffic.
func (p *circuitPlanner) canWait(id fabric.DPID) bool {
	s, ok := p.t.Switch(id)
	return ok && !formOf(s.Capabilities).flat
}

func (p *circuitPlanner) add(r route, c *planned) {
	key := r.key()
	p.routes[key] = r
	for _, h := range c.hosts {
		if d := (delivery{h.MAC, h.At.Port}); !slices.Contains(p.deliveries[key], d) {
			p.deliveries[key] = append(p.deliveries[key], d)
		}
	}
}

// resolve finds the hosts and the paths that a circuit uses.
func (p *circuitPlanner) resolve(c *planned) error {
	for _, h := range p.t.HostsAt(c.To) {
		if h.VLAN == c.VLAN {
			c.hosts = append(c.hosts, h)
		}
	}
	if c.Destination.IsValid() && c.Destination.IsSingleIP() {
		if n := slices.IndexFunc(c.hosts, func(h fabric.Host) bool { return slices.Contains(h.Addrs, c.Destination.Addr()) }); n >= 0 {
			c.hosts = c.hosts[n : n+1]
		}
	}
	if len(c.hosts) == 0 {
		return fmt.Errorf("no host of VLAN %d is known at port %s: its traffic is best effort until one sends a frame", c.VLAN, p.t.PortLabel(c.To))
	}
	if c.From.Switch == c.To.Switch || c.Waiting {
		return nil
	}
	multiple := true
	if s, ok := p.t.Switch(c.From.Switch); ok && s.Capabilities.Tables > 0 && s.Capabilities.Select == 0 {
		multiple = false
	}
	spare := c.Spare
	if spare != nil {
		if why := p.broken(spare, c); why != "" {
			c.lacks, spare = append(c.lacks, "its spare path is not usable: "+why), nil
		}
	}
	for _, path := range c.Paths {
		if why := p.broken(path, c); why != "" {
			c.lacks = append(c.lacks, "a path is not usable: "+why)
			continue
		}
		if len(c.routes) > 0 && !multiple {
			c.lacks = append(c.lacks, fmt.Sprintf("it uses one of its %d paths, because switch %s has no select groups", len(c.Paths), p.t.SwitchLabel(c.From.Switch)))
			break
		}
		c.routes = append(c.routes, route{path, spare, c.Rest})
	}
	if spare != nil && (len(c.routes) == 0 || multiple && len(c.routes) < len(c.Paths)) {
		// The spare path replaces the one that is not usable, and is itself without one.
		for n := range c.routes {
			c.routes[n].spare = nil
		}
		c.routes = append(c.routes, route{path: spare, rest: c.Rest})
		c.lacks = append(c.lacks, "its spare path is in use")
	}
	if len(c.routes) == 0 {
		return fmt.Errorf("no path is usable: %s", cmp.Or(first(c.lacks), "it has none"))
	}
	return nil
}

func first(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// broken says why a path cannot carry a circuit, "" if it can.
func (p *circuitPlanner) broken(path fabric.Path, c *planned) string {
	at := c.From.Switch
	seen := map[fabric.DPID]bool{at: true}
	for _, l := range path {
		switch {
		case l.From.Switch != at:
			return fmt.Sprintf("link %v does not begin at switch %s, which the path has reached", l, p.t.SwitchLabel(at))
		case !p.t.Usable(l):
			return fmt.Sprintf("link %v is down", l)
		case seen[l.To.Switch]:
			return fmt.Sprintf("it passes switch %s twice", p.t.SwitchLabel(l.To.Switch))
		}
		at = l.To.Switch
		seen[at] = true
	}
	if at != c.To.Switch {
		return fmt.Sprintf("it ends at switch %s and not at switch %s", p.t.SwitchLabel(at), p.t.SwitchLabel(c.To.Switch))
	}
	return ""
}

// carry adds what the switches after the first do.
func (p *circuitPlanner) carry() {
	for key, label := range p.labels {
		path := p.routes[key].path
		to := path[len(path)-1].To.Switch
		for n, l := range path {
			h := hop{label: label, in: l.To.Port, to: to, rest: p.routes[key].rest}
			if n+1 < len(path) {
				h.out = path[n+1].From.Port
			} else {
				h.deliver = p.deliveries[key]
				slices.SortFunc(h.deliver, func(a, b delivery) int {
					return cmp.Or(slices.Compare(a.mac[:], b.mac[:]), cmp.Compare(a.out, b.out))
				})
			}
			p.hops[l.To.Switch] = append(p.hops[l.To.Switch], h)
		}
	}
	for _, all := range p.hops {
		slices.SortFunc(all, func(a, b hop) int { return cmp.Compare(a.label, b.label) })
	}
}

// begin adds what the first switches do.
func (p *circuitPlanner) begin(circuits []*planned) {
	type place struct {
		at fabric.DPID
		class
	}
	places := map[place]uint32{}
	at := map[fabric.DPID][]*planned{}
	for _, c := range circuits {
		if _, twice := p.states[c.Number]; twice {
			continue // the first of them has the number
		}
		var classes []class
		if c.fault == nil && !c.Unreserved {
			classes, c.fault = c.classes(c.hosts)
		}
		b := begin{number: c.Number, name: c.Name, classes: classes, dscp: c.DSCP, rest: c.Rest}
		if c.Unreserved {
			b.leaves = c.From.Port
		}
		if c.From.Switch == c.To.Switch {
			b.out = c.To.Port
		}
		for _, r := range c.routes {
			label, ok := p.labels[r.key()]
			if !ok {
				c.fault = fmt.Errorf("a switch of its path has no label left: it carries %d paths", pathLabels)
				break
			}
			w := way{label: label, out: r.path[0].From.Port, to: c.To.Switch}
			if r.spare != nil {
				if spare, ok := p.labels[route{path: r.spare, rest: r.rest}.key()]; ok {
					w.spare, w.instead = spare, r.spare[0].From.Port
				}
			}
			b.ways = append(b.ways, w)
		}
		for _, one := range classes {
			if other, is := places[place{c.From.Switch, one}]; is && c.fault == nil {
				c.fault = fmt.Errorf("circuit %d has the same traffic", other)
			}
		}
		state := CircuitState{Circuit: c.Circuit, Lacks: c.lacks}
		if c.fault != nil {
			state.BestEffort, state.Lacks = true, append(state.Lacks, c.fault.Error())
			p.states[c.Number] = state
			continue
		}
		for _, one := range classes {
			places[place{c.From.Switch, one}] = c.Number
		}
		for _, r := range c.routes {
			state.InUse = append(state.InUse, r.path)
		}
		p.states[c.Number] = state
		p.begins[c.From.Switch] = append(p.begins[c.From.Switch], b)
		at[c.From.Switch] = append(at[c.From.Switch], c)
	}
	for id, all := range p.begins {
		s, _ := p.t.Switch(id)
		p.assignMeters(s, all, at[id])
		choices := slots{size: choiceGroups}
		for n := range all {
			if len(all[n].ways) > 1 {
				all[n].choice = firstChoice + openflow.GroupID(choices.take(all[n].number))
			}
		}
	}
}

// slots gives numbers of a range to circuits: mostly the number of the circuit, so that the others keep theirs when one comes or ends.
type slots struct {
	size  uint32
	taken map[uint32]bool
}

func (s *slots) take(number uint32) uint32 {
	if s.taken == nil {
		s.taken = map[uint32]bool{}
	}
	n := (number - 1) % s.size
	for s.taken[n] {
		n = (n + 1) % s.size
	}
	s.taken[n] = true
	return n
}

// State returns what became of a circuit; ok is false for one that is not planned.
func (c *Circuits) State(number uint32) (s CircuitState, ok bool) {
	if c == nil {
		return s, false
	}
	s, ok = c.states[number]
	return s, ok
}

// States returns what became of all circuits, by number.
func (c *Circuits) States() []CircuitState {
	if c == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(c.states), func(a, b CircuitState) int { return cmp.Compare(a.Number, b.Number) })
}

// concerns reports whether a switch does something for circuits.
func (c *Circuits) concerns(id fabric.DPID) bool {
	return c != nil && (len(c.begins[id]) > 0 || len(c.hops[id]) > 0)
}

// Concerned returns the switches whose programs differ because of circuits.
func (c *Circuits) Concerned(before *Circuits) map[fabric.DPID]bool {
	all := map[fabric.DPID]bool{}
	if c == nil {
		c = &Circuits{}
	}
	if before == nil {
		before = &Circuits{}
	}
	for _, m := range []*Circuits{c, before} {
		for id := range m.begins {
			if !all[id] && !(slices.EqualFunc(c.begins[id], before.begins[id], begin.equal) && maps.EqualFunc(c.meters[id], before.meters[id], circuitMeter.equal)) {
				all[id] = true
			}
		}
		for id := range m.hops {
			if !all[id] && !slices.EqualFunc(c.hops[id], before.hops[id], hop.equal) {
				all[id] = true
			}
		}
	}
	return all
}
