package live

import (
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/program"
)

// adopt takes over what an earlier controller has told a switch: which hosts are at its ports, and its label. So a controller
// that starts without memory changes nothing that carries traffic.
func (n *Network) adopt(s *attached, state program.State) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	for _, f := range state.Flows {
		kind, ours := program.KindOf(f.Cookie)
		switch {
		case !ours:
		case kind == program.KindHere:
			if label, ok := f.Match.Get(openflow.FieldVLANVID); ok && n.labels[s.id] == 0 {
				n.labels[s.id] = program.VLANOf(label)
			}
		case kind == program.KindKnown:
			in, okPort := f.Match.Get(openflow.FieldInPort)
			src, okSource := f.Match.Get(openflow.FieldEthSrc)
			vid, okVLAN := f.Match.Get(openflow.FieldVLANVID)
			if at := (fabric.PortID{Switch: s.id, Port: fabric.PortNo(in.Uint())}); okPort && okSource && okVLAN && n.ports[at] != nil {
				n.observe(fabric.Sighting{HostID: fabric.HostID{MAC: fabric.MAC(src.MAC()), VLAN: program.VLANOf(vid)}, At: at}, now)
			}
		}
	}
}
