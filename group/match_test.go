package group

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"headgate/unit"
)

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		s    Selector
		yes  []string
		no   []string
		what string
	}{
		{Selector{Proto: []uint8{TCP}}, []string{"tcp 10.0.0.1:1 10.0.0.2:2"}, []string{"udp 10.0.0.1:1 10.0.0.2:2", "arp"}, "protocol"},
		{Selector{Proto: []uint8{0}}, []string{"0 fd00::1 fd00::2"}, []string{"arp"}, "protocol 0 is not what is not IP"},
		{Selector{Src: prefixes("10.0.0.0/8", "fd00::/8")}, []string{"tcp 10.0.0.1:1 192.0.2.1:2", "icmp fd00::1 ::1"}, []string{"tcp 192.0.2.1:2 10.0.0.1:1", "icmp ::1 fd00::1", "stp"}, "source"},
		{Selector{Dst: prefixes("0.0.0.0/0")}, []string{"udp 10.0.0.1:1 192.0.2.1:2"}, []string{"udp [fd00::1]:1 [fd00::2]:2", "arp"}, "all of IPv4 is not IPv6"},
		{Selector{SPort: []PortRange{{80, 90}}}, []string{"sctp 10.0.0.1:80 10.0.0.2:1", "udp 10.0.0.1:90 10.0.0.2:1"}, []string{"tcp 10.0.0.1:79 10.0.0.2:80", "icmp 10.0.0.1 10.0.0.2"}, "ports"},
		{Selector{SPort: []PortRange{{0, 65535}}}, []string{"tcp 10.0.0.1:0 10.0.0.2:1"}, []string{"udp 10.0.0.1 10.0.0.2 fragment", "47 10.0.0.1 10.0.0.2", "lldp"}, "any port is still a port"},
		{Selector{DSCP: []uint8{0}}, []string{"icmp 10.0.0.1 10.0.0.2"}, []string{"arp", "icmp 10.0.0.1 10.0.0.2 dscp ef"}, "what is not IP has no DSCP"},
		{Selector{VLAN: []uint16{5}, Mark: []uint32{7}}, []string{"arp vlan 5 mark 7"}, []string{"arp vlan 5", "arp mark 7", "arp vlan 6 mark 7"}, "fields together"},
		{Selector{Mark: []uint32{0}}, []string{"arp"}, []string{"arp mark 1"}, "mark 0 is no mark"},
		{Selector{Cgroup: "/a"}, []string{"arp cgroup /a", "arp cgroup /a/b"}, []string{"arp", "arp cgroup /ab", "arp cgroup /"}, "cgroups below"},
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

// evaluate is the meaning of nested groups said in the nested terms: down from
// the top, first come, first served. It gives the path of the leaf, or "" for
// the direction's default.
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

// defaultOf is the default leaf among groups, not looking into those that have
// rules and so a default of their own.
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

// Few values for each field, so that rules overlap and packets hit them.
var (
	someProtos  = []uint8{TCP, UDP, ICMP}
	someSources = []string{"10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "0.0.0.0/0", "fd00::/8", "fd00:1::/32", "::/0"}
	someAddrs   = []string{"10.1.2.3", "10.1.9.9", "10.9.9.9", "192.0.2.1", "fd00:1::1", "fd00:2::1", "2001:db8::1"}
	someCgroups = []string{"/a", "/a/b", "/c"}
)

func drawRule(t *rapid.T) (s Selector) {
	for range rapid.IntRange(1, 3).Draw(t, "fields") {
		switch rapid.IntRange(0, 6).Draw(t, "field") {
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
			s.DSCP = rapid.SliceOfN(rapid.Uint8Range(0, 2), 1, 2).Draw(t, "dscp")
		case 5:
			s.VLAN = rapid.SliceOfN(rapid.Uint16Range(1, 3), 1, 2).Draw(t, "vlan")
		case 6:
			s.Cgroup = rapid.SampledFrom(someCgroups).Draw(t, "cgroup")
		}
	}
	return s
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

// TestFlatRulesMeanTheNestedOnes: the list that Resolve makes chooses the leaf
// that the nested groups choose.
func TestFlatRulesMeanTheNestedOnes(t *testing.T) {
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
				t.Fatalf("%v", p) // others (twice the default, a rule that cannot match) do not change what is chosen
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
				t.Fatalf("%v goes to %s by rule %d, want %s\nrules %v", p, got, rule, want, tree.Rules)
			}
		}
	})
	if byRule == 0 || byDefault == 0 {
		t.Errorf("%d packets by a rule, %d by default: the test looks at one side only", byRule, byDefault)
	}
}

// TestIntersectMeansBoth: a packet matches an intersection if it matches both.
func TestIntersectMeansBoth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawRule(t), drawRule(t)
		left := mostMeeting
		both, ok := intersect(a, b, &left)
		for range 10 {
			p := drawPacket(t)
			if want := a.Matches(p) && b.Matches(p); (ok && both.Matches(p)) != want {
				t.Fatalf("%v: %v and %v is %v (%v)", p, a, b, both, ok)
			}
		}
	})
}

func TestSelectorJSON(t *testing.T) {
	s := Selector{
		Proto: []uint8{ICMP, ICMPv6, TCP, 47}, Src: prefixes("10.0.0.0/8"), DPort: []PortRange{{80, 80}, {8000, 8099}},
		DSCP: []uint8{0, 8, 12, 63}, VLAN: []uint16{5}, Mark: []uint32{7}, Cgroup: "/a",
	}
	text, err := json.Marshal(s)
	want := `{"proto":["1","icmpv6","tcp","47"],"src":["10.0.0.0/8"],"dport":["80","8000-8099"],"dscp":["cs0","cs1","af12","63"],"vlan":[5],"mark":[7],"cgroup":"/a"}`
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v\nwant %s", text, err, want)
	}
	for _, bad := range []string{`{"proto":["x"]}`, `{"sport":["x"]}`, `{"dport":["x"]}`, `{"dscp":["x"]}`, `{"src":"x"}`} {
		if err := json.Unmarshal([]byte(bad), &Selector{}); err == nil {
			t.Errorf("%s is read without an error", bad)
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
