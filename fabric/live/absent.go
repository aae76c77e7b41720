package live

import (
	"errors"
	"slices"
	"time"

	"headgate.dev/headgate/fabric"
)

// absentTimeout is for how long a switch counts whose channel is silent. One that hangs, and forwards nothing, cannot be told from
// one that only the controller does not reach.
const absentTimeout = time.Minute

// absent is a switch whose channel is silent, while its neighbours' ports to it are up: it forwards as before, and only the
// controller cannot reach it. One whose channel is closed has ended, or cannot be told from one that has.
type absent struct {
	fabric.Switch
	links []fabric.Link // from and to it
	until time.Time
}

// errAbsent is the problem of a switch that is absent.
var errAbsent = errors.New("the controller does not reach it: it goes on with what it has")

// keep keeps a switch whose channel is silent. n.mu must be held.
func (n *Network) keep(id fabric.DPID) {
	if n.plan == nil {
		return
	}
	s, ok := n.plan.Topology.Switch(id)
	if !ok {
		return
	}
	a := absent{Switch: s, until: time.Now().Add(absentTimeout)}
	for _, l := range n.plan.Topology.Links() {
		if l.From.Switch == id || l.To.Switch == id {
			a.links = append(a.links, l)
		}
	}
	n.absent[id] = a
}

// returns takes a switch that is connected again. Its links stay until they are found again. n.mu must be held.
func (n *Network) returns(id fabric.DPID, now time.Time) {
	if a, ok := n.absent[id]; ok {
		a.until = now.Add(firstPlan)
		n.absent[id] = a
	}
}

// expireAbsent forgets switches that are absent for too long. n.mu must be held.
func (n *Network) expireAbsent(now time.Time) {
	for id, a := range n.absent {
		if !now.Before(a.until) {
			delete(n.absent, id)
			n.wires++
			n.replan()
		}
	}
}

func (n *Network) isAbsent(id fabric.DPID) bool {
	_, ok := n.absent[id]
	return ok
}

// addAbsent adds the switches that are absent, and their links of which the other port is up. n.mu must be held.
func (n *Network) addAbsent(parts *fabric.Parts) {
	found := map[fabric.PortID]bool{}
	for _, l := range parts.Links {
		found[l.From], found[l.To] = true, true
	}
	up := func(p fabric.PortID) bool {
		return n.ports[p] != nil || n.switches[p.Switch] == nil && n.isAbsent(p.Switch)
	}
	for id, a := range n.absent {
		if n.switches[id] == nil {
			parts.Switches = append(parts.Switches, a.Switch)
		}
		for _, l := range a.links {
			if up(l.From) && up(l.To) && !found[l.From] && !found[l.To] && !slices.ContainsFunc(parts.Links, func(o fabric.Link) bool { return o.LinkID == l.LinkID }) {
				parts.Links = append(parts.Links, l)
			}
		}
	}
}
