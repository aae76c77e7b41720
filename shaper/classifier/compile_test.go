package classifier

import (
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"headgate/group"
	"headgate/unit"
)

// What a selector is said to cost is no less than it does.
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
	for range 2000 {
		s := group.Selector{Src: prefixes(), Dst: prefixes(), SPort: ports(), DPort: ports(), VLAN: make([]uint16, rng.IntN(2)), Mark: make([]uint32, rng.IntN(2))}
		if rng.IntN(2) == 0 {
			s.Proto = []uint8{group.TCP, group.UDP}[:1+rng.IntN(2)]
		}
		if rng.IntN(4) == 0 {
			s.DSCP = []uint8{8, 46}
		}
		table, err := Compile(group.Tree{Limit: unit.Gbit, Rules: []group.Rule{{Selector: s}}}, func(int) uint16 { return 1 }, nil)
		shapes := map[group.Shape]bool{}
		s.Shapes(shapes, MaxShapes)
		if err != nil && len(shapes) <= MaxShapes {
			t.Fatalf("%v: %v, and it has %d shapes", s, err, len(shapes))
		}
		if err == nil && (len(table.Entries) > s.Entries() || len(table.Shapes) > len(shapes)) {
			t.Fatalf("%v takes %d entries of %d shapes, and is said to take %d of %d", s, len(table.Entries), len(table.Shapes), s.Entries(), len(shapes))
		}
	}
}

// A rule whose lists multiply to more than there is room for is refused before it has taken the
// memory: these are a thousand billions.
func TestRuleThatMultiplies(t *testing.T) {
	var s group.Selector
	for i := range uint16(group.MaxValues) {
		at := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 32)
		s.Src, s.Dst = append(s.Src, at), append(s.Dst, at)
		s.SPort, s.DPort = append(s.SPort, group.PortRange{First: i, Last: i}), append(s.DPort, group.PortRange{First: i, Last: i})
	}
	err := Check(group.Tree{Limit: unit.Gbit, Rules: []group.Rule{{Selector: s}}})
	if err == nil || !strings.Contains(err.Error(), "multiply to more than 1048576") {
		t.Errorf("it is taken: %v", err)
	}
}
