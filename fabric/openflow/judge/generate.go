package judge

import (
	"slices"

	"headgate.dev/headgate/fabric/openflow"
)

// Source is where the values of messages come from: random numbers, or a property test.
type Source interface {
	// Int returns a number from low to high, both included.
	Int(low, high int) int
}

// Gen draws messages.
type Gen struct {
	Source
	// Tame messages have only what other implementations understand and print; others have everything that can be encoded.
	Tame bool
	// OSKen lets tame messages have what os-ken knows, and Open vSwitch does not.
	OSKen bool

	plain bool // only actions that fit each match
}

// EtherTypes (IEEE 802 Numbers, IANA) and protocol numbers.
const (
	ethIPv4, ethARP, ethIPv6, ethMPLS, ethMPLSM, ethPBB uint16 = 0x0800, 0x0806, 0x86dd, 0x8847, 0x8848, 0x88e7

	protoICMP, protoTCP, protoUDP, protoICMPv6, protoSCTP uint8 = 1, 6, 17, 58, 132
)

func (g Gen) uint64() uint64 { return uint64(g.Int(0, 1<<32-1))<<32 | uint64(g.Int(0, 1<<32-1)) }

func num[T ~uint8 | ~uint16 | ~uint32 | ~uint64](g Gen) T {
	switch g.Int(0, 3) {
	case 0:
		return 0
	case 1:
		return ^T(0)
	case 2:
		return 1
	}
	return T(g.uint64())
}

// oneOf draws one of some values.
func oneOf[T any](g Gen, values ...T) T { return values[g.Int(0, len(values)-1)] }

// octets draws low to high bytes.
func (g Gen) octets(low, high int) []byte {
	b := make([]byte, g.Int(low, high))
	for i := range b {
		b[i] = byte(g.Int(0, 255))
	}
	return b
}

// distinct draws different numbers from low to high, least to most of them.
func (g Gen) distinct(low, high, least, most int) (all []uint8) {
	for n := g.Int(least, most); len(all) < n; {
		if v := uint8(g.Int(low, high)); !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

// upTo draws 0 to n.
func upTo(g Gen, n int) int { return g.Int(0, n) }

func (g Gen) flip() bool { return g.Int(0, 1) == 1 }

// few draws up to n values.
func few[T any](g Gen, n int, draw func() T) []T {
	var all []T
	for range upTo(g, n) {
		all = append(all, draw())
	}
	return all
}

func (g Gen) bytes(n int) []byte {
	return few(g, n, func() byte { return num[byte](g) })
}

// bytes8 draws 8n+rest bytes.
func (g Gen) bytes8(rest int) []byte {
	n := upTo(g, 2)*8 + rest
	if n == 0 {
		return nil
	}
	return g.octets(n, n)
}

func (g Gen) text(n int) string {
	const first, more = "abcdefghijklmnopqrstuvwxyz0123456789", "abcdefghijklmnopqrstuvwxyz0123456789-"
	b := []byte{first[g.Int(0, len(first)-1)]}
	for range upTo(g, min(n-2, 9)) {
		b = append(b, more[g.Int(0, len(more)-1)])
	}
	return string(b)
}

func (g Gen) mac() openflow.MAC {
	return openflow.MAC(g.octets(6, 6))
}

// port draws a port, or with reserved also some of the reserved ones.
func (g Gen) port(reserved ...openflow.PortNo) openflow.PortNo {
	if !g.Tame {
		return num[openflow.PortNo](g)
	}
	if len(reserved) > 0 && g.flip() {
		return oneOf(g, reserved...)
	}
	return openflow.PortNo(g.Int(1, 0xfeff))
}

func (g Gen) group(reserved ...openflow.GroupID) openflow.GroupID {
	if !g.Tame {
		return num[openflow.GroupID](g)
	}
	if len(reserved) > 0 && g.flip() {
		return oneOf(g, reserved...)
	}
	return openflow.GroupID(g.Int(0, int(openflow.GroupMax)))
}

func (g Gen) meter() openflow.MeterID {
	return openflow.MeterID(g.Int(1, int(openflow.MeterMax)))
}

func (g Gen) duration() openflow.Duration {
	return openflow.Duration{Sec: uint32(upTo(g, 1<<20)), Nsec: uint32(upTo(g, 999_999_999))}
}

// field draws a value of a field, and a mask if it may have one. The value has no bits that the mask leaves out.
func (g Gen) field(id openflow.FieldID, masks bool) openflow.Field {
	size := octetsOf(id)
	value := g.octets(size, size)
	fit := func(b []byte) {
		for i := range 8*len(b) - id.Bits() {
			b[i/8] &^= 0x80 >> (i % 8)
		}
	}
	fit(value)
	switch {
	case id == openflow.FieldInPort && g.Tame:
		return openflow.InPort(g.port(openflow.PortLocal))
	case id == openflow.FieldARPOp && g.Tame:
		return openflow.ARPOp(uint16(upTo(g, 255))) // Open vSwitch keeps 8 bits
	case id == openflow.FieldVLANVID:
		vid := openflow.VLAN(uint16(upTo(g, 4095)))
		if !masks {
			return vid
		}
		return oneOf(g, vid, vid, openflow.AnyVLAN(), openflow.NoVLAN())
	}
	if !masks || !id.Maskable() || g.flip() {
		return newField(id, value, nil)
	}
	mask := g.octets(size, size)
	if g.flip() {
		n := g.Int(1+8*len(mask)-id.Bits(), 8*len(mask))
		for i := range 8 * len(mask) {
			mask[i/8] &^= 0x80 >> (i % 8)
			if i < n {
				mask[i/8] |= 0x80 >> (i % 8)
			}
		}
	}
	fit(mask)
	for i := range value {
		value[i] &= mask[i]
	}
	return newField(id, value, mask)
}

// octetsOf is the length of the value of a field. Those of 20 bits are in 4 bytes.
func octetsOf(id openflow.FieldID) int {
	if id.Bits() == 20 {
		return 4
	}
	return (id.Bits() + 7) / 8
}

// newField makes a field that is drawn right.
func newField(id openflow.FieldID, value, mask []byte) openflow.Field {
	f, err := openflow.NewField(id, value, mask)
	if err != nil {
		panic(err)
	}
	return f
}

// notInOVS are fields that Open vSwitch 3.1 does not have.
var notInOVS = []openflow.FieldID{openflow.FieldInPhyPort, openflow.FieldPBBISID, openflow.FieldIPv6ExtHdr}

// match draws a match that passes Check, in canonical order if the generator is tame.
func (g Gen) match() openflow.Match {
	var m openflow.Match
	for id := openflow.FieldInPort; id.Bits() > 0; id++ {
		if g.Tame && !g.OSKen && slices.Contains(notInOVS, id) {
			continue
		}
		often := 4
		if id == openflow.FieldEthType || id == openflow.FieldIPProto || id == openflow.FieldICMPv6Type {
			often = 1
		}
		if upTo(g, often) > 0 && often > 1 {
			continue
		}
		f := g.field(id, true)
		switch id {
		case openflow.FieldEthType:
			f = openflow.EthType(oneOf(g, ethIPv4, ethIPv4, ethIPv6, ethIPv6, ethARP, ethMPLS, ethMPLSM, ethPBB, 0x88cc, 0x8035))
		case openflow.FieldIPProto:
			f = openflow.IPProto(oneOf(g, protoICMP, protoTCP, protoUDP, protoICMPv6, protoSCTP, 2, 47))
		case openflow.FieldICMPv6Type:
			f = openflow.ICMPv6Type(oneOf[uint8](g, 135, 136, 128))
		case openflow.FieldICMPv6Code:
			if t, _ := m.Get(openflow.FieldICMPv6Type); g.Tame && t.Uint() != 128 {
				f = openflow.ICMPv6Code(0) // Open vSwitch refuses fields of neighbour discovery with another
			}
		}
		if append(slices.Clip(m), f).Check() == nil {
			m = append(m, f)
		}
	}
	if mask := uint16(g.Int(1, 0xfff)); !g.OSKen && g.flip() {
		if f := openflow.TCPFlags(num[uint16](g)&mask, mask); append(slices.Clip(m), f).Check() == nil {
			m = append(m, f)
		}
	}
	if g.Tame {
		return m.Canonical()
	}
	if g.flip() {
		m = append(m, g.unknownField())
	}
	return m
}

func (g Gen) unknownField() openflow.Field {
	id := openflow.FieldID(oneOf[uint16](g, openflow.ClassExperimenter, openflow.ClassNXM1, openflow.ClassBasic, 0x1234))<<7 | 100
	value := g.bytes(8)
	var mask []byte
	if g.flip() {
		mask = append([]byte{}, value...)
	}
	return newField(id, value, mask)
}

// writable are fields that set-field can write in Open vSwitch.
var writable = []openflow.FieldID{openflow.FieldMetadata, openflow.FieldEthDst, openflow.FieldEthSrc, openflow.FieldVLANVID, openflow.FieldVLANPCP, openflow.FieldIPDSCP, openflow.FieldIPECN, openflow.FieldIPv4Src, openflow.FieldIPv4Dst,
	openflow.FieldTCPSrc, openflow.FieldTCPDst, openflow.FieldUDPSrc, openflow.FieldUDPDst, openflow.FieldSCTPSrc, openflow.FieldSCTPDst, openflow.FieldARPOp, openflow.FieldARPSPA, openflow.FieldARPTPA, openflow.FieldARPSHA, openflow.FieldARPTHA,
	openflow.FieldIPv6Src, openflow.FieldIPv6Dst, openflow.FieldIPv6FLabel, openflow.FieldIPv6NDTarget, openflow.FieldIPv6NDSLL, openflow.FieldIPv6NDTLL, openflow.FieldMPLSLabel, openflow.FieldMPLSTC, openflow.FieldTunnelID}

// unconditional are those of them that packets of each match have.
var unconditional = []openflow.FieldID{openflow.FieldMetadata, openflow.FieldEthDst, openflow.FieldEthSrc, openflow.FieldTunnelID}

func (g Gen) action() openflow.Action {
	all := []func() openflow.Action{
		func() openflow.Action {
			o := openflow.Output{Port: g.port(openflow.PortInPort, openflow.PortTable, openflow.PortNormal, openflow.PortFlood, openflow.PortAll, openflow.PortController, openflow.PortLocal)}
			if o.Port == openflow.PortController || !g.Tame {
				o.MaxLen = num[uint16](g)
			}
			return o
		},
		func() openflow.Action { return openflow.SetMPLSTTL{TTL: num[uint8](g)} },
		func() openflow.Action { return openflow.DecMPLSTTL{} },
		func() openflow.Action {
			return openflow.PushVLAN{EthType: oneOf[uint16](g, 0x8100, 0x88a8)}
		},
		func() openflow.Action { return openflow.PopVLAN{} },
		func() openflow.Action {
			return openflow.PushMPLS{EthType: oneOf(g, ethMPLS, ethMPLSM)}
		},
		func() openflow.Action { return openflow.PopMPLS{EthType: num[uint16](g)} },
		func() openflow.Action { return openflow.SetQueue{Queue: num[openflow.QueueID](g)} },
		func() openflow.Action { return openflow.Group{Group: g.group()} },
		func() openflow.Action { return openflow.SetNwTTL{TTL: num[uint8](g)} },
		func() openflow.Action { return openflow.DecNwTTL{} },
		func() openflow.Action {
			return openflow.SetField{Field: g.field(oneOf(g, writable...), false)}
		},
		func() openflow.Action {
			return openflow.SetField{Field: g.field(oneOf(g, writable...), false)}
		},
	}
	if g.OSKen || !g.Tame {
		all = append(all,
			func() openflow.Action { return openflow.CopyTTLOut{} },
			func() openflow.Action { return openflow.CopyTTLIn{} },
			func() openflow.Action { return openflow.PushPBB{EthType: num[uint16](g)} },
			func() openflow.Action { return openflow.PopPBB{} },
		)
	}
	if !g.Tame {
		all = append(all,
			func() openflow.Action {
				return openflow.ExperimenterAction{Experimenter: num[uint32](g), Data: g.bytes8(0)}
			},
			func() openflow.Action { return openflow.UnknownAction{Kind: 100, Body: g.bytes8(4)} },
			func() openflow.Action {
				return openflow.UnknownAction{Kind: openflow.ActionSetField, Body: []byte{0x80, 0, 1<<1 | 1, 2, 0, 0, 0, 0, 0, 0, 0, 0}}
			},
		)
	}
	if g.plain {
		all = []func() openflow.Action{all[0], all[5], all[7], all[8],
			func() openflow.Action {
				return openflow.SetField{Field: g.field(oneOf(g, unconditional...), false)}
			}}
	}
	return oneOf(g, all...)()
}

func (g Gen) actions() openflow.Actions { return few(g, 4, g.action) }

// instructions are in the order in which ovs-ofctl prints them.
func (g Gen) instructions(table openflow.TableID) openflow.Instructions {
	var all openflow.Instructions
	for _, f := range []func() openflow.Instruction{ // in the order in which ovs-ofctl prints them
		func() openflow.Instruction { return openflow.Meter{Meter: g.meter()} },
		func() openflow.Instruction { return openflow.ApplyActions{Actions: g.actions()} },
		func() openflow.Instruction { return openflow.ClearActions{} },
		func() openflow.Instruction { return openflow.WriteActions{Actions: g.actions()} },
		func() openflow.Instruction {
			return openflow.WriteMetadata{Metadata: num[uint64](g), Mask: num[uint64](g)}
		},
		func() openflow.Instruction {
			return openflow.GotoTable{Table: openflow.TableID(g.Int(int(table)+1, 254))}
		},
	} {
		if g.flip() {
			all = append(all, f())
		}
	}
	if !g.Tame && g.flip() {
		all = append(all, openflow.ExperimenterInstruction{Experimenter: num[uint32](g), Data: g.bytes8(0)}, openflow.UnknownInstruction{Kind: 77, Body: g.bytes8(4)})
	}
	return all
}

func (g Gen) bucket(t openflow.GroupType) openflow.Bucket {
	b := openflow.Bucket{WatchPort: openflow.PortAny, WatchGroup: openflow.GroupAny, Actions: g.actions()}
	if t == openflow.GroupTypeSelect || !g.Tame {
		b.Weight = uint16(1 + upTo(g, 65534))
	}
	if t == openflow.GroupTypeFF {
		if g.flip() {
			b.WatchPort = g.port()
		} else {
			b.WatchGroup = g.group()
		}
	}
	return b
}

func (g Gen) buckets(t openflow.GroupType) []openflow.Bucket {
	if t == openflow.GroupTypeIndirect {
		return []openflow.Bucket{g.bucket(t)}
	}
	return few(g, 3, func() openflow.Bucket { return g.bucket(t) })
}

func (g Gen) bands(f openflow.MeterFlags) []openflow.Band {
	return few(g, 3, func() openflow.Band { return g.band(f) })
}

func (g Gen) band(f openflow.MeterFlags) openflow.Band {
	limit := openflow.BandLimit{Rate: num[uint32](g)}
	if f&openflow.MeterBurst != 0 || !g.Tame {
		limit.Burst = num[uint32](g)
	}
	all := []openflow.Band{openflow.DropBand{BandLimit: limit}, openflow.DSCPRemarkBand{BandLimit: limit, Levels: num[uint8](g)}}
	if !g.Tame {
		all = append(all, openflow.ExperimenterBand{BandLimit: limit, Experimenter: num[uint32](g), Data: g.bytes8(0)}, openflow.UnknownBand{BandLimit: limit, Kind: 9, Body: g.bytes8(4)})
	}
	return oneOf(g, all...)
}

// frame draws an Ethernet frame of a type that nothing reads.
func (g Gen) frame() []byte {
	src, dst := g.mac(), g.mac()
	return slices.Concat(dst[:], src[:], []byte{0x88, 0xb5}, g.octets(10, 40))
}
