package session

import (
	"cmp"
	"maps"
	"slices"

	"headgate.dev/headgate/fabric/openflow"
)

// Ports returns the ports of the switch by number, as it has described them at the handshake and changed them since.
func (c *Conn) Ports() []openflow.Port {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.ports), func(a, b openflow.Port) int { return cmp.Compare(a.No, b.No) })
}

// setPorts replaces the ports. c.mu must be held.
func (c *Conn) setPorts(all []openflow.Port) {
	c.ports = make(map[openflow.PortNo]openflow.Port, len(all))
	for _, p := range all {
		c.ports[p.No] = p
	}
}

// changePort follows a port-status. The reader calls it, so that the order of changes and of the description is that of
// the switch.
func (c *Conn) changePort(m *openflow.PortStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ports == nil: // the description will have it
	case m.Reason == openflow.PortDelete:
		delete(c.ports, m.Port.No)
	default:
		c.ports[m.Port.No] = m.Port
	}
}
