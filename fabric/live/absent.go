package live

import (
	"errors"
	"maps"
	"slices"
	"time"

	"headgate.dev/headgate/fabric"
)

// absentTimeout is for how long a switch counts that the controller does not reach, since the network was last as the switch was told.
// After that, what it does may not fit what the others do.
const absentTimeout = time.Minute

// absent is a switch that the controller does not reach: it forwards as before.
type absent struct {
	fabric.Switch
	links []fabric.Link // from and to it
	// passing is how many of them pass frames.
	passing int
	wires   int // the count of changes when it became absent
	until   time.Time
}

// errAbsent is the problem of a switch that is absent.
var errAbsent = errors.New("the controller does not reach it: it goes on with what it has")

// keep keeps a switch whose channel has ended for a time. n.mu must be held.
func (n *Network) keep(id fabric.DPID) {
	if n.plan == nil {
		return
	}
	s, ok := n.plan.Topology.Switch(id)
	if !ok {
		return
	}
	a := absent{Switch: s, wires: n.wires, until: time.Now().Add(absentTimeout)}
	for _, l := range n.plan.Topology.Links() {
		if (l.From.Switch == id || l.To.Switch == id) && n.up(l.Other(id)) {
			a.links = append(a.links, l)
		}
	}
	a.passing = len(a.links)
	if len(a.links) > 0 { // others depend on it
		n.absent[id] = a
	}
}

// returns takes a switch that is connected again. Its links stay until they are found again. n.mu must be held.
func (n *Network) returns(id fabric.DPID, now time.Time) {
	if a, ok := n.absent[id]; ok {
		a.until = now.Add(firstPlan)
		n.absent[id] = a
	}
}

// expireAbsent forgets switches that are absent for too long, and finds which of their links pass frames. n.mu must be held.
func (n *Network) expireAbsent(now time.Time) {
	maps.DeleteFunc(n.reflections, func(_ fabric.PortID, r *reflection) bool { return now.Sub(r.asked) > absentTimeout })
	changed := false
	for id, a := range n.absent {
		if n.switches[id] == nil {
			passing := 0
			for _, l := range a.links {
				if n.passes(l.Other(id), now) {
					passing++
				}
			}
			switch {
			case len(a.links) == 0:
				a.until = now
			case passing > 0 && a.wires == n.wires:
				a.until = now.Add(absentTimeout)
			}
			changed = changed || passing != a.passing
			a.passing = passing
			n.absent[id] = a
		}
		if !now.Before(a.until) {
			delete(n.absent, id)
			changed = true
		}
	}
	if changed {
		n.wires++
		n.replan()
	}
}

// unplugged takes the failure of a port: a link from it to an absent switch is gone until that returns. n.mu must be held.
func (n *Network) unplugged(p fabric.PortID) {
	for id, a := range n.absent {
		a.links = slices.DeleteFunc(a.links, func(l fabric.Link) bool { return l.From == p || l.To == p })
		n.absent[id] = a
	}
}

func (n *Network) isAbsent(id fabric.DPID) bool {
	_, ok := n.absent[id]
	return ok
}

// up reports whether a port is up, as far as is known. n.mu must be held.
func (n *Network) up(p fabric.PortID) bool {
	return n.ports[p] != nil || n.switches[p.Switch] == nil && n.isAbsent(p.Switch)
}

// addAbsent adds the switches that are absent, and their links of which the other port is up. n.mu must be held.
func (n *Network) addAbsent(parts *fabric.Parts) {
	found := map[fabric.PortID]bool{}
	for _, l := range parts.Links {
		found[l.From], found[l.To] = true, true
	}
	for id, a := range n.absent {
		if n.switches[id] == nil {
			written, _ := n.config.Switch(id)
			a.Name, a.Site = written.Name, written.Site
			parts.Switches = append(parts.Switches, a.Switch)
		}
		before := len(parts.Links)
		for _, l := range a.links {
			if n.up(l.From) && n.up(l.To) && !found[l.From] && !found[l.To] && !n.stopped(l.Other(id)) {
				parts.Links = append(parts.Links, l)
			}
		}
		for _, l := range parts.Links[before:] { // another absent switch has the same link, or had one to the same port
			found[l.From], found[l.To] = true, true
		}
	}
}
