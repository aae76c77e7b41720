package session

import (
	"cmp"
	"maps"
	"slices"

	"headgate.dev/headgate/fabric/openflow"
)

// MaxPorts is how many ports of a switch are kept, chosen for Headgate. A group that sends a frame to all ports has a bucket of up to 56
// bytes for each (struct ofp_bucket with three actions), and a message 65,535 bytes, which is 1,168 ports. A port takes about 1 KB in a
// controller, so that a switch takes 1 MB, whatever it describes: the numbers of ports have 32 bits (section 7.2.1).
const MaxPorts = 1024

// Ports returns the ports of the switch by number, as it has described them at the handshake and changed them since, at most
// MaxPorts. The list must not be modified.
func (c *Conn) Ports() []openflow.Port {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sorted == nil {
		c.sorted = slices.SortedFunc(maps.Values(c.ports), byNumber)
	}
	return c.sorted
}

func byNumber(a, b openflow.Port) int { return cmp.Compare(a.No, b.No) }

// HasPort reports whether Ports has a port with the number.
func (c *Conn) HasPort(no openflow.PortNo) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.ports[no]
	return ok
}

// SurplusPorts returns how many ports the switch has described beyond MaxPorts. They are not kept, so that the number is a bound: a
// port that is added twice counts twice.
func (c *Conn) SurplusPorts() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.surplus
}

// setPorts replaces the ports. Those with the lowest numbers are kept. c.mu must be held.
func (c *Conn) setPorts(all []openflow.Port) {
	c.ports, c.sorted, c.surplus = make(map[openflow.PortNo]openflow.Port, min(len(all), MaxPorts)), nil, 0
	for _, p := range slices.SortedFunc(slices.Values(all), byNumber) {
		c.setPort(p)
	}
}

// setPort adds or changes a port. The reserved ones, such as LOCAL, are few and always kept. c.mu must be held.
func (c *Conn) setPort(p openflow.Port) {
	if _, known := c.ports[p.No]; !known && len(c.ports) >= MaxPorts && p.No <= openflow.PortMax {
		c.surplus++
		return
	}
	c.ports[p.No], c.sorted = p, nil
}

// changePort follows a port-status. The reader calls it, so that the order of changes and of the description is that of
// the switch. A surplus port is kept when it changes while there are fewer than MaxPorts.
func (c *Conn) changePort(m *openflow.PortStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.ports[m.Port.No]
	if c.ports != nil && !known && m.Reason != openflow.PortAdd {
		c.surplus = max(0, c.surplus-1) // it was one of them
	}
	switch {
	case c.ports == nil: // the description will have it
	case m.Reason == openflow.PortDelete:
		delete(c.ports, m.Port.No)
		c.sorted = nil
	default:
		c.setPort(m.Port)
	}
}
