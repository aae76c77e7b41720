package live

import (
	"context"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/program"
)

// awaitFirst waits until a switch that has connected can be given a plan: until one has a use for each of its ports. A switch that has no
// rules drops what hosts send, whose next question may be a second later (RETRANS_TIMER, RFC 4861, section 10), so it gets what there is after
// firstPlan. One that has rules carries traffic by them. They stay for firstPlan in any case, in which its links and hosts can have been
// found, and until laterPlan if there is no such plan: the last may be older than what was found.
func (n *Network) awaitFirst(s *attached, carries bool) {
	if carries {
		if !s.await(n.ctx, firstPlan, func() bool { return false }) {
			return
		}
		if !s.await(n.ctx, laterPlan-firstPlan, func() bool { return n.placed(s) }) {
			return
		}
	} else if !s.await(n.ctx, firstPlan, func() bool { return n.placed(s) }) {
		return
	}
	s.wakeUp()
}

// await waits until a condition holds, which is looked at when there is a newer plan, or for a time. It returns false if the channel or the
// loop ends.
func (s *attached) await(ctx context.Context, most time.Duration, holds func() bool) bool {
	timeout := time.NewTimer(most)
	defer timeout.Stop()
	for !holds() {
		select {
		case <-s.conn.Done():
			return false
		case <-ctx.Done():
			return false
		case <-s.wake:
		case <-timeout.C:
			return true
		}
	}
	return true
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
