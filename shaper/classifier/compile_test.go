package classifier

import (
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/unit"
)

// TestCost: the estimated cost of a selector is not below its actual cost.
func TestCost(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	prefixes := func() (out []netip.Prefix) {
		for range rng.IntN(4) {
			a := netip.AddrFrom4([4]byte{10, byte(rng.IntN(256)), byte(rng.IntN(256)), 1})
			if rng.IntN(3) == 0 {
				a = netip.AddrFrom16([16]byte{0: 0xfd, 5: byte(rng.IntN(256)), 15: 1})
			}
			out = append(out, netip.PrefixFrom(a, rng.IntN(a.BitLen()+1)))
		}
		return out
	}
	ports := func() (out []group.PortRange) {
		for range rng.IntN(3) {
			first := rng.IntN(65536)
			out = append(out, group.PortRange{First: uint16(first), Last: uint16(first + rng.IntN(min(300, 65536-first)))})
		}
		return out
	}
	fields := func() (s group.Selector) {
		s = group.Selector{Src: prefixes(), Dst: prefixes(), SPort: ports(), DPort: ports()}
		if rng.IntN(2) == 0 {
			s.Proto = []uint8{group.TCP, group.UDP}[:1+rng.IntN(2)]
		}
		if rng.IntN(4) == 0 {
			s.DSCP = []group.Range{group.SingleRange(8), {First: 40, Last: uint16(40 + rng.IntN(24))}}
		}
		if rng.IntN(3) == 0 {
			s.VLAN = []group.Range{{First: 1 + uint16(rng.IntN(100)), Last: 100 + uint16(rng.IntN(3995))}}
		}
		if rng.IntN(3) == 0 {
			s.PCP = []group.Range{{First: uint16(rng.IntN(4)), Last: uint16(4 + rng.IntN(4))}}
		}
		for range rng.IntN(3) {
			m := group.Mark{Value: rng.Uint32(), Mask: rng.Uint32()}
			if rng.IntN(2) == 0 {
				m.Mask = group.AllBits
			}
			m.Value &= m.Mask
			s.Mark = append(s.Mark, m)
		}
		for range rng.IntN(2) {
			s.SMAC = append(s.SMAC, group.MAC{Address: [6]byte{0xaa, byte(rng.IntN(256))}, Mask: [6]byte{0xff, 0xff}})
		}
		return s
	}
	for i := range 4000 {
		s := fields()
		if i%2 == 0 { // few fields, so that the rule can be compiled
			not := fields()
			for _, clear := range []func(){
				func() { not.Src, not.Dst = nil, nil }, func() { not.SPort, not.DPort = nil, nil }, func() { not.Mark, not.VLAN = nil, nil }, func() { not.SMAC, not.PCP, not.DSCP = nil, nil, nil },
				func() { s.SPort, s.DPort = nil, nil }, func() { s.Src, s.Dst = nil, nil }, func() { s.VLAN, s.Mark = nil, nil },
			} {
				if rng.IntN(2) == 0 {
					clear()
				}
			}
			s.Not = []group.Selector{not}
		}
		if s.Entries() > 20_000 {
			continue // compiling would take minutes
		}
		table, err := Compile(group.Tree{Limit: unit.Gbit, Rules: []group.Rule{{Selector: s}}}, func(int) uint16 { return 1 }, nil)
		shapes := map[group.Shape]bool{}
		s.Shapes(shapes, MaxShapes)
		if err != nil && len(shapes) <= MaxShapes && s.Entries() <= MaxEntries {
			t.Fatalf("%v: %v, although it has only %d shapes", s, err, len(shapes))
		}
		if err == nil && (len(table.Entries) > s.Entries() || len(table.Shapes) > len(shapes)) {
			t.Fatalf("%v takes %d entries of %d shapes, but the estimate is %d of %d", s, len(table.Entries), len(table.Shapes), s.Entries(), len(shapes))
		}
	}
}

// TestRuleThatMultiplies: a rule whose lists multiply beyond the capacity is rejected before it
// exhausts memory: this rule has 10^12 combinations.
func TestRuleThatMultiplies(t *testing.T) {
	var s group.Selector
	for i := range uint16(group.MaxValues) {
		at := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 32)
		s.Src, s.Dst = append(s.Src, at), append(s.Dst, at)
		s.SPort, s.DPort = append(s.SPort, group.PortRange{First: i, Last: i}), append(s.DPort, group.PortRange{First: i, Last: i})
	}
	err := Check(group.Tree{Limit: unit.Gbit, Rules: []group.Rule{{Selector: s}}})
	if err == nil || !strings.Contains(err.Error(), "multiply to more than 1048576") {
		t.Errorf("the rule is accepted: %v", err)
	}
}

// TestExclusionThatMultiplies: if the last exclusion multiplies beyond the capacity, the whole
// rule is rejected.
func TestExclusionThatMultiplies(t *testing.T) {
	tree := group.Tree{Limit: unit.Gbit, Rules: []group.Rule{{Selector: group.Selector{
		DSCP: []group.Range{group.SingleRange(0), {First: 0, Last: 9}, group.SingleRange(63), group.SingleRange(63), group.SingleRange(0)}, PCP: []group.Range{group.SingleRange(0)},
		Not: []group.Selector{{
			Proto: []uint8{4, group.ICMPv6, 4}, Dst: []netip.Prefix{netip.MustParsePrefix("255.0.0.0/8")},
			VLAN: []group.Range{group.SingleRange(1000)}, Mark: []group.Mark{{Value: 1, Mask: 7}},
		}},
	}}}}
	if err := Check(tree); err == nil || !strings.Contains(err.Error(), "multiply to more than 1048576") {
		t.Errorf("the rule is accepted: %v", err)
	}
}

// keyOf returns the key of a packet, as the eBPF program computes it.
func keyOf(p group.Packet) (k FlowKey) {
	k.VLAN, k.Mark, k.SMAC = p.VLAN, p.Mark, p.SMAC
	if p.Tagged() {
		k.VLAN |= tagged | uint16(p.PCP)<<pcpShift
	}
	if p.Link != "" {
		return k
	}
	k.Src, k.Family = address(p.Src)
	k.Dst, _ = address(p.Dst)
	k.Proto, k.DSCP = p.Proto, p.DSCP
	if p.HasPorts() {
		k.SPort, k.DPort, k.DSCP = port(p.SPort), port(p.DPort), k.DSCP|hasPorts
	}
	return k
}

// TestTableMatchesRules: exclusions are compiled into their complement; for every packet, the
// table finds the same rule as the reference implementation.
func TestTableMatchesRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := group.Tree{Limit: unit.Gbit}
		for i := range rapid.IntRange(1, 5).Draw(t, "rules") {
			s := drawFields(t, 1)
			if rapid.Bool().Draw(t, "not") {
				s.Not = []group.Selector{drawFields(t, 2)}
			}
			tree.Rules = append(tree.Rules, group.Rule{Selector: s, Node: i + 1})
		}
		table, err := Compile(tree, func(n int) uint16 { return uint16(n) }, nil)
		if err != nil {
			t.Skip(err.Error()) // too many shapes
		}
		for range 30 {
			p := drawPacket(t)
			want, leaf := tree.Classify(p)
			got, found := table.Lookup(keyOf(p))
			if found != (want >= 0) || found && (int(got.Index) != want || int(got.Class) != leaf) {
				t.Fatalf("%v: rule %d by the table (%v), %d by the rules\n%v", p, got.Index, found, want, tree.Rules)
			}
		}
	})
}

// A few values at the boundaries of the drawn rules, so that packets match them.
var (
	edgePorts = []uint16{0, 79, 80, 89, 90, 443, 65535}
	edgeVLANs = []uint16{1, 99, 100, 150, 199, 200, 4094}
	edgeDSCPs = []uint16{0, 7, 8, 10, 14, 15, 16, 46, 63}
	edgeMarks = []uint32{0, 7, 0x4000, 0x40ff, 0xab40cd, 1 << 31}
	edgeMACs  = [][6]byte{{}, {2, 0, 0, 0, 0, 1}, {0xaa, 0xbb, 0xcc, 1, 2, 3}, {0xaa, 0xbb, 0xcd}}
	edgeAddrs = []string{"10.0.0.0", "10.1.2.3", "10.1.2.4", "11.0.0.0", "255.255.255.255", "0.0.0.0", "fd00::", "fd00::1", "fd00:1::", "::10.1.2.3", "ffff::"}
	edgeProto = []uint8{0, 1, group.TCP, group.UDP, group.SCTP, 47, 58, 255}
)

func drawFields(t *rapid.T, most int) (s group.Selector) {
	ranges := func(label string, values []uint16) []group.Range {
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) group.Range {
			a, b := rapid.SampledFrom(values).Draw(t, "a"), rapid.SampledFrom(values).Draw(t, "b")
			return group.Range{First: min(a, b), Last: max(a, b)}
		}), 1, 2).Draw(t, label)
	}
	prefixes := func(label string) []netip.Prefix {
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) netip.Prefix {
			a := netip.MustParseAddr(rapid.SampledFrom(edgeAddrs).Draw(t, "address"))
			return netip.PrefixFrom(a, rapid.SampledFrom([]int{0, 7, 8, 24, 31, 32, 64, 127, 128}).Filter(func(n int) bool { return n <= a.BitLen() }).Draw(t, "bits")).Masked()
		}), 1, 2).Draw(t, label)
	}
	for range rapid.IntRange(1, most).Draw(t, "fields") {
		switch rapid.IntRange(0, 9).Draw(t, "field") {
		case 0:
			s.Proto = rapid.SliceOfN(rapid.SampledFrom(edgeProto), 1, 3).Draw(t, "proto")
		case 1:
			s.Src = prefixes("src")
		case 2:
			s.Dst = prefixes("dst")
		case 3:
			s.SPort = ranges("sport", edgePorts)
		case 4:
			s.DPort = ranges("dport", edgePorts)
		case 5:
			s.DSCP = ranges("dscp", edgeDSCPs)
		case 6:
			s.VLAN = ranges("vlan", edgeVLANs)
		case 7:
			s.PCP = ranges("pcp", []uint16{0, 1, 3, 4, 7})
		case 8:
			s.Mark = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) group.Mark {
				mask := rapid.SampledFrom([]uint32{group.AllBits, 0xff00, 7, 1<<31 | 1}).Draw(t, "mask")
				return group.Mark{Value: rapid.SampledFrom(edgeMarks).Draw(t, "value") & mask, Mask: mask}
			}), 1, 2).Draw(t, "mark")
		case 9:
			m := group.MAC{Address: rapid.SampledFrom(edgeMACs).Draw(t, "smac"), Mask: rapid.SampledFrom([][6]byte{{255, 255, 255, 255, 255, 255}, {255, 255, 255}, {0, 0, 0, 0, 0, 1}}).Draw(t, "mask")}
			for i := range m.Mask {
				m.Address[i] &= m.Mask[i]
			}
			s.SMAC = []group.MAC{m}
		}
	}
	return s
}

func drawPacket(t *rapid.T) group.Packet {
	p := group.Packet{
		VLAN: rapid.SampledFrom(append(edgeVLANs, 0, 0, 0)).Draw(t, "vlan"), Mark: rapid.SampledFrom(edgeMarks).Draw(t, "mark"),
		SMAC: rapid.SampledFrom(edgeMACs).Draw(t, "smac"), PriorityTag: rapid.IntRange(0, 5).Draw(t, "tag") == 0,
	}
	if p.Tagged() {
		p.PCP = rapid.Uint8Range(0, 7).Draw(t, "pcp")
	}
	if rapid.IntRange(0, 9).Draw(t, "link") == 0 {
		p.Link = "0x88b5"
		return p
	}
	p.Src = netip.MustParseAddr(rapid.SampledFrom(edgeAddrs).Draw(t, "src"))
	p.Dst = netip.MustParseAddr(rapid.SampledFrom(edgeAddrs).Filter(func(a string) bool { return netip.MustParseAddr(a).Is4() == p.Src.Is4() }).Draw(t, "dst"))
	p.Proto, p.DSCP = rapid.SampledFrom(edgeProto).Draw(t, "proto"), uint8(rapid.SampledFrom(edgeDSCPs).Draw(t, "dscp"))
	if p.Fragment = rapid.IntRange(0, 9).Draw(t, "fragment") == 0; p.HasPorts() {
		p.SPort, p.DPort = rapid.SampledFrom(edgePorts).Draw(t, "sport"), rapid.SampledFrom(edgePorts).Draw(t, "dport")
	}
	return p
}

// TestShapesOfExclusions: one or two excluded addresses use only a few of the available shapes.
func TestShapesOfExclusions(t *testing.T) {
	for _, c := range []struct {
		not    group.Selector
		shapes int
	}{
		{group.Selector{Dst: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, 3},
		{group.Selector{Dst: []netip.Prefix{netip.MustParsePrefix("10.1.2.3/32"), netip.MustParsePrefix("192.0.2.1/32")}}, 9},
		{group.Selector{Dst: []netip.Prefix{netip.MustParsePrefix("10.1.2.3/32")}, Src: []netip.Prefix{netip.MustParsePrefix("10.1.2.3/32")}}, 65},
		{group.Selector{Dst: []netip.Prefix{netip.MustParsePrefix("fd00::1/128")}}, 33},
		{group.Selector{DPort: []group.Range{group.SingleRange(80), group.SingleRange(443)}}, 5},
		{group.Selector{VLAN: []group.Range{{First: 100, Last: 199}}}, 6},
		{group.Selector{DSCP: []group.Range{group.SingleRange(46)}}, 2},
		{group.Selector{Mark: []group.Mark{{Value: 7, Mask: group.AllBits}}}, 8},
	} {
		table, err := Compile(group.Tree{Limit: unit.Gbit, Rules: []group.Rule{{Selector: group.Selector{Not: []group.Selector{c.not}}}}}, func(int) uint16 { return 1 }, nil)
		if err != nil || len(table.Shapes) > c.shapes {
			t.Errorf("not (%v) takes %d shapes and %d entries, %v; want %d shapes", c.not, len(table.Shapes), len(table.Entries), err, c.shapes)
		}
	}
}
