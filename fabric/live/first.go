package live

import (
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/program"
)

// awaitFirst waits until a switch that has connected can be given a plan: until one has a use for each of its ports. A switch that has no
// rules drops what hosts send, whose next question may be a second later (RETRANS_TIMER, RFC 4861, section 10), so it gets what there is after
// firstPlan. One that has rules carries traffic by them, and keeps them until laterPlan if there is no such plan: the last may be older than
// what was found.
func (n *Network) awaitFirst(s *attached, carries bool) {
	most := firstPlan
	if carries {
		most = laterPlan
	}
	timeout := time.NewTimer(most)
	defer timeout.Stop()
	for late := false; !late && !n.placed(s); {
		select {
		case <-s.conn.Done():
			return
		case <-n.ctx.Done():
			return
		case <-s.wake:
		case <-timeout.C:
			late = true
		}
	}
	s.wakeUp()
}

// carriesTraffic reports whether a flow of a switch is a rule of a plan.
func carriesTraffic(f openflow.FlowStats) bool {
	kind, ours := program.KindOf(f.Cookie)
	return ours && kind != program.KindDiscovery
}

// placed reports whether the plan in force has a use for each port of a switch: hosts or a link, and a link for those that had one by the
// rules that the switch has.
func (n *Network) placed(s *attached) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.plan == nil {
		return false
	}
	if _, ok := n.plan.Topology.Switch(s.id); !ok {
		return false
	}
	for _, p := range s.conn.Ports() {
		id := fabric.PortID{Switch: s.id, Port: fabric.PortNo(p.No)}
		if n.ports[id] != nil && !n.plan.Topology.CarriesLink(id) && (n.adoptedLinks[id] || !n.plan.HostPort(id)) {
			return false
		}
	}
	return true
}
