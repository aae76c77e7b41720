package classifier

import (
	"encoding/binary"
	"net/netip"

	"headgate.dev/headgate/shaper"
)

// The types below have the layout of those in bpf/headgate.h; a test compares their sizes with
// the BTF of the compiled objects.

// FlowKey is struct rule_key: every field that a rule can match.
type FlowKey struct {
	Src, Dst     [16]byte // IPv4 in the last four bytes
	SPort, DPort [2]byte  // network order
	Proto        uint8
	Family       uint8 // 4, 6, or 0 for non-IP packets
	DSCP         uint8 // with hasPorts
	_            uint8
	VLAN         uint16 // VLAN ID with tagged and the tag's priority
	Shape        uint16
	Mark         uint32
	Cgroup       uint64
	SMAC         [6]byte
	_            uint16
}

// hasPorts is HAS_PORTS: a bit of FlowKey.DSCP, which has six bits, that is set if the key has
// ports. Later fragments have no ports.
const hasPorts = 0x80

// Fields of FlowKey.VLAN: VLAN_ID, VLAN_TAGGED and VLAN_PCP. An untagged packet has none of the
// bits.
const (
	vlanID   = 0x0fff
	tagged   = 0x1000
	pcpShift = 13
	pcpMask  = 7 << pcpShift
)

// Rule is struct rule.
type Rule struct {
	Index uint32
	Class uint32 // minor number
}

// ConnKey is struct conn_key.
type ConnKey struct {
	Src, Dst     [16]byte
	SPort, DPort [2]byte
	Proto        uint8
	Family       uint8
	_            uint16
}

// Counter is struct counter.
type Counter struct{ Packets, Bytes, Marks, Drops uint64 }

// Control is struct control.
type Control struct {
	AssignEpoch uint32
	_           uint32
}

// Special rule indices.
const (
	RuleAssigned = 0xffffffff
	RuleDefault  = 0xfffffffe
)

func address(a netip.Addr) (b [16]byte, family uint8) {
	if a.Is4() {
		v4 := a.As4()
		copy(b[12:], v4[:])
		return b, 4
	}
	return a.As16(), 6
}

func port(p uint16) (b [2]byte) {
	binary.BigEndian.PutUint16(b[:], p)
	return b
}

// Keys returns the two orders of a connection's ends, as in the packets of either direction.
func Keys(c shaper.Conn) [2]ConnKey {
	a, family := address(c.A.Addr().Unmap())
	b, _ := address(c.B.Addr().Unmap())
	return [2]ConnKey{
		{Src: a, Dst: b, SPort: port(c.A.Port()), DPort: port(c.B.Port()), Proto: c.Proto, Family: family},
		{Src: b, Dst: a, SPort: port(c.B.Port()), DPort: port(c.A.Port()), Proto: c.Proto, Family: family},
	}
}

// Conn returns the connection of a key.
func (k ConnKey) Conn() shaper.Conn {
	end := func(a [16]byte, p [2]byte) netip.AddrPort {
		addr := netip.AddrFrom16(a)
		if k.Family == 4 {
			addr = netip.AddrFrom4([4]byte(a[12:]))
		}
		return netip.AddrPortFrom(addr, binary.BigEndian.Uint16(p[:]))
	}
	return shaper.Conn{Proto: k.Proto, A: end(k.Src, k.SPort), B: end(k.Dst, k.DPort)}
}
