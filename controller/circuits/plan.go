package circuits

import (
	"cmp"
	"hash/fnv"
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
}

func keyOf(f cycle.FlowID) key { return key{f.Reservation, f.Reverse, f.Port} }

func (k key) String() string {
	if k.port != (fabric.PortID{}) {
		return "unreserved at " + k.port.String()
	}
	if k.reverse {
		return k.reservation.String() + " reverse"
	}
	return k.reservation.String() + " forward"
}

// plan are the circuits of a network by what they limit.
type plan struct {
	circuits []program.Circuit
	numbers  map[key]uint32
	flows    map[key][]cycle.FlowID // of each circuit
	onDemand map[key]bool           // circuits that wait for traffic
	shaped   map[key]bool           // an agent limits the traffic
	keys     map[uint32]key         // by number
}

// planOf returns the circuits of the flows of a cycle. Those that a switch limits have the total of their paths as the rate, and the others
// only take their paths. waits reports which of those that are pushed on demand have no traffic.
func planOf(reservations []reserve.Reservation, flows []cycle.Status, waits func(key) bool) plan {
	p := plan{numbers: map[key]uint32{}, flows: map[key][]cycle.FlowID{}, onDemand: map[key]bool{}, shaped: map[key]bool{}, keys: map[uint32]key{}}
	rates := map[key]unit.Rate{}
	byID := make(map[reserve.ID]reserve.Reservation, len(reservations))
	for _, r := range reservations {
		byID[r.Request.ID] = r
	}
	for _, f := range flows {
		limited := f.Point.Kind == cycle.Switch
		if _, ok := byID[f.Flow.Reservation]; f.Spare || f.Flow.BestEffort() && !limited || !f.Flow.BestEffort() && !ok {
			continue
		}
		if r := byID[f.Flow.Reservation]; !f.Flow.BestEffort() && (r.Request.Source.At.Switch.IsRouter() || r.Request.Destination.At.Switch.IsRouter()) {
			continue // routers forward by their routing tables
		}
		k := keyOf(f.Flow)
		p.shaped[k] = p.shaped[k] || f.Point.Kind == cycle.Host || f.Point.Kind == cycle.Router
		p.flows[k] = append(p.flows[k], f.Flow)
		if limited {
			rates[k] = min(rates[k]+f.Limit, unit.MaxRate)
		}
	}
	keys := make([]key, 0, len(p.flows))
	for k := range p.flows {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int { return cmp.Compare(a.String(), b.String()) })
	taken := map[uint32]bool{0: true}
	for _, k := range keys {
		var c program.Circuit
		if k.port != (fabric.PortID{}) {
			c = program.Circuit{From: k.port, Unreserved: true}
		} else {
			r := byID[k.reservation]
			c = circuit(r, k.reverse)
			p.onDemand[k] = r.Request.OnDemand
			c.Waiting = r.Request.OnDemand && waits(k)
		}
		c.Number, c.Name, c.Rate = number(k, taken), k.String(), rates[k]
		if c.Unreserved {
			c.Rate = max(c.Rate, 1) // none would be no limit
		}
		p.numbers[k], p.keys[c.Number] = c.Number, k
		p.circuits = append(p.circuits, c)
	}
	return p
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
	return slices.EqualFunc(p.circuits, o.circuits, func(a, b program.Circuit) bool {
		return a.Number == b.Number && a.From == b.From && a.To == b.To && a.VLAN == b.VLAN && a.Source == b.Source && a.Destination == b.Destination &&
			a.Class == b.Class && a.Unreserved == b.Unreserved && a.Waiting == b.Waiting && (a.Rate == 0) == (b.Rate == 0) && slices.Equal(a.Flows, b.Flows) &&
			slices.EqualFunc(a.Paths, b.Paths, slices.Equal) && slices.Equal(a.Spare, b.Spare)
	})
}
