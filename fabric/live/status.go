package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/redirect"
)

// Status is the network at one moment.
type Status struct {
	At time.Time
	// Name and Sites are what an operator wrote. Missing are switches that an operator listed and that are not in Switches, and
	// MissingLinks those directions of links that are not in Links, as far as the numbers of their ports are known.
	Name         string
	Sites        []fabric.Site
	Missing      []fabric.SwitchConfig
	MissingLinks []fabric.LinkID
	// Removed are switches that an operator has removed from the list in the last minutes (removedTime), or that may no longer connect.
	// RemovedLinks are the names of links that have ended with a change of the configuration, also because an end has another name.
	Removed      []fabric.SwitchConfig
	RemovedLinks []LinkLabel
	// Settled reports that every switch has what the newest plan says.
	Settled  bool
	Switches []SwitchStatus // by datapath id
	Links    []LinkStatus   // in the order of their identities
	Hosts    []fabric.Host  // in the order of their identities
	Faults   []fabric.Fault
	// Relays are the relay agents that have announced themselves, and Redirected the number of connections that they carry.
	Relays      []redirect.Agent
	Redirects   bool // connections are to be redirected
	Redirected  int
	Redirection RedirectionCounters
	Counters    Counters
}

// SwitchStatus is a switch that is connected, or whose channel is silent.
type SwitchStatus struct {
	ID      fabric.DPID
	Name    string // that an operator wrote, and the site
	Site    string
	Address string        // from which it is connected; "" while its channel is silent
	Desc    openflow.Desc // its own description
	// Capabilities are what it can do. program.Lost describes what the network lacks because of them.
	Capabilities fabric.Capabilities
	Ports        []PortStatus // by number
	// SurplusPorts is how many ports the switch has beyond session.MaxPorts. They are not used, and not in Ports.
	SurplusPorts int
	// UnknownStructures is how many messages and parts of them, such as actions, were not understood since the switch connected
	// (openflow.DecodeCount).
	UnknownStructures uint64
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
	fabric.PortTraffic
}

// LinkStatus is a link.
type LinkStatus struct {
	fabric.Link
	// Assumed reports that nothing is known of its capacity, so that 1 Gbit/s is taken for it.
	Assumed bool
	fabric.Traffic
	// Sends and Receives are the last readings of the ports at its ends, the zero value if there is none.
	Sends, Receives fabric.PortCounters
}

// Topology returns the switches, links and hosts as they are now.
func (n *Network) Topology() (*fabric.Topology, error) {
	n.mu.Lock()
	if n.fresh {
		defer n.mu.Unlock()
		return n.plan.Topology, nil
	}
	parts := n.parts()
	n.mu.Unlock()
	return fabric.New(parts)
}

// ErrNoSwitch: no switch with the id is connected.
var ErrNoSwitch = errors.New("no such switch is connected")

// connected returns a switch that is connected, or ErrNoSwitch.
func (n *Network) connected(id fabric.DPID) (*attached, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.switches[id]; s != nil {
		return s, nil
	}
	return nil, ErrNoSwitch
}

// Flows asks a switch for all its flows with their counters, also those of other programs.
func (n *Network) Flows(ctx context.Context, id fabric.DPID) ([]openflow.FlowStats, error) {
	s, err := n.connected(id)
	if err != nil {
		return nil, err
	}
	flows, err := flowsOf(ctx, s.conn, openflow.AllFlows())
	if err != nil {
		return nil, fmt.Errorf("switch %v: cannot read its flows: %w", id, err)
	}
	return flows, nil
}
