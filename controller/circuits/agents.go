package circuits

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"

	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/controller/points"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/fabric/reserve/cycle"
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

// Agents are those of hosts and Linux routers.
type Agents interface {
	// Interfaces returns the interfaces of hosts whose agents are connected and enforce reservations, by the MAC address
	// that the network sees.
	Interfaces() map[fabric.MAC]points.Interface
	// SetReservations gives an agent its complete list, now and whenever it connects. It returns false if the agent does not have it now.
	SetReservations(host string, list *agents.Reservations) bool
	// SetLimits changes limits of the list. It returns false if the agent does not have them now.
	SetLimits(host string, l *agents.ReservationLimits) bool
	// Measured returns what agents measured since the last call, by the key of a direction, and the last part of it by itself.
	Measured(last time.Duration) map[string]points.Measured
}

// places are where agents can limit traffic.
type places struct {
	hosts   map[fabric.PortID]points.Interface // by the port of the network
	routers map[string]bool                    // names of the agents that are connected
}

// placesOf finds hosts with an agent at the ports of a network. A port with other hosts beside is left out: their packets pass no group
// of this one.
func placesOf(top *fabric.Topology, interfaces map[fabric.MAC]points.Interface) places {
	p := places{map[fabric.PortID]points.Interface{}, map[string]bool{}}
	for _, i := range interfaces {
		p.routers[i.Host] = true
	}
	for _, h := range top.Hosts() {
		i, ok := interfaces[h.MAC]
		if ok && !slices.ContainsFunc(top.HostsAt(h.At), func(o fabric.Host) bool { return o.MAC != h.MAC }) {
			p.hosts[h.At] = i
		}
	}
	return p
}

// HostsAt finds the interfaces of hosts with an agent at the ports of a network.
func HostsAt(top *fabric.Topology, interfaces map[fabric.MAC]points.Interface) map[fabric.PortID]points.Interface {
	return placesOf(top, interfaces).hosts
}

// directions returns what agents limit, and the flows that have their point at an agent, by the key of their direction. A direction is limited at the point of its flows, and has its rate guaranteed at all routers
// with an agent that its path passes after that. All paths of a direction whose packets one interface sends have one group there.
func directions(top *fabric.Topology, at places, reservations map[reserve.ID]reserve.Reservation, flows []cycle.Status) (all []points.Direction, limited map[string]limitedFlows) {
	found := map[string]int{}
	limited = map[string]limitedFlows{}
	add := func(r reserve.Reservation, f cycle.Status, where string, i points.Interface, line, limit unit.Rate) {
		// The queue of the interface divides its line by guarantees from one packet to the next, so the guarantee stays when it is not
		// used, and is there when the sender wakes.
		d := points.Direction{Request: r.Request, Reverse: f.Flow.Reverse, Where: where, At: i, Line: line, Rate: f.Reserved, Limit: max(limit, f.Reserved), Granted: r.Start}
		n, ok := found[d.Key()]
		if !ok {
			found[d.Key()] = len(all)
			all = append(all, d)
			return
		}
		all[n].Rate, all[n].Limit = all[n].Rate+d.Rate, min(all[n].Limit+d.Limit, unit.MaxRate)
	}
	for _, f := range flows {
		r, ok := reservations[f.Flow.Reservation]
		if !ok || f.Spare {
			continue
		}
		point := f.Point
		if point.Kind == cycle.Host || point.Kind == cycle.Router {
			key := points.Key(f.Flow.Reservation, f.Flow.Reverse)
			limited[key] = limitedFlows{append(limited[key].flows, f.Flow), f.Unresponsive}
		}
		if f.Class == share.BestEffort {
			continue // it has ended
		}
		switch point.Kind {
		case cycle.Host:
			i := at.hosts[point.At]
			port, _ := top.Port(point.At)
			add(r, f, "", i, cmp.Or(port.Speed, i.Speed), f.Limit)
		case cycle.Router:
			if i, line, ok := at.router(top, point.At); ok {
				add(r, f, "", i, line, f.Limit)
			}
		}
		for _, leaves := range leaving(r, f) {
			if i, line, ok := at.router(top, leaves); ok && leaves != point.At {
				add(r, f, "via/"+i.Host+"/"+i.Dev, i, line, line)
			}
		}
	}
	return all, limited
}

// leaving returns the ports by which a flow leaves each switch and router of its path.
func leaving(r reserve.Reservation, f cycle.Status) []fabric.PortID {
	from, to, _ := r.Request.Direction(f.Flow.Reverse)
	links := r.Paths[f.Flow.Path].Links
	if f.Flow.Reverse {
		links = links.Reverse()
	}
	ports := make([]fabric.PortID, 0, len(links)+1)
	last := from.At.Switch
	for _, l := range links {
		ports, last = append(ports, l.From), l.To.Switch
	}
	if to.At.Switch == last {
		ports = append(ports, to.At)
	}
	return ports
}

// router returns the interface of a router with an agent at a port, and the capacity of its line.
func (p places) router(top *fabric.Topology, at fabric.PortID) (points.Interface, unit.Rate, bool) {
	s, ok := top.Switch(at.Switch)
	port, known := top.Port(at)
	if !ok || !known || !s.IsRouter() || !p.routers[s.Agent] {
		return points.Interface{}, 0, false
	}
	line := port.Speed
	if l, ok := top.LinkFrom(at); ok {
		line = l.Capacity
	}
	return points.Interface{Host: s.Agent, Dev: port.Name}, line, true
}

// limitedFlows are the flows of a direction that an agent limits.
type limitedFlows struct {
	flows        []cycle.FlowID
	unresponsive bool // as of cycle.Status
}

// told is what the agents have been told.
type told struct {
	all      []points.Direction
	hosts    map[string]bool // have a list that is not empty
	again    map[string]bool // need the whole list
	revision int64
	fence    *agents.Fence
	limited  map[string]limitedFlows // the flows with their point at an agent, by key
	counted  map[string]counted
}

// counted adds up what agents measured of a direction: bytes, and the time that they measured. It knows what of it was hidden by a limit.
type counted struct {
	offered, delivered uint64
	at                 time.Duration
	waiting            waiting
}

// reading returns the part of it that each of several flows has.
func (c counted) reading(f cycle.FlowID, parts uint64, wants unit.Rate) cycle.Reading {
	return cycle.Reading{Flow: f, At: c.at, Offered: c.offered / parts, Delivered: c.delivered / parts, Wants: wants / unit.Rate(parts)}
}

func (c *counted) add(p points.Part) {
	s := p.Period.Seconds() / 8
	c.offered, c.delivered, c.at = c.offered+uint64(float64(p.Offered)*s), c.delivered+uint64(float64(p.Delivered)*s), c.at+p.Period
}

// tell passes on what changed since the last call.
func (l *Loop) tell(now []points.Direction, limited map[string]limitedFlows) {
	t := &l.told
	if !sameDirections(t.all, now) || len(t.again) > 0 || t.fence == nil {
		t.revision++
		t.fence = &agents.Fence{Epoch: l.term, Revision: t.revision}
		lists := points.Messages(now, t.fence, max(l.interval/reports, leastReport))
		for host := range t.hosts {
			if lists[host] == nil {
				l.agents.SetReservations(host, &agents.Reservations{Fence: t.fence})
			}
		}
		t.hosts, t.again = map[string]bool{}, map[string]bool{}
		for _, host := range slices.Sorted(maps.Keys(lists)) {
			t.hosts[host] = true
			if !l.agents.SetReservations(host, lists[host]) {
				t.again[host] = true
			}
		}
	} else {
		for host, limits := range points.Limits(t.all, now, t.fence) {
			if !l.agents.SetLimits(host, limits) {
				t.again[host] = true
			}
		}
	}
	t.all, t.limited = now, limited
}

// sameDirections reports whether two lists differ in nothing but limits.
func sameDirections(a, b []points.Direction) bool {
	return slices.EqualFunc(a, b, func(x, y points.Direction) bool {
		x.Limit, y.Limit = 0, 0
		return reflect.DeepEqual(x, y)
	})
}

// heard takes the readings of what agents limit, of the time before the last part of the cycle and of that. A direction of several flows has
// equal parts. One whose queue is never empty may want more than it offers (waiting). Of one of UDP it is known what it
// offers: with twice of it, flows of a high class had twice what they sent, and others on a full link of 100 Mbit/s nothing but what they had reserved.
func (l *Loop) heard() {
	measured := l.agents.Measured(l.interval * lastPart / wholePart)
	before := l.told.counted
	l.told.counted = make(map[string]counted, len(l.told.limited))
	for key, limited := range l.told.limited {
		flows := limited.flows
		m, ok := measured[key]
		sum := before[key]
		parts := m.Parts
		if !ok {
			if sum != (counted{}) {
				l.told.counted[key] = sum
				continue // no report came: the rate of this cycle is not known
			}
			parts = []points.Part{{}} // counters begin at 0
		}
		wants := unit.Rate(0)
		if ok && !limited.unresponsive {
			wants = sum.waiting.least(m.Offered(), m.Limit, m.Queued > backlogged)
		}
		for _, p := range parts {
			sum.add(p)
			for _, f := range flows {
				l.taken = append(l.taken, sum.reading(f, uint64(len(flows)), wants))
			}
		}
		l.told.counted[key] = sum
	}
}
