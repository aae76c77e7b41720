package openflow

import (
	"slices"

	"pgregory.net/rapid"
)

// gen draws messages. A tame one draws only what other implementations understand and print, a wild one everything
// that can be encoded.
type gen struct {
	*rapid.T
	tame  bool
	plain bool // only actions that fit each match
	osken bool // also what os-ken knows, and Open vSwitch does not
}

func num[T ~uint8 | ~uint16 | ~uint32 | ~uint64](g gen, name string) T {
	return rapid.OneOf(rapid.Just(T(0)), rapid.Just(^T(0)), rapid.Just(T(1)), rapid.Map(rapid.Uint64(), func(v uint64) T { return T(v) })).Draw(g.T, name)
}

// upTo draws 0 to n.
func upTo(g gen, n int, name string) int { return rapid.IntRange(0, n).Draw(g.T, name) }

func (g gen) flip(name string) bool { return rapid.Bool().Draw(g.T, name) }

// few draws up to n values.
func few[T any](g gen, n int, name string, draw func() T) []T {
	var all []T
	for range upTo(g, n, name) {
		all = append(all, draw())
	}
	return all
}

func (g gen) bytes(n int) []byte {
	return few(g, n, "bytes", func() byte { return num[byte](g, "byte") })
}

// bytes8 draws 8n+rest bytes.
func (g gen) bytes8(rest int) []byte {
	n := upTo(g, 2, "eights")*8 + rest
	if n == 0 {
		return nil
	}
	return rapid.SliceOfN(rapid.Byte(), n, n).Draw(g.T, "bytes")
}

func (g gen) text(n int) string {
	return rapid.StringMatching(`[a-z0-9][a-z0-9-]{0,`+string(rune('0'+min(n-2, 9)))+`}`).Draw(g.T, "text")
}

func (g gen) mac() MAC { return MAC(rapid.SliceOfN(rapid.Byte(), 6, 6).Draw(g.T, "mac")) }

// port draws a port, or with reserved also some of the reserved ones.
func (g gen) port(reserved ...PortNo) PortNo {
	if !g.tame {
		return num[PortNo](g, "port")
	}
	if len(reserved) > 0 && g.flip("reserved") {
		return rapid.SampledFrom(reserved).Draw(g.T, "port")
	}
	return PortNo(rapid.IntRange(1, 0xfeff).Draw(g.T, "port"))
}

func (g gen) group(reserved ...GroupID) GroupID {
	if !g.tame {
		return num[GroupID](g, "group")
	}
	if len(reserved) > 0 && g.flip("reserved") {
		return rapid.SampledFrom(reserved).Draw(g.T, "group")
	}
	return GroupID(rapid.Uint32Range(0, uint32(GroupMax)).Draw(g.T, "group"))
}

func (g gen) meter() MeterID {
	return MeterID(rapid.Uint32Range(1, uint32(MeterMax)).Draw(g.T, "meter"))
}

func (g gen) duration() Duration {
	return Duration{uint32(upTo(g, 1<<20, "sec")), uint32(upTo(g, 999_999_999, "nsec"))}
}

// field draws a value of a field, and a mask if it may have one. The value has no bits that the mask leaves out.
func (g gen) field(id FieldID, masks bool) Field {
	info := id.info()
	value := rapid.SliceOfN(rapid.Byte(), info.bytes(), info.bytes()).Draw(g.T, "value")
	fit := func(b []byte) {
		for i := range 8*len(b) - info.bits {
			b[i/8] &^= 0x80 >> (i % 8)
		}
	}
	fit(value)
	switch {
	case id == FieldInPort && g.tame:
		return InPort(g.port(PortLocal))
	case id == FieldARPOp && g.tame:
		return ARPOp(uint16(upTo(g, 255, "op"))) // Open vSwitch keeps 8 bits
	case id == FieldVLANVID:
		vid := VLAN(uint16(upTo(g, 4095, "vid")))
		if !masks {
			return vid
		}
		return rapid.SampledFrom([]Field{vid, vid, AnyVLAN(), NoVLAN()}).Draw(g.T, "vlan")
	}
	if !masks || !info.maskable || g.flip("exact") {
		return field(id, value, nil)
	}
	mask := rapid.SliceOfN(rapid.Byte(), info.bytes(), info.bytes()).Draw(g.T, "mask")
	if g.flip("prefix") {
		n := rapid.IntRange(1+8*len(mask)-info.bits, 8*len(mask)).Draw(g.T, "ones")
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
	return field(id, value, mask)
}

// notInOVS are fields that Open vSwitch 3.1 does not have.
var notInOVS = []FieldID{FieldInPhyPort, FieldPBBISID, FieldIPv6ExtHdr}

// match draws a match that passes Check, in canonical order if the generator is tame.
func (g gen) match() Match {
	var m Match
	for id := FieldInPort; id < fieldEnd; id++ {
		if g.tame && !g.osken && slices.Contains(notInOVS, id) {
			continue
		}
		often := 4
		if id == FieldEthType || id == FieldIPProto || id == FieldICMPv6Type {
			often = 1
		}
		if upTo(g, often, "with") > 0 && often > 1 {
			continue
		}
		f := g.field(id, true)
		switch id {
		case FieldEthType:
			f = EthType(rapid.SampledFrom([]uint16{ethIPv4, ethIPv4, ethIPv6, ethIPv6, ethARP, ethMPLS, ethMPLSM, ethPBB, 0x88cc, 0x8035}).Draw(g.T, "type"))
		case FieldIPProto:
			f = IPProto(rapid.SampledFrom([]uint8{protoICMP, protoTCP, protoUDP, protoICMPv6, protoSCTP, 2, 47}).Draw(g.T, "proto"))
		case FieldICMPv6Type:
			f = ICMPv6Type(rapid.SampledFrom([]uint8{135, 136, 128}).Draw(g.T, "icmp"))
		}
		if m.needs(f) == nil {
			m = append(m, f)
		}
	}
	if g.tame {
		return m.Canonical()
	}
	if g.flip("unknown") {
		m = append(m, g.unknownField())
	}
	return m
}

func (g gen) unknownField() Field {
	id := FieldID(rapid.SampledFrom([]uint16{ClassExperimenter, ClassNXM1, ClassBasic, 0x1234}).Draw(g.T, "class"))<<7 | 100
	value := g.bytes(8)
	var mask []byte
	if g.flip("masked") {
		mask = append([]byte{}, value...)
	}
	f, err := NewField(id, value, mask)
	if err != nil {
		g.Fatal(err)
	}
	return f
}

// writable are fields that set-field can write in Open vSwitch.
var writable = []FieldID{FieldMetadata, FieldEthDst, FieldEthSrc, FieldVLANVID, FieldVLANPCP, FieldIPDSCP, FieldIPECN, FieldIPv4Src, FieldIPv4Dst,
	FieldTCPSrc, FieldTCPDst, FieldUDPSrc, FieldUDPDst, FieldSCTPSrc, FieldSCTPDst, FieldARPOp, FieldARPSPA, FieldARPTPA, FieldARPSHA, FieldARPTHA,
	FieldIPv6Src, FieldIPv6Dst, FieldIPv6FLabel, FieldIPv6NDTarget, FieldIPv6NDSLL, FieldIPv6NDTLL, FieldMPLSLabel, FieldMPLSTC, FieldTunnelID}

// unconditional are those of them that packets of each match have.
var unconditional = []FieldID{FieldMetadata, FieldEthDst, FieldEthSrc, FieldTunnelID}

func (g gen) action() Action {
	all := []func() Action{
		func() Action {
			o := Output{Port: g.port(PortInPort, PortTable, PortNormal, PortFlood, PortAll, PortController, PortLocal)}
			if o.Port == PortController || !g.tame {
				o.MaxLen = num[uint16](g, "max_len")
			}
			return o
		},
		func() Action { return SetMPLSTTL{num[uint8](g, "ttl")} },
		func() Action { return DecMPLSTTL{} },
		func() Action { return PushVLAN{rapid.SampledFrom([]uint16{0x8100, 0x88a8}).Draw(g.T, "type")} },
		func() Action { return PopVLAN{} },
		func() Action { return PushMPLS{rapid.SampledFrom([]uint16{ethMPLS, ethMPLSM}).Draw(g.T, "type")} },
		func() Action { return PopMPLS{num[uint16](g, "type")} },
		func() Action { return SetQueue{num[QueueID](g, "queue")} },
		func() Action { return Group{g.group()} },
		func() Action { return SetNwTTL{num[uint8](g, "ttl")} },
		func() Action { return DecNwTTL{} },
		func() Action { return SetField{g.field(rapid.SampledFrom(writable).Draw(g.T, "field"), false)} },
		func() Action { return SetField{g.field(rapid.SampledFrom(writable).Draw(g.T, "field"), false)} },
	}
	if g.osken || !g.tame {
		all = append(all,
			func() Action { return CopyTTLOut{} },
			func() Action { return CopyTTLIn{} },
			func() Action { return PushPBB{num[uint16](g, "type")} },
			func() Action { return PopPBB{} },
		)
	}
	if !g.tame {
		all = append(all,
			func() Action { return ExperimenterAction{num[uint32](g, "id"), g.bytes8(0)} },
			func() Action { return UnknownAction{100, g.bytes8(4)} },
			func() Action {
				return UnknownAction{ActionSetField, []byte{0x80, 0, 1<<1 | 1, 2, 0, 0, 0, 0, 0, 0, 0, 0}}
			},
		)
	}
	if g.plain {
		all = []func() Action{all[0], all[5], all[7], all[8],
			func() Action { return SetField{g.field(rapid.SampledFrom(unconditional).Draw(g.T, "field"), false)} }}
	}
	return rapid.SampledFrom(all).Draw(g.T, "action")()
}

func (g gen) actions() Actions { return few(g, 4, "actions", g.action) }

// instructions are in the order in which ovs-ofctl prints them.
func (g gen) instructions(table TableID) Instructions {
	var all Instructions
	for _, f := range []func() Instruction{ // in the order in which ovs-ofctl prints them
		func() Instruction { return Meter{g.meter()} },
		func() Instruction { return ApplyActions{g.actions()} },
		func() Instruction { return ClearActions{} },
		func() Instruction { return WriteActions{g.actions()} },
		func() Instruction { return WriteMetadata{num[uint64](g, "metadata"), num[uint64](g, "mask")} },
		func() Instruction { return GotoTable{TableID(rapid.IntRange(int(table)+1, 254).Draw(g.T, "next"))} },
	} {
		if g.flip("instruction") {
			all = append(all, f())
		}
	}
	if !g.tame && g.flip("unknown") {
		all = append(all, ExperimenterInstruction{num[uint32](g, "id"), g.bytes8(0)}, UnknownInstruction{77, g.bytes8(4)})
	}
	return all
}

func (g gen) bucket(t GroupType) Bucket {
	b := Bucket{WatchPort: PortAny, WatchGroup: GroupAny, Actions: g.actions()}
	if t == GroupTypeSelect || !g.tame {
		b.Weight = uint16(1 + upTo(g, 65534, "weight"))
	}
	if t == GroupTypeFF {
		if g.flip("port") {
			b.WatchPort = g.port()
		} else {
			b.WatchGroup = g.group()
		}
	}
	return b
}

func (g gen) buckets(t GroupType) []Bucket {
	if t == GroupTypeIndirect {
		return []Bucket{g.bucket(t)}
	}
	return few(g, 3, "buckets", func() Bucket { return g.bucket(t) })
}

func (g gen) bands(f MeterFlags) []Band { return few(g, 3, "bands", func() Band { return g.band(f) }) }

func (g gen) band(f MeterFlags) Band {
	limit := BandLimit{Rate: num[uint32](g, "rate")}
	if f&MeterBurst != 0 || !g.tame {
		limit.Burst = num[uint32](g, "burst")
	}
	all := []Band{DropBand{limit}, DSCPRemarkBand{limit, num[uint8](g, "levels")}}
	if !g.tame {
		all = append(all, ExperimenterBand{limit, num[uint32](g, "id"), g.bytes8(0)}, UnknownBand{limit, 9, g.bytes8(4)})
	}
	return rapid.SampledFrom(all).Draw(g.T, "band")
}

// frame draws an Ethernet frame of a type that nothing reads.
func (g gen) frame() []byte {
	src, dst := g.mac(), g.mac()
	return slices.Concat(dst[:], src[:], []byte{0x88, 0xb5}, rapid.SliceOfN(rapid.Byte(), 10, 40).Draw(g.T, "payload"))
}
