package trace

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
	"headgate.dev/headgate/fabric/program"
)

// Frame is what identifies a frame to a reader.
type Frame struct {
	Src, Dst fabric.MAC
	// Labels are the labels of Headgate, the outermost first: none, or one between switches.
	Labels []Label
	// VLAN is the id of the host's own tag, 0 for none.
	VLAN uint16
	// Packet is what the frame carries, such as "tcp 10.0.0.1:1000 > 10.0.0.2:80".
	Packet string
}

// Label is the tag that a frame has between switches (program.AssignLabels).
type Label struct {
	ID uint16
	// Rerouted is the mark of a frame that took a backup.
	Rerouted bool
}

// ReadFrame reads a frame. What is cut off is left out.
func ReadFrame(data []byte) (f Frame) {
	if len(data) < pipeline.EthernetHeader {
		return f
	}
	f.Dst, f.Src = fabric.MAC(data[:6]), fabric.MAC(data[6:12])
	for {
		kind := binary.BigEndian.Uint16(data[12:])
		if kind != pipeline.EtherVLAN && kind != pipeline.EtherProviderVLAN || len(data) < pipeline.EthernetHeader+4 {
			break
		}
		tag := binary.BigEndian.Uint16(data[14:])
		if id := tag & 0xfff; id > program.MaxHostVLAN {
			f.Labels = append(f.Labels, Label{id, tag>>13 != 0})
		} else {
			f.VLAN = id
		}
		data = append(append([]byte(nil), data[:12]...), data[16:]...)
	}
	f.Packet = packetText(pipeline.NewPacket(data, 0))
	return f
}

// String is such as "02:00:00:00:00:01 > 02:00:00:00:00:02 label 3073 tcp 10.0.0.1:1000 > 10.0.0.2:80".
func (f Frame) String() string {
	return strings.Join(append(append([]string{f.Src.String(), ">", f.Dst.String()}, f.tags()...), f.Packet), " ")
}

func (f Frame) tags() (all []string) {
	for _, l := range f.Labels {
		text := fmt.Sprintf("label %d", l.ID)
		if l.Rerouted {
			text += " rerouted"
		}
		all = append(all, text)
	}
	if f.VLAN != 0 {
		all = append(all, fmt.Sprintf("vlan %d", f.VLAN))
	}
	return all
}

func packetText(p *pipeline.Packet) string {
	switch kind := p.EthType(); {
	case p.L3 == 0:
		return fmt.Sprintf("type 0x%04x", kind)
	case kind == pipeline.EtherARP && p.Key.Uint(openflow.FieldARPOp) == 1:
		return fmt.Sprintf("arp who-has %v tell %v", p.Addr(openflow.FieldARPTPA), p.Addr(openflow.FieldARPSPA))
	case kind == pipeline.EtherARP:
		return fmt.Sprintf("arp reply %v is-at %v", p.Addr(openflow.FieldARPSPA), openflow.MAC(p.Key.Bytes(openflow.FieldARPSHA)))
	case kind == pipeline.EtherIPv4:
		return ipText(p, p.Addr(openflow.FieldIPv4Src), p.Addr(openflow.FieldIPv4Dst))
	}
	return ipText(p, p.Addr(openflow.FieldIPv6Src), p.Addr(openflow.FieldIPv6Dst))
}

// ports are the names of protocols and the fields of their ports.
var ports = map[uint8]struct {
	name     string
	src, dst openflow.FieldID
}{
	pipeline.ProtocolTCP:  {"tcp", openflow.FieldTCPSrc, openflow.FieldTCPDst},
	pipeline.ProtocolUDP:  {"udp", openflow.FieldUDPSrc, openflow.FieldUDPDst},
	pipeline.ProtocolSCTP: {"sctp", openflow.FieldSCTPSrc, openflow.FieldSCTPDst},
}

func ipText(p *pipeline.Packet, src, dst netip.Addr) string {
	if f, ok := ports[p.Proto]; ok && p.L4 > 0 {
		from, to := netip.AddrPortFrom(src, uint16(p.Key.Uint(f.src))), netip.AddrPortFrom(dst, uint16(p.Key.Uint(f.dst)))
		return fmt.Sprintf("%s %v > %v", f.name, from, to)
	}
	name := fmt.Sprintf("ip protocol %d", p.Proto)
	switch {
	case ports[p.Proto].name != "":
		name = ports[p.Proto].name
	case p.Proto == pipeline.ProtocolICMP, p.Proto == pipeline.ProtocolICMPv6:
		name = "icmp"
	}
	if p.L4 > 0 && p.Proto == pipeline.ProtocolICMPv6 && p.Data[p.L4] == pipeline.NeighbourSolicitation {
		return fmt.Sprintf("nd who-has %v tell %v", p.Addr(openflow.FieldIPv6NDTarget), src)
	}
	return fmt.Sprintf("%s %v > %v", name, src, dst)
}
