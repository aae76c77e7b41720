package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/unit"
)

func itoa(n int) string { return strconv.Itoa(n) }

// checkDuplicateSets compares the meaning of two sets, not the positions.
func checkDuplicateSets(t interface {
	Helper()
	Fatalf(string, ...any)
}, a, b Set) {
	t.Helper()
	if len(a.Interfaces) != len(b.Interfaces) {
		t.Fatalf("%d interfaces, and %d", len(a.Interfaces), len(b.Interfaces))
	}
	for i := range a.Interfaces {
		if !reflect.DeepEqual(a.Interfaces[i].Resolved, b.Interfaces[i].Resolved) {
			t.Fatalf("the interfaces differ:\n%s\n%s", Format(a.Interfaces[i].Resolved.Interface), Format(b.Interfaces[i].Resolved.Interface))
		}
	}
}

// TestFormatRoundTrip: every valid Interface formats to a document that parses to the same
// Interface.
func TestFormatRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i := drawInterface(t)
		resolved, problems := i.Resolve()
		if len(problems) > 0 {
			t.Skip("not valid") // the generator does not avoid all overlaps
		}
		text := Format(i)
		set, err := Parse("printed", text)
		if err != nil {
			t.Fatalf("%v\nin\n%s", err, text)
		}
		if !reflect.DeepEqual(set.Interfaces[0].Resolved, resolved) {
			t.Fatalf("parsed as\n%s\nwant\n%s", Format(set.Interfaces[0].Resolved.Interface), text)
		}
	})
}

func drawInterface(t *rapid.T) group.Interface {
	i := group.Interface{
		Dev:         rapid.SampledFrom([]string{"eth0", "veth*", "1", "null", "-x", "wg-a.5", "eth[0-3]", `a"b\c`, "é", "a b#"[:1], "true", "~", "*"}).Draw(t, "dev"),
		Perspective: rapid.SampledFrom([]group.Perspective{"", group.Host, group.Guest}).Draw(t, "perspective"),
		Engine:      rapid.SampledFrom([]group.Engine{"", group.HTB, group.Quantum}).Draw(t, "engine"),
		Overhead:    group.Overhead{Frame: unit.Bytes(rapid.IntRange(0, 256).Draw(t, "frame")), Minimum: unit.Bytes(rapid.IntRange(0, 1500).Draw(t, "minimum"))},
	}
	if i.Engine == group.Quantum {
		i.Quantum = time.Duration(rapid.Int64Range(0, int64(group.MaxQuantum)).Draw(t, "quantum"))
		i.Overdraft = rapid.Bool().Draw(t, "overdraft")
		switch rapid.IntRange(0, 2).Draw(t, "step") {
		case 1:
			i.Step.Bytes = unit.Bytes(rapid.Uint64Range(1, 1<<40).Draw(t, "bytes"))
		case 2:
			i.Step.Share = unit.Share(rapid.Uint32Range(1, uint32(unit.Whole)).Draw(t, "part"))
		}
	}
	i.Out = drawDirection(t, i.Perspective != group.Guest)
	if rapid.Bool().Draw(t, "in") {
		i.In = drawDirection(t, false)
	}
	return i
}

func drawDirection(t *rapid.T, cgroups bool) *group.Direction {
	d := &group.Direction{
		Limit: unit.Rate(rapid.Uint64Range(uint64(100*unit.Kbit), uint64(unit.MaxRate)).Draw(t, "limit")),
		Spare: rapid.SampledFrom([]group.Spare{"", group.Proportional, group.Equal, group.Priority}).Draw(t, "spare"),
	}
	d.Groups = append(drawGroups(t, 1, d.Spare == group.Priority, cgroups), group.Group{Name: "default", Default: true})
	return d
}

func drawGroups(t *rapid.T, depth int, priorities, cgroups bool) (out []group.Group) {
	n := rapid.IntRange(0, 3).Draw(t, "groups")
	for i := range n {
		g := group.Group{Name: fmt.Sprintf("%s%d", rapid.SampledFrom([]string{"web", "0x", "null", "A.b-c_", "1e"}).Draw(t, "name"), i)}
		switch rapid.IntRange(0, 2).Draw(t, "guarantee") {
		case 0:
			g.Guarantee.Share = unit.Whole / unit.Share(n) / unit.Share(rapid.IntRange(1, 9).Draw(t, "part"))
		case 1:
			g.Guarantee.Rate = unit.Rate(rapid.Uint64Range(0, 1000).Draw(t, "rate"))
		}
		if rapid.Bool().Draw(t, "ceiling") {
			g.Ceiling.Share = unit.Whole
		}
		if priorities {
			g.Priority = rapid.IntRange(0, group.MaxPriority).Draw(t, "priority")
		}
		for range rapid.IntRange(0, 2).Draw(t, "joins") {
			g.Join = append(g.Join, rapid.SampledFrom([]string{"backup", "1001", "null", "true", "host$", "_a.b-c"}).Draw(t, "join"))
		}
		for range rapid.IntRange(0, 2).Draw(t, "rules") {
			g.Match = append(g.Match, drawSelector(t, cgroups))
		}
		if depth < group.MaxDepth && rapid.IntRange(0, 2).Draw(t, "inner") == 0 {
			g.Groups = drawGroups(t, depth+1, priorities, cgroups)
			if len(g.Match) > 0 && len(g.Groups) > 0 && len(g.Groups[0].Groups) == 0 {
				g.Groups[0].Default = rapid.Bool().Draw(t, "default")
			}
		}
		out = append(out, g)
	}
	return out
}

func drawSelector(t *rapid.T, cgroups bool) group.Selector {
	s := drawFields(t, cgroups)
	if rapid.IntRange(0, 2).Draw(t, "not") == 0 {
		if not := drawFields(t, cgroups); !not.IsZero() {
			s.Not = []group.Selector{not}
		}
	}
	return s
}

func drawFields(t *rapid.T, cgroups bool) (s group.Selector) {
	prefixes := func(label string) []netip.Prefix {
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) netip.Prefix {
			if rapid.Bool().Draw(t, "v4") {
				a := netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "address")))
				return netip.PrefixFrom(a, rapid.IntRange(0, 32).Draw(t, "bits")).Masked()
			}
			b := [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "address"))
			b[0] = 0xfd // not IPv4-mapped
			return netip.PrefixFrom(netip.AddrFrom16(b), rapid.IntRange(8, 128).Draw(t, "bits")).Masked()
		}), 1, 3).Draw(t, label)
	}
	ports := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) group.PortRange {
		first := rapid.Uint16().Draw(t, "first")
		return group.PortRange{First: first, Last: rapid.Uint16Range(first, 65535).Draw(t, "last")}
	}), 1, 3)
	for range rapid.IntRange(1, 3).Draw(t, "fields") {
		switch rapid.IntRange(0, 10).Draw(t, "field") {
		case 0:
			s.Proto = rapid.SliceOfN(rapid.SampledFrom([]uint8{group.ICMP, group.ICMPv6, group.TCP, group.UDP, group.SCTP, 0, 47, 255}), 1, 4).Draw(t, "proto")
		case 1:
			s.Src = prefixes("src")
		case 2:
			s.Dst = prefixes("dst")
		case 3:
			s.SPort = ports.Draw(t, "sport")
		case 4:
			s.DPort = ports.Draw(t, "dport")
		case 5:
			s.DSCP = ranges(t, "dscp", 0, 63)
		case 6:
			s.VLAN = ranges(t, "vlan", 1, 4094)
		case 7:
			mask := rapid.OneOf(rapid.Just[uint32](group.AllBits), rapid.Uint32Range(1, group.AllBits)).Draw(t, "mask")
			s.Mark = []group.Mark{{Value: rapid.Uint32().Draw(t, "mark") & mask, Mask: mask}}
		case 8:
			if cgroups {
				s.Cgroup = rapid.SampledFrom([]string{"/a", "/system.slice/x.service", "/a b/c", "/é\"\\", "/a/#", "/a: b"}).Draw(t, "cgroup")
			}
		case 9:
			s.PCP = ranges(t, "pcp", 0, 7)
		case 10:
			m := group.MAC{Mask: [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}
			if rapid.Bool().Draw(t, "masked") {
				m.Mask = [6]byte{0xff, 0xff, 0xff, 0, 0, 1}
			}
			for i, b := range rapid.SliceOfN(rapid.Byte(), 6, 6).Draw(t, "smac") {
				m.Address[i] = b & m.Mask[i]
			}
			m.Address[0] &= 0xfe
			s.SMAC = []group.MAC{m}
		}
	}
	return s
}

func ranges(t *rapid.T, label string, least, most uint16) []group.Range {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) group.Range {
		first := rapid.Uint16Range(least, most).Draw(t, "first")
		return group.Range{First: first, Last: rapid.OneOf(rapid.Just(first), rapid.Uint16Range(first, most)).Draw(t, "last")}
	}), 1, 3).Draw(t, label)
}

// FuzzParse: parsing does not panic or hang, mistakes have positions, and every valid
// configuration survives a round trip.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/mistakes/*.yaml", "testdata/valid/*.yaml", "testdata/network.yaml", "testdata/reservation.yaml"} {
		seed(f, pattern)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<16 {
			return // length is not under test
		}
		began := time.Now()
		set, err := Parse("fuzz", text)
		if d := time.Since(began); d > 2*time.Second {
			t.Fatalf("reading %d bytes took %v", len(text), d)
		}
		if err != nil {
			for _, m := range err.(Errors) {
				if m.Line < 0 || m.Message == "" {
					t.Errorf("a mistake without a position: %+v", m)
				}
			}
			return
		}
		for _, n := range set.Networks {
			checkNetwork(t, n.Config)
		}
		for _, r := range set.Reservations {
			checkReservation(t, r.Request)
		}
		var printed []byte
		for _, i := range set.Interfaces {
			printed = append(append(printed, "---\n"...), Format(i.Resolved.Interface)...)
		}
		if len(printed) == 0 {
			return
		}
		again, err := Parse("printed", printed)
		if err != nil {
			t.Fatalf("%v\nformatted as\n%s", err, printed)
		}
		checkDuplicateSets(t, set, again)
	})
}
