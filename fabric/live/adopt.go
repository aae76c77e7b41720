package live

import (
	"maps"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/program"
)

// adoptTimeout is for how long after the last switch others are waited for that switches have flows towards, and links: Open vSwitch tries to
// connect each 8 s at the latest, unless its max_backoff is set.
const adoptTimeout = 10 * time.Second

// awaits reports whether switches have flows towards others that are not connected yet, or whose links have not been found. A
// plan without those would take their flows away. A switch that is connected and has no label can be one of them. n.mu must be held.
func (n *Network) awaits() bool {
	switch {
	case len(n.adopted) == 0 || time.Since(n.attached) >= adoptTimeout || time.Since(n.began) >= 3*adoptTimeout: // one may connect again and again
		return false
	case time.Since(n.attached) < firstPlan && !n.decided():
		return true
	}
	for p := range n.adoptedLinks {
		if _, linked := n.links.Peer(p); !linked && n.ports[p] != nil {
			return true
		}
	}
	missing, unlabelled := maps.Clone(n.adopted), 0
	for id := range n.switches {
		if label, ok := n.labels[id]; ok {
			delete(missing, label)
		} else {
			unlabelled++
		}
	}
	return len(missing) > unlabelled
}

// adopt takes over what an earlier controller has told a switch: which hosts with which addresses are at its ports, and its label. So a controller
// that starts without memory changes nothing that carries traffic. n.mu must be held.
func (n *Network) adopt(s *attached, state *program.State, now time.Time) {
	for _, f := range state.Flows {
		kind, ours := program.KindOf(f.Cookie)
		switch {
		case !ours:
		case kind == program.KindHere:
			if label, ok := f.Match.Get(openflow.FieldVLANVID); ok && n.labels[s.id] == 0 {
				n.labels[s.id] = program.VLANOf(label)
			}
		case kind == program.KindLinkPort:
			if in, ok := f.Match.Get(openflow.FieldInPort); ok {
				n.adoptedLinks[fabric.PortID{Switch: s.id, Port: fabric.PortNo(in.Uint())}] = true
			}
		case kind == program.KindToward:
			if label, ok := f.Match.Get(openflow.FieldVLANVID); ok {
				n.adopted[program.VLANOf(label)] = true
			}
		case kind == program.KindKnown || kind == program.KindNeighbour:
			in, okPort := f.Match.Get(openflow.FieldInPort)
			src, okSource := f.Match.Get(openflow.FieldEthSrc)
			vid, okVLAN := f.Match.Get(openflow.FieldVLANVID)
			if at := (fabric.PortID{Switch: s.id, Port: fabric.PortNo(in.Uint())}); okPort && okSource && okVLAN && n.ports[at] != nil {
				n.observe(fabric.Sighting{HostID: fabric.HostID{MAC: fabric.MAC(src.MAC()), VLAN: program.VLANOf(vid)}, Addrs: program.SenderOf(f.Match), At: at}, now)
			}
		}
	}
}
