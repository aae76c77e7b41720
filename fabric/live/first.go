package live

import (
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/program"
)

// awaitFirst waits until a switch that has connected can be given a plan. One that has rules carries traffic by them, so they stay until
// its links and hosts can have been found. One that has none drops what hosts send, whose next question may be a second later
// (RETRANS_TIMER, RFC 4861, section 10): it waits only until a plan has a use for each of its ports.
func (n *Network) awaitFirst(s *attached, carries bool) {
	timeout := time.NewTimer(firstPlan)
	defer timeout.Stop()
	for carries || !n.placed(s) {
		select {
		case <-s.conn.Done():
			return
		case <-n.ctx.Done():
			return
		case <-s.wake:
			continue
		case <-timeout.C:
		}
		break
	}
	s.wakeUp()
}

// carriesTraffic reports whether a flow of a switch is a rule of a plan.
func carriesTraffic(f openflow.FlowStats) bool {
	kind, ours := program.KindOf(f.Cookie)
	return ours && kind != program.KindDiscovery
}

// placed reports whether the plan in force has a use for each port of a switch: hosts or a link.
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
		if n.ports[id] != nil && !n.plan.HostPort(id) && !n.plan.Topology.CarriesLink(id) {
			return false
		}
	}
	return true
}
