package live

import (
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/program"
)

// deliverFirst is by how much earlier the switch of a new host gets its rules than others, chosen for Headgate: a switch that is not
// busy has them in some ms. Until others have theirs, the controller sends on what their hosts send to the new one.
const deliverFirst = 20 * time.Millisecond

// handed is which plan the switches get. If one had a rule towards a new host before the host's own switch delivers, that would drop
// the frame: the first packet between two hosts was lost in 2 of 11 runs of four switches.
type handed struct {
	first   map[fabric.DPID]bool // switches that get the newest plan
	plan    *program.Connectivity
	version int       // the others get this one
	at      time.Time // when they did
}

// hand gives the newest plan to the switches of its new hosts, and soon to all. n.mu must be held.
func (n *Network) hand(before *program.Connectivity) {
	plan, version := n.plan, n.version
	n.handed.first = delivering(before, plan)
	if len(n.handed.first) == 0 {
		n.handAll(plan, version)
		return
	}
	for id := range n.handed.first {
		if s := n.switches[id]; s != nil {
			s.wakeUp()
		}
	}
	time.AfterFunc(deliverFirst, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.handAll(plan, version)
	})
}

// handAll gives a plan to all switches, unless they have a newer one. n.mu must be held.
func (n *Network) handAll(plan *program.Connectivity, version int) {
	if version <= n.handed.version {
		return
	}
	n.handed.plan, n.handed.version, n.handed.at = plan, version, time.Now()
	for _, s := range n.switches {
		s.wakeUp()
	}
}

// delivering returns the switches of hosts that the plan before has not, or elsewhere.
func delivering(before, plan *program.Connectivity) map[fabric.DPID]bool {
	if before == nil {
		return nil
	}
	first := map[fabric.DPID]bool{}
	for _, h := range plan.Topology.Hosts() {
		if known, ok := before.Topology.Host(h.HostID); !ok || known.At != h.At {
			first[h.At.Switch] = true
		}
	}
	return first
}

// planFor returns the plan that a switch is given now, and its version; nil if there is none that it can get. A switch never gets an older
// one than it has.
func (n *Network) planFor(s *attached) (*program.Connectivity, int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	plan, version := n.handed.plan, n.handed.version
	if n.handed.first[s.id] {
		plan, version = n.plan, n.version
	}
	if plan == nil || version < s.done {
		return nil, 0
	}
	if _, ok := plan.Topology.Switch(s.id); !ok {
		return nil, 0 // the plan is older than the switch
	}
	s.given = version
	return plan, version
}

func (s *attached) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
