package circuits

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/program"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/fabric/reserve/cycle"
	"headgate.dev/headgate/unit"
)

// key is what one circuit limits: a direction of a reservation, or what is not reserved and leaves by a port.
type key struct {
	reservation reserve.ID
	reverse     bool
	port        fabric.PortID
	// path is the number, from 1 on, of the path whose traffic is known (byPort). 0 is all paths of the reservation.
	path int
}

func keyOf(f cycle.FlowID) key {
	return key{reservation: f.Reservation, reverse: f.Reverse, port: f.Port}
}

func (k key) String() string {
	if k.port != (fabric.PortID{}) {
		return "unreserved at " + k.port.String()
	}
	name := k.reservation.String() + " forward"
	if k.reverse {
		name = k.reservation.String() + " reverse"
	}
	if k.path > 0 {
		name += fmt.Sprint(" path ", k.path)
	}
	return name
}

// carried is a circuit with what is known of it beside what switches need.
type carried struct {
	program.Circuit
	key      key
	flows    []flow
	limited  []cycle.FlowID // those of flows that a switch limits
	senders  *senders
	onDemand bool // it waits while there is no traffic
	shaped   bool // an agent limits the traffic
}

// flow is a flow of a cycle, with its index there.
type flow struct {
	cycle.FlowID
	index int
}

// plan are the circuits of a network, in the order of their names.
type plan []carried

// numbers returns the circuits by number.
func (p plan) numbers() map[uint32]int {
	at := make(map[uint32]int, len(p))
	for i := range p {
		at[p[i].Number] = i
	}
	return at
}

// limits returns the circuits whose rate follows from the limit of a flow.
func (p plan) limits() map[cycle.FlowID]int {
	at := make(map[cycle.FlowID]int, len(p))
	for i, c := range p {
		for _, f := range c.limited {
			at[f] = i
		}
	}
	return at
}

// watched returns the first switches of circuits, if there are no more than most. Otherwise it returns those of flows that are tight, at most as many: those with
// most of these.
func (p plan) watched(tight func(flow int) bool, most int) map[fabric.DPID]bool {
	all := map[fabric.DPID]bool{}
	for i := range p {
		all[p[i].From.Switch] = true
	}
	if len(all) <= most {
		return all
	}
	counts := map[fabric.DPID]int{}
	for i := range p {
		for _, f := range p[i].flows {
			if tight(f.index) {
				counts[p[i].From.Switch]++
			}
		}
	}
	ordered := slices.SortedFunc(maps.Keys(counts), func(a, b fabric.DPID) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	some := map[fabric.DPID]bool{}
	for _, at := range ordered[:min(len(ordered), most)] {
		some[at] = true
	}
	return some
}

// circuits returns what switches need.
func (p plan) circuits() []program.Circuit {
	all := make([]program.Circuit, len(p))
	for i, c := range p {
		all[i] = c.Circuit
	}
	return all
}

// planOf returns the circuits of the flows of a cycle. Those that a switch limits have the total of their paths as the rate, and the others
// only take their paths. waits reports which of those that are pushed on demand have no traffic.
func planOf(reservations map[reserve.ID]reserve.Reservation, flows []cycle.Status, limit func(cycle.FlowID) unit.Rate, waits func(key) bool) plan {
	byKey := map[key]*carried{}
	for i, f := range flows {
		limited := f.Point.Kind == cycle.Switch
		r, ok := reservations[f.Flow.Reservation]
		if f.Spare || f.Flow.BestEffort() && !limited || !f.Flow.BestEffort() && !ok {
			continue
		}
		if ok && (r.Request.Source.At.Switch.IsRouter() || r.Request.Destination.At.Switch.IsRouter()) {
			continue // routers forward by their routing tables
		}
		k := keyOf(f.Flow)
		if ok && byPort(r) {
			k.path = f.Flow.Path + 1
		}
		c := byKey[k]
		if c == nil {
			c = &carried{key: k}
			byKey[k] = c
			if k.port != (fabric.PortID{}) {
				c.Circuit = program.Circuit{From: k.port, Unreserved: true}
			} else {
				c.Circuit = circuit(r, k.reverse)
				if k.path > 0 {
					c.Flows, c.Paths = every(c.Flows, k.path-1, len(c.Paths)), c.Paths[k.path-1:k.path]
				}
				c.onDemand = r.Request.OnDemand
				c.Waiting = c.onDemand && waits(k)
			}
			c.Name = k.String()
		}
		c.flows = append(c.flows, flow{f.Flow, i})
		c.shaped = c.shaped || f.Point.Kind == cycle.Host || f.Point.Kind == cycle.Router
		if limited {
			c.limited = append(c.limited, f.Flow)
		}
	}
	p := make(plan, 0, len(byKey))
	for _, c := range byKey {
		p = append(p, *c)
	}
	slices.SortFunc(p, func(a, b carried) int { return cmp.Compare(a.Name, b.Name) })
	taken := map[uint32]bool{0: true}
	for i := range p {
		c := &p[i]
		c.Number = number(c.key, taken)
		c.Rate = c.total(limit)
	}
	return p
}

// byPort reports whether the paths of a reservation have circuits of their own, among which its flows are divided: the streams of relay agents to several
// ports. A switch would choose paths by a hash, which could put all streams on one.
func byPort(r reserve.Reservation) bool {
	paths := 0
	for _, p := range r.Paths {
		if !p.Spare {
			paths++
		}
	}
	return r.Request.Carried != nil && paths > 1 && len(r.Request.Flows) >= paths
}

// every returns each nth of some flows, beginning with one of the first n.
func every(flows []program.Traffic, first, n int) (some []program.Traffic) {
	for i := first; i < len(flows); i += n {
		some = append(some, flows[i])
	}
	return some
}

// total returns the rate of a circuit, 0 if no switch limits it.
func (c carried) total(limit func(cycle.FlowID) unit.Rate) (sum unit.Rate) {
	if len(c.limited) == 0 {
		return 0
	}
	for _, f := range c.limited {
		sum = min(sum+limit(f), unit.MaxRate)
	}
	return max(sum, 1)
}

// number returns the number of a circuit. It follows from the name, so that the next leader has the same one and the switches keep
// their meters. Two of 10,000 names have one hash with a probability of 1 %: then the later one takes the next number.
func number(k key, taken map[uint32]bool) uint32 {
	h := fnv.New32a()
	h.Write([]byte(k.String()))
	n := h.Sum32()
	for taken[n] {
		n++
	}
	taken[n] = true
	return n
}

// circuit returns the circuit of a direction of a reservation, without its number, name and rate.
func circuit(r reserve.Reservation, reverse bool) program.Circuit {
	from, to, flows := r.Request.Direction(reverse)
	c := program.Circuit{From: from.At, To: to.At, VLAN: from.VLAN, Source: from.Prefix, Destination: to.Prefix, Class: r.Request.Class}
	for _, f := range flows {
		c.Flows = append(c.Flows, program.Traffic{Protocol: f.Protocol, Source: program.Ports(f.Source), Destination: program.Ports(f.Destination)})
	}
	for _, p := range r.Paths {
		links := p.Links
		if reverse {
			links = links.Reverse()
		}
		if p.Spare {
			c.Spare = links
		} else {
			c.Paths = append(c.Paths, links)
		}
	}
	return c
}

// same reports whether two plans differ in nothing but rates.
func (p plan) same(o plan) bool {
	return slices.EqualFunc(p, o, func(a, b carried) bool {
		return a.Number == b.Number && a.From == b.From && a.To == b.To && a.VLAN == b.VLAN && a.Source == b.Source && a.Destination == b.Destination &&
			a.Class == b.Class && a.Unreserved == b.Unreserved && a.Waiting == b.Waiting && (a.Rate == 0) == (b.Rate == 0) && slices.Equal(a.Flows, b.Flows) &&
			slices.EqualFunc(a.Paths, b.Paths, slices.Equal) && slices.Equal(a.Spare, b.Spare)
	})
}
