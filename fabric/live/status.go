package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/unit"
)

// Status is the network at one moment.
type Status struct {
	At time.Time
	// Settled reports that every switch has what the newest plan says.
	Settled  bool
	Switches []SwitchStatus // by datapath id
	Links    []LinkStatus   // in the order of their identities
	Hosts    []fabric.Host  // in the order of their identities
	Faults   []fabric.LinkFault
	Counters Counters
}

// SwitchStatus is a switch that is connected, or whose channel is silent.
type SwitchStatus struct {
	ID      fabric.DPID
	Address string        // from which it is connected; "" while its channel is silent
	Desc    openflow.Desc // its own description
	Ports   []PortStatus  // by number
	// Current reports that the switch has what the newest plan says, and Problem is why it does not, nil if that is not known.
	Current bool
	Problem error
}

// PortUse says what is at a port.
type PortUse string

// The uses of ports.
const (
	// Unused: the port is down.
	Unused PortUse = "none"
	// Undecided: no discovery frame came yet, and it is too early to take the port for one of hosts.
	Undecided PortUse = "undecided"
	// ToHosts: hosts may be connected.
	ToHosts PortUse = "hosts"
	// ToSwitch: a link leaves here.
	ToSwitch PortUse = "link"
	// Faulty: discovery frames come, and there is no link. Status.Faults names the fault.
	Faulty PortUse = "faulty"
)

// PortStatus is a port of a switch.
type PortStatus struct {
	fabric.Port
	Use PortUse
}

// LinkStatus is a link. Assumed reports that nothing is known of its capacity, so that 1 Gbit/s is taken for it.
type LinkStatus struct {
	fabric.Link
	Assumed bool
}

// Status returns the network as it is now.
func (n *Network) Status() Status {
	n.mu.Lock()
	defer n.mu.Unlock()
	parts := n.parts()
	out := Status{At: time.Now(), Settled: !n.planPending() && (n.plan != nil || len(n.switches) == 0), Hosts: parts.Hosts, Faults: n.links.Faults(), Counters: n.counters}
	linked := map[fabric.PortID]bool{}
	for _, l := range parts.Links {
		linked[l.From] = true
	}
	speeds := map[fabric.PortID]unit.Rate{}
	for _, s := range parts.Switches {
		one := SwitchStatus{ID: s.ID, Problem: errAbsent}
		if at := n.switches[s.ID]; at != nil {
			one = SwitchStatus{ID: s.ID, Address: at.conn.RemoteAddr().String(), Desc: at.conn.Desc(), Problem: at.problem, Current: n.current(at)}
			out.Settled = out.Settled && one.Current
		}
		for _, p := range s.Ports {
			id := fabric.PortID{Switch: s.ID, Port: p.No}
			speeds[id] = p.Speed
			one.Ports = append(one.Ports, PortStatus{p, use(n.ports[id], linked[id])})
		}
		out.Switches = append(out.Switches, one)
	}
	for _, l := range parts.Links {
		out.Links = append(out.Links, LinkStatus{l, l.Source == fabric.Reported && min(speeds[l.From], speeds[l.To]) == 0})
	}
	slices.SortFunc(out.Switches, func(a, b SwitchStatus) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

func use(p *port, linked bool) PortUse {
	switch {
	case p == nil:
		return Unused
	case linked:
		return ToSwitch
	case p.heard:
		return Faulty
	case p.ready:
		return ToHosts
	}
	return Undecided
}

// Topology returns the switches, links and hosts as they are now.
func (n *Network) Topology() (*fabric.Topology, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return fabric.New(n.parts())
}

// ErrNoSwitch: no switch with the id is connected.
var ErrNoSwitch = errors.New("no such switch is connected")

// Flows asks a switch for all its flows with their counters, also those of other programs.
func (n *Network) Flows(ctx context.Context, id fabric.DPID) ([]openflow.FlowStats, error) {
	n.mu.Lock()
	s := n.switches[id]
	n.mu.Unlock()
	if s == nil {
		return nil, ErrNoSwitch
	}
	flows, err := flowsOf(ctx, s.conn)
	if err != nil {
		return nil, fmt.Errorf("switch %v: cannot read its flows: %w", id, err)
	}
	return flows, nil
}
