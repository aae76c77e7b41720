package live

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
)

// checkPorts finds the ports that an operator wrote and that a connected switch does not have: each is a fault until the switch has it,
// or is gone. n.mu must be held.
func (n *Network) checkPorts(s *attached) {
	written := n.config.written[s.id]
	if len(written) == 0 {
		return
	}
	reported := portsOf(s)
	if s.conn.HasPort(openflow.PortLocal) {
		reported = append(reported, fabric.Port{No: fabric.Local})
	}
	before, now := n.config.missing[s.id], map[fabric.PortRef]fabric.Fault{} // a port can be in several lists
	for _, w := range written {
		m := n.config.MissingPort(w, reported)
		if m == nil {
			continue
		}
		if _, known := before[w.PortRef]; !known && now[w.PortRef] == (fabric.Fault{}) {
			n.event(fabric.Event{Kind: fabric.SwitchChanged, Switch: s.id, Text: m.Error()})
		}
		now[w.PortRef] = fabric.Fault{Kind: fabric.MissingPort, Port: fabric.PortID{Switch: s.id, Port: w.Port.No}, Text: m.Error()}
	}
	if n.config.missing[s.id] = now; len(now) == 0 {
		delete(n.config.missing, s.id)
		if len(before) > 0 {
			n.event(fabric.Event{Kind: fabric.SwitchChanged, Switch: s.id, Text: fmt.Sprintf("switch %v has all ports that the configuration names", s.id)})
		}
	}
}

// faults returns the faults of now, in the order of ports. n.mu must be held.
func (n *Network) faults() []fabric.Fault {
	all := n.links.Faults()
	for _, of := range n.config.missing {
		all = slices.AppendSeq(all, maps.Values(of))
	}
	slices.SortStableFunc(all, func(a, b fabric.Fault) int { return cmp.Or(a.Port.Compare(b.Port), cmp.Compare(a.Text, b.Text)) })
	return all
}
