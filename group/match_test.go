package group

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"headgate.dev/headgate/unit"
)

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		s    Selector
		yes  []string
		no   []string
		what string
	}{
		{Selector{Proto: []uint8{TCP}}, []string{"tcp 10.0.0.1:1 10.0.0.2:2"}, []string{"udp 10.0.0.1:1 10.0.0.2:2", "arp"}, "protocol"},
		{Selector{Proto: []uint8{0}}, []string{"0 fd00::1 fd00::2"}, []string{"arp"}, "protocol 0 does not match non-IP packets"},
		{Selector{Src: prefixes("10.0.0.0/8", "fd00::/8")}, []string{"tcp 10.0.0.1:1 192.0.2.1:2", "icmp fd00::1 ::1"}, []string{"tcp 192.0.2.1:2 10.0.0.1:1", "icmp ::1 fd00::1", "stp"}, "source"},
		{Selector{Dst: prefixes("0.0.0.0/0")}, []string{"udp 10.0.0.1:1 192.0.2.1:2"}, []string{"udp [fd00::1]:1 [fd00::2]:2", "arp"}, "0.0.0.0/0 does not match IPv6"},
		{Selector{SPort: []PortRange{{80, 90}}}, []string{"sctp 10.0.0.1:80 10.0.0.2:1", "udp 10.0.0.1:90 10.0.0.2:1"}, []string{"tcp 10.0.0.1:79 10.0.0.2:80", "icmp 10.0.0.1 10.0.0.2"}, "ports"},
		{Selector{SPort: []PortRange{{0, 65535}}}, []string{"tcp 10.0.0.1:0 10.0.0.2:1"}, []string{"udp 10.0.0.1 10.0.0.2 fragment", "47 10.0.0.1 10.0.0.2", "lldp"}, "the full port range needs a port"},
		{Selector{DSCP: []Range{{0, 0}}}, []string{"icmp 10.0.0.1 10.0.0.2"}, []string{"arp", "icmp 10.0.0.1 10.0.0.2 dscp ef"}, "non-IP packets have no DSCP"},
		{Selector{VLAN: []Range{{5, 5}}, Mark: []Mark{{7, AllBits}}}, []string{"arp vlan 5 mark 7"}, []string{"arp vlan 5", "arp mark 7", "arp vlan 6 mark 7"}, "several fields"},
		{Selector{Mark: []Mark{{0, AllBits}}}, []string{"arp"}, []string{"arp mark 1"}, "mark 0"},
		{Selector{Mark: []Mark{{0x4000, 0xff00}}}, []string{"arp mark 0x4000", "arp mark 0xab40ff"}, []string{"arp", "arp mark 0x4100", "arp mark 0x40"}, "masked marks"},
		{Selector{DSCP: []Range{{10, 14}}}, []string{"icmp 10.0.0.1 10.0.0.2 dscp af11", "icmp 10.0.0.1 10.0.0.2 dscp 14"}, []string{"arp", "icmp 10.0.0.1 10.0.0.2 dscp 9", "icmp 10.0.0.1 10.0.0.2 dscp 15"}, "ranges of DSCP"},
		{Selector{VLAN: []Range{{100, 199}}}, []string{"arp vlan 100", "arp vlan 199 pcp 3"}, []string{"arp", "arp vlan 99", "arp vlan 200", "arp pcp 3"}, "ranges of VLAN"},
		{Selector{PCP: []Range{{0, 3}}}, []string{"arp vlan 5", "arp vlan 5 pcp 3", "arp pcp 0"}, []string{"arp", "arp vlan 5 pcp 4", "arp pcp 7"}, "untagged packets have no priority"},
		{Selector{SMAC: []MAC{{[6]byte{0xaa, 0xbb, 0xcc}, [6]byte{0xff, 0xff, 0xff}}}}, []string{"arp smac aa:bb:cc:01:02:03"}, []string{"arp", "arp smac aa:bb:cd:01:02:03"}, "masked MAC"},
		{Selector{Proto: []uint8{TCP}, Not: []Selector{{Dst: prefixes("10.0.0.0/8"), DPort: []Range{{80, 80}, {443, 443}}}}},
			[]string{"tcp 10.0.0.1:1 192.0.2.1:22", "tcp [fd00::1]:1 [fd00::2]:22"},
			[]string{"tcp 10.0.0.1:1 10.0.0.2:22", "tcp 10.0.0.1:1 192.0.2.1:443", "udp 10.0.0.1:1 192.0.2.1:22"}, "each excluded field is independent"},
		{Selector{Not: []Selector{{DPort: []Range{{0, 65535}}}}}, []string{"arp", "icmp 10.0.0.1 10.0.0.2", "udp 10.0.0.1 10.0.0.2 fragment"}, []string{"udp 10.0.0.1:1 10.0.0.2:0"}, "packets without ports are not excluded by port"},
		{Selector{Not: []Selector{{Proto: []uint8{0}, DSCP: []Range{{0, 0}}}}}, []string{"arp", "icmp 10.0.0.1 10.0.0.2 dscp 1"}, []string{"icmp 10.0.0.1 10.0.0.2", "0 fd00::1 fd00::2 dscp 1"}, "non-IP packets are not excluded by protocol or DSCP"},
		{Selector{Not: []Selector{{VLAN: []Range{{1, 4094}}, PCP: []Range{{5, 7}}}}}, []string{"arp", "arp pcp 4"}, []string{"arp vlan 7", "arp pcp 5"}, "exclusion by tag"},
		{Selector{Not: []Selector{{Cgroup: "/a", Mark: []Mark{{0, AllBits}}}}}, []string{"arp mark 1", "arp mark 1 cgroup /b"}, []string{"arp", "arp cgroup /a/b mark 1"}, "exclusion by cgroup"},
		{Selector{Cgroup: "/a"}, []string{"arp cgroup /a", "arp cgroup /a/b"}, []string{"arp", "arp cgroup /ab", "arp cgroup /"}, "nested cgroups"},
	} {
		for _, list := range []struct {
			packets []string
			want    bool
		}{{c.yes, true}, {c.no, false}} {
			for _, text := range list.packets {
				p, err := ParsePacket(text)
				if err != nil {
					t.Errorf("%q: %v", text, err)
				} else if c.s.Matches(p) != list.want {
					t.Errorf("%s: %v matches %q: %v", c.what, c.s, text, !list.want)
				}
			}
		}
	}
}

// evaluate is a reference implementation of rules in nested groups: it walks the groups from
// the top, and the first match decides. It returns the path of the leaf group, or "" for the
// direction's default.
func evaluate(groups []Group, path string, p Packet) string {
	for _, g := range groups {
		here := path + g.Name
		mine := false
		for _, s := range g.Match {
			mine = mine || s.Matches(p)
		}
		switch {
		case len(g.Groups) == 0:
			if mine {
				return here
			}
			continue
		case len(g.Match) > 0 && !mine:
			continue
		}
		if leaf := evaluate(g.Groups, here+"/", p); leaf != "" {
			return leaf
		}
		if mine {
			if leaf := defaultOf(g.Groups, here+"/"); leaf != "" {
				return leaf
			}
		}
	}
	return ""
}

// defaultOf returns the default leaf group among groups. It skips groups that have rules,
// because these have a default of their own.
func defaultOf(groups []Group, path string) string {
	for _, g := range groups {
		if len(g.Groups) == 0 && g.Default {
			return path + g.Name
		}
		if len(g.Match) == 0 {
			if leaf := defaultOf(g.Groups, path+g.Name+"/"); leaf != "" {
				return leaf
			}
		}
	}
	return ""
}

// A few values per field, so that rules overlap and packets match them.
var (
	someProtos  = []uint8{TCP, UDP, ICMP}
	someSources = []string{"10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "0.0.0.0/0", "fd00::/8", "fd00:1::/32", "::/0"}
	someAddrs   = []string{"10.1.2.3", "10.1.9.9", "10.9.9.9", "192.0.2.1", "fd00:1::1", "fd00:2::1", "2001:db8::1"}
	someMACs    = [][6]byte{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}, {2, 0, 0, 0, 1, 1}}
	someCgroups = []string{"/a", "/a/b", "/c"}
)

func drawRule(t *rapid.T) Selector {
	s := drawFields(t)
	if rapid.IntRange(0, 3).Draw(t, "not") == 0 {
		s.Not = []Selector{drawFields(t)}
	}
	return s
}

func drawFields(t *rapid.T) (s Selector) {
	for range rapid.IntRange(1, 3).Draw(t, "fields") {
		switch rapid.IntRange(0, 9).Draw(t, "field") {
		case 0:
			s.Proto = rapid.SliceOfN(rapid.SampledFrom(someProtos), 1, 2).Draw(t, "proto")
		case 1:
			s.Src = prefixes(rapid.SliceOfN(rapid.SampledFrom(someSources), 1, 2).Draw(t, "src")...)
		case 2:
			s.Dst = prefixes(rapid.SliceOfN(rapid.SampledFrom(someSources), 1, 2).Draw(t, "dst")...)
		case 3:
			first := rapid.Uint16Range(0, 9).Draw(t, "first")
			s.SPort = []PortRange{{first, rapid.Uint16Range(first, 9).Draw(t, "last")}}
		case 4:
			s.DSCP = drawRanges(t, "dscp", 0, 2)
		case 5:
			s.VLAN = drawRanges(t, "vlan", 1, 3)
		case 6:
			s.PCP = drawRanges(t, "pcp", 0, 2)
		case 7:
			mask := rapid.SampledFrom([]uint32{AllBits, 1, 2, 3}).Draw(t, "mask")
			s.Mark = []Mark{{rapid.Uint32Range(0, 2).Draw(t, "mark") & mask, mask}}
		case 8:
			s.SMAC = []MAC{{rapid.SampledFrom(someMACs).Draw(t, "smac"), allOfMAC}}
			if rapid.Bool().Draw(t, "masked") {
				s.SMAC[0].Mask[5], s.SMAC[0].Address[5] = 0, 0
			}
		case 9:
			s.Cgroup = rapid.SampledFrom(someCgroups).Draw(t, "cgroup")
		}
	}
	return s
}

func drawRanges(t *rapid.T, label string, least, most uint16) []Range {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Range {
		first := rapid.Uint16Range(least, most).Draw(t, "first")
		return Range{first, rapid.Uint16Range(first, most).Draw(t, "last")}
	}), 1, 2).Draw(t, label)
}

func drawTree(t *rapid.T, depth int) (out []Group) {
	for i := range rapid.IntRange(1, 3).Draw(t, "groups") {
		g := Group{Name: fmt.Sprint(i)}
		for range rapid.IntRange(0, 2).Draw(t, "rules") {
			g.Match = append(g.Match, drawRule(t))
		}
		if depth < MaxDepth && rapid.Bool().Draw(t, "inner") {
			g.Groups = drawTree(t, depth+1)
		} else {
			g.Default = rapid.IntRange(0, 3).Draw(t, "default") == 0
		}
		out = append(out, g)
	}
	return out
}

func drawPacket(t *rapid.T) Packet {
	p := Packet{
		Mark: rapid.Uint32Range(0, 2).Draw(t, "mark"), VLAN: rapid.Uint16Range(0, 3).Draw(t, "vlan"),
		Cgroup: rapid.SampledFrom(append([]string{"", "/a/b/c"}, someCgroups...)).Draw(t, "cgroup"),
		SMAC:   rapid.SampledFrom(append(someMACs, [6]byte{})).Draw(t, "smac"),
	}
	if p.PriorityTag = p.VLAN == 0 && rapid.Bool().Draw(t, "tag"); p.Tagged() {
		p.PCP = rapid.Uint8Range(0, 3).Draw(t, "pcp")
	}
	if rapid.IntRange(0, 9).Draw(t, "link") == 0 {
		p.Link = "arp"
		return p
	}
	p.Src = netip.MustParseAddr(rapid.SampledFrom(someAddrs).Draw(t, "src"))
	p.Dst = netip.MustParseAddr(rapid.SampledFrom(someAddrs).Filter(func(s string) bool {
		return netip.MustParseAddr(s).Is4() == p.Src.Is4()
	}).Draw(t, "dst"))
	p.Proto = rapid.SampledFrom(someProtos).Draw(t, "proto")
	p.Fragment = rapid.IntRange(0, 9).Draw(t, "fragment") == 0
	p.DSCP = rapid.Uint8Range(0, 3).Draw(t, "dscp")
	if p.HasPorts() {
		p.SPort, p.DPort = rapid.Uint16Range(0, 10).Draw(t, "sport"), rapid.Uint16Range(0, 10).Draw(t, "dport")
	}
	return p
}

// TestFlatRulesMatchNestedGroups: the rule list that Resolve builds chooses the same leaf group
// as the nested groups.
func TestFlatRulesMatchNestedGroups(t *testing.T) {
	byRule, byDefault := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		d := Direction{Limit: unit.Gbit, Groups: append(drawTree(t, 1), Group{Name: "last"})}
		tree, problems := d.Resolve("out", true)
		fallback := defaultOf(d.Groups, "")
		if fallback == "" {
			d.Groups[len(d.Groups)-1].Default = true
			fallback = "last"
			tree, problems = d.Resolve("out", true)
		}
		for _, p := range problems {
			if p.Message == NoDefault || p.Message == EmptyRule {
				t.Fatalf("%v", p) // other problems (two defaults, a rule that cannot match) do not change the choice
			}
		}
		for range 10 {
			p := drawPacket(t)
			want := evaluate(d.Groups, "", p)
			rule, leaf := tree.Classify(p)
			if (rule < 0) != (want == "") {
				t.Fatalf("%v: rule %d, want leaf %q", p, rule, want)
			}
			if want == "" {
				want = fallback
				byDefault++
			} else {
				byRule++
			}
			if got := tree.Nodes[leaf].Path; got != want || !tree.Nodes[leaf].Leaf {
				t.Fatalf("%v is assigned to %s by rule %d, want %s\nrules %v", p, got, rule, want, tree.Rules)
			}
		}
	})
	if byRule == 0 || byDefault == 0 {
		t.Errorf("%d packets by a rule, %d by default: the test covers only one case", byRule, byDefault)
	}
}

// TestIntersectMatchesBoth: a packet matches an intersection if and only if it matches both
// selectors.
func TestIntersectMatchesBoth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawRule(t), drawRule(t)
		left := intersectBudget
		both, ok := intersect(a, b, &left)
		for range 10 {
			p := drawPacket(t)
			if want := a.Matches(p) && b.Matches(p); (ok && both.Matches(p)) != want {
				t.Fatalf("%v: the intersection of %v and %v is %v (%v)", p, a, b, both, ok)
			}
		}
	})
}

func TestSelectorJSON(t *testing.T) {
	s := Selector{
		Proto: []uint8{ICMP, ICMPv6, TCP, 47}, Src: prefixes("10.0.0.0/8"), DPort: []PortRange{{80, 80}, {8000, 8099}},
		DSCP: []Range{{0, 0}, {8, 8}, {12, 12}, {63, 63}, {8, 15}, {10, 14}}, VLAN: []Range{{5, 5}, {100, 199}}, PCP: []Range{{7, 7}, {1, 2}},
		Mark: []Mark{{7, AllBits}, {0x4000, 0xff00}}, SMAC: []MAC{{[6]byte{2, 0, 0, 0, 0, 1}, allOfMAC}, {[6]byte{0xaa}, [6]byte{0xff}}}, Cgroup: "/a",
		Not: []Selector{{Cgroup: "/a/b", VLAN: []Range{{101, 101}}}},
	}
	text, err := json.Marshal(s)
	want := `{"proto":["icmp","tcp","47"],"src":["10.0.0.0/8"],"dport":["80","8000-8099"],"dscp":["cs0","cs1","af12","63","8-15","af11-af13"],` +
		`"vlan":[5,"100-199"],"pcp":[7,"1-2"],"mark":[7,"0x4000/0xff00"],"smac":["02:00:00:00:00:01","aa:00:00:00:00:00/ff:00:00:00:00:00"],"cgroup":"/a","not":{"vlan":[101],"cgroup":"/a/b"}}`
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v\nwant %s", text, err, want)
	}
	for _, bad := range []string{`{"proto":["x"]}`, `{"sport":["x"]}`, `{"dport":["x"]}`, `{"dscp":["x"]}`, `{"src":"x"}`,
		`{"vlan":["x"]}`, `{"vlan":[4095]}`, `{"vlan":[-1]}`, `{"pcp":[8]}`, `{"mark":[4294967296]}`, `{"mark":["0x4001/0xff00"]}`, `{"smac":["x"]}`, `{"not":{"not":{"vlan":[1]}}}`} {
		if err := json.Unmarshal([]byte(bad), &Selector{}); err == nil {
			t.Errorf("%s parses without an error", bad)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		tree, _ := Direction{Limit: unit.Gbit, Groups: append(drawTree(t, 1), rest)}.Resolve("out", true)
		text, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		var back Tree
		if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, tree) {
			t.Fatalf("%v\n%s", err, text)
		}
	})
}
