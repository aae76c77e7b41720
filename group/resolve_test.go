package group

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"headgate.dev/headgate/unit"
)

func share(percent uint32) Amount { return Amount{Share: unit.Share(percent * 10_000)} }

func rate(r unit.Rate) Amount { return Amount{Rate: r} }

func prefixes(list ...string) (out []netip.Prefix) {
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

func ports(list ...uint16) (out []PortRange) {
	for _, p := range list {
		out = append(out, PortRange{p, p})
	}
	return out
}

// links returns a direction of 1Gbit with these groups.
func links(groups ...Group) *Direction { return &Direction{Limit: unit.Gbit, Groups: groups} }

var rest = Group{Name: "rest", Default: true}

func TestResolveProblems(t *testing.T) {
	match := func(s Selector) *Direction { return links(Group{Name: "a", Match: []Selector{s}}, rest) }
	in := func(d *Direction, i Interface) Interface {
		i.Dev, i.Out = "eth0", d
		return i
	}
	for _, c := range []struct {
		name string
		i    Interface
		want []string // "where: beginning of the message"
	}{
		{"no device", Interface{Out: links(rest)}, []string{"dev: dev is missing"}},
		{"peer", Interface{Dev: "eth0@if5", Out: links(rest)}, []string{`dev: "eth0@if5" is not a device or pattern: "@if5" is the peer or lower device, which "ip link" appends to the name: write eth0`}},
		{"slash", Interface{Dev: "a/b", Out: links(rest)}, []string{`dev: "a/b" is not a device or pattern: a device name must not contain a slash`}},
		{"long name", Interface{Dev: strings.Repeat("a", 128), Out: links(rest)}, []string{`dev: "` + strings.Repeat("a", 128) + `" is not a device or pattern`}},
		{"long pattern", Interface{Dev: "abcdefghijklmnop*", Out: links(rest)}, nil},
		{"open pattern", Interface{Dev: "eth[0", Out: links(rest)}, []string{`dev: "eth[0" is not a device or pattern`}},
		{"perspective", in(links(rest), Interface{Perspective: "inside"}), []string{`perspective: "inside" is not a perspective`}},
		{"engine", in(links(rest), Interface{Engine: "tbf"}), []string{`engine: "tbf" is not an engine`}},
		{"overhead", in(links(rest), Interface{Overhead: Overhead{257, 1501}}), []string{"overhead.frame: 257B is more", "overhead.minimum: 1.501kB is more"}},
		{"no direction", in(nil, Interface{}), []string{"out: neither out nor in"}},
		{"spare", in(&Direction{Limit: unit.Gbit, Spare: "fair", Groups: []Group{{Name: "a", Priority: 1}, rest}}, Interface{}), []string{`out.spare: "fair" is not a spare policy`}},
		{"small limit", in(&Direction{Limit: MinRate - 1, Groups: []Group{rest}}, Interface{}), []string{"out.limit: 7.999kbit is too small: the minimum is 8kbit"}},
		{"large limit", in(&Direction{Limit: unit.MaxRate + 1, Groups: []Group{rest}}, Interface{}), []string{"out.limit: 10000000000.001kbit is too large"}},
		{"no groups", in(links(), Interface{}), []string{"out.groups: there are no groups"}},
		{"no default", in(links(Group{Name: "a"}), Interface{}), []string{"out.groups: no default group"}},
		{"two defaults", in(links(rest, Group{Name: "b", Default: true}), Interface{}), []string{`out.groups[1].default: "rest" is already the default`}},
		{"inner default", in(links(Group{Name: "a", Default: true, Groups: []Group{{Name: "b"}}}), Interface{}), []string{"out.groups[0].default: a parent group cannot be the default"}},
		{"two nested defaults", in(links(
			Group{Name: "t", Match: []Selector{{VLAN: []Range{SingleRange(5)}}}, Groups: []Group{{Name: "vm", Groups: []Group{{Name: "a", Default: true}}}, {Name: "b", Default: true}}}, rest,
		), Interface{}), []string{`out.groups[0].groups[1].default: "t/vm/a" is already the default of group "t"`}},
		{"names", in(links(Group{Name: ""}, Group{Name: "-a"}, Group{Name: "a/b"}, Group{Name: strings.Repeat("a", 64)}, Group{Name: "é"}, rest), Interface{}),
			[]string{"out.groups[0].name: \"\" is not", `out.groups[1].name: "-a" is`, `out.groups[2].name: "a/b" is`, "out.groups[3].name: ", `out.groups[4].name: "é" is`}},
		{"same name", in(links(Group{Name: "a"}, Group{Name: "a"}, Group{Name: "a"}, rest), Interface{}),
			[]string{`out.groups[1].name: "a" is already the name of out.groups[0]`, `out.groups[2].name: "a" is already the name of out.groups[0]`}},
		{"same name elsewhere", in(links(Group{Name: "a", Groups: []Group{{Name: "a"}}}, rest), Interface{}), nil},
		{"depth", in(links(Group{Name: "a", Groups: []Group{{Name: "b", Groups: []Group{{Name: "c", Groups: []Group{{Name: "d"}}}}}}}, rest), Interface{}),
			[]string{"out.groups[0].groups[0].groups[0].groups: groups are nested too deep: the maximum is 3 levels"}},
		{"shares", in(links(Group{Name: "a", Guarantee: share(60)}, Group{Name: "rest", Guarantee: share(50), Default: true}), Interface{}),
			[]string{"out.groups: guarantees total 110% of the limit: lower them to 100% or less"}},
		{"rates", in(links(Group{Name: "a", Guarantee: rate(700 * unit.Mbit)}, Group{Name: "rest", Guarantee: share(50), Default: true}), Interface{}),
			[]string{"out.groups: guarantees total 1.2Gbit of the limit, which has 1Gbit: lower them to 1Gbit or less"}},
		{"exactly all", in(links(Group{Name: "a", Guarantee: rate(500 * unit.Mbit)}, Group{Name: "rest", Guarantee: share(50), Default: true}), Interface{}), nil},
		{"inner rates", in(links(Group{Name: "a", Guarantee: share(10), Groups: []Group{{Name: "b", Guarantee: rate(101 * unit.Mbit)}}}, rest), Interface{}),
			[]string{`out.groups[0].groups: guarantees total 101Mbit of group "a", which has 100Mbit`}},
		{"ceiling above", in(links(Group{Name: "a", Ceiling: share(50), Groups: []Group{{Name: "b", Ceiling: rate(501 * unit.Mbit)}}}, rest), Interface{}),
			[]string{`out.groups[0].groups[0].ceiling: 501Mbit exceeds group "a": write 500Mbit or less`}},
		{"ceiling below guarantee", in(links(Group{Name: "a", Guarantee: share(50), Ceiling: share(40)}, rest), Interface{}),
			[]string{"out.groups[0].guarantee: 500Mbit is more than the group's ceiling of 400Mbit"}},
		{"small ceiling", in(links(Group{Name: "a", Ceiling: rate(1)}, rest), Interface{}), []string{"out.groups[0].ceiling: 1bit is too small"}},
		{"priority without spare", in(links(Group{Name: "a", Priority: 1}, rest), Interface{}), []string{"out.groups[0].priority: priority has no effect with spare: proportional"}},
		{"priority", in(&Direction{Limit: unit.Gbit, Spare: Priority, Groups: []Group{{Name: "a", Priority: 7}, {Name: "b", Priority: -1}, {Name: "c", Priority: 6}, rest}}, Interface{}),
			[]string{"out.groups[0].priority: 7 is not", "out.groups[1].priority: -1 is not"}},
		{"empty rule", in(match(Selector{}), Interface{}), []string{"out.groups[0].match[0]: the rule is empty"}},
		{"cgroup", in(match(Selector{Cgroup: "nginx"}), Interface{}), []string{`out.groups[0].match[0].cgroup: "nginx" is not a cgroup`}},
		{"cgroup up", in(match(Selector{Cgroup: "/a/../b"}), Interface{}), []string{`out.groups[0].match[0].cgroup: "/a/../b" is not a cgroup`}},
		{"cgroup slash", in(match(Selector{Cgroup: "/a/"}), Interface{}), []string{`out.groups[0].match[0].cgroup: "/a/" is not a cgroup`}},
		{"cgroup root", in(match(Selector{Cgroup: "/"}), Interface{}), []string{"out.groups[0].match[0].cgroup: every socket"}},
		{"cgroup of a guest", in(match(Selector{Cgroup: "/a"}), Interface{Perspective: Guest}), []string{"out.groups[0].match[0].cgroup: cgroup matches only packets"}},
		{"cgroup at in", Interface{Dev: "eth0", In: match(Selector{Cgroup: "/a"})}, []string{"in.groups[0].match[0].cgroup: cgroup matches only packets"}},
		{"ports of icmp", in(match(Selector{Proto: []uint8{TCP, ICMP}, DPort: ports(80)}), Interface{}), []string{"out.groups[0].match[0].proto: icmp has no ports"}},
		{"versions", in(match(Selector{Src: prefixes("10.0.0.0/8"), Dst: prefixes("fd00::/8")}), Interface{}), []string{"out.groups[0].match[0].dst: src and dst are of different IP versions"}},
		{"values", in(match(Selector{DSCP: []Range{SingleRange(64)}, VLAN: []Range{SingleRange(0), SingleRange(4095)}}), Interface{}),
			[]string{"out.groups[0].match[0].dscp: 64 is not", "out.groups[0].match[0].vlan: 0 is not", "out.groups[0].match[0].vlan: 4095 is not"}},
		{"long list", in(match(Selector{Mark: make([]Mark, MaxValues+1)}), Interface{}), []string{"out.groups[0].match[0].mark: 1025 values are too many"}},
		{"values excluded", in(match(Selector{PCP: []Range{{5, 8}}, Not: []Selector{{VLAN: []Range{{4000, 4095}}}}}), Interface{}),
			[]string{"out.groups[0].match[0].pcp: 5-8 is not an 802.1p priority", "out.groups[0].match[0].not.vlan: 4000-4095 is not a VLAN id"}},
		{"nothing excluded", in(match(Selector{Proto: []uint8{TCP}, Not: []Selector{{}}}), Interface{}), []string{"out.groups[0].match[0].not: not is empty"}},
		{"all excluded", in(match(Selector{Dst: prefixes("10.1.0.0/16"), Not: []Selector{{Dst: prefixes("10.0.0.0/8")}}}), Interface{}), []string{"out.groups[0].match[0].not: the rule can never match"}},
		{"all ports excluded", in(match(Selector{DPort: []PortRange{{80, 99}}, Not: []Selector{{DPort: []PortRange{{90, 99}, {80, 89}}}}}), Interface{}), []string{"out.groups[0].match[0].not: the rule can never match"}},
		{"cgroup excluded at in", Interface{Dev: "eth0", In: match(Selector{Proto: []uint8{TCP}, Not: []Selector{{Cgroup: "/a"}}})}, []string{"in.groups[0].match[0].not.cgroup: cgroup matches only packets"}},
		{"excluded by the parent group", in(links(Group{Name: "t", Match: []Selector{{Proto: []uint8{TCP}, Not: []Selector{{Dst: prefixes("10.0.0.0/8")}}}}, Groups: []Group{
			{Name: "a", Default: true}, {Name: "b", Match: []Selector{{Dst: prefixes("10.1.0.0/16")}}},
		}}, rest), Interface{}), []string{"out.groups[0].groups[1].match[0]: dst 10.1.0.0/16 can never match: the match of the parent group"}},
		{"unreachable", in(links(Group{Name: "t", Match: []Selector{{Src: prefixes("10.1.0.0/16")}}, Groups: []Group{
			{Name: "a", Match: []Selector{{Src: prefixes("10.2.0.0/16")}, {Src: prefixes("10.0.0.0/8")}}}}}, rest), Interface{}),
			[]string{"out.groups[0].groups[0].match[0]: src 10.2.0.0/16 can never match"}},
		{"several at once", Interface{Dev: "", Engine: "x", Out: links(Group{Name: "a", Guarantee: share(200)}), In: links(Group{Name: "?", Default: true})},
			[]string{"dev: ", "engine: ", "out.groups[0].guarantee: 2Gbit is more than the group's ceiling", "out.groups: guarantees total 200%", "out.groups: no default group", `in.groups[0].name: "?"`}},
	} {
		_, problems := c.i.Resolve()
		ok := len(problems) == len(c.want)
		for i := range min(len(problems), len(c.want)) {
			ok = ok && strings.HasPrefix(problems[i].Error(), c.want[i])
		}
		if !ok {
			t.Errorf("%s: got\n%v\nwant\n%v", c.name, problems, c.want)
		}
	}
}

func TestResolveAmounts(t *testing.T) {
	resolved, problems := Interface{Dev: "eth0", Out: links(
		Group{Name: "t", Guarantee: share(40), Ceiling: share(50), Groups: []Group{
			{Name: "a", Guarantee: share(50)},
			{Name: "b", Guarantee: rate(10 * unit.Mbit), Ceiling: share(10), Default: true},
		}},
		Group{Name: "u", Guarantee: share(60)},
	)}.Resolve()
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if resolved.Perspective != Host || resolved.Engine != HTB || resolved.OutTree.Spare != Proportional {
		t.Errorf("the defaults are %s, %s, %s", resolved.Perspective, resolved.Engine, resolved.OutTree.Spare)
	}
	want := []Node{
		{Path: "t", Parent: -1, Depth: 1, Guarantee: 400 * unit.Mbit, Ceiling: 500 * unit.Mbit},
		{Path: "t/a", Parent: 0, Depth: 2, Leaf: true, Guarantee: 200 * unit.Mbit, Ceiling: 500 * unit.Mbit},
		{Path: "t/b", Parent: 0, Depth: 2, Leaf: true, Guarantee: 10 * unit.Mbit, Ceiling: 50 * unit.Mbit},
		{Path: "u", Parent: -1, Depth: 1, Leaf: true, Guarantee: 600 * unit.Mbit, Ceiling: unit.Gbit},
	}
	if got := resolved.OutTree.Nodes; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if resolved.OutTree.Default != 2 || resolved.InTree != nil {
		t.Errorf("default %d, in %v", resolved.OutTree.Default, resolved.InTree)
	}
	if w := resolved.OutTree.Weight(Node{}); w != unit.Mbit {
		t.Errorf("a group without guarantee has weight %v, want a thousandth of the limit", w)
	}
}

// TestTooManyRules: rules that multiply beyond the limit are rejected before they exhaust
// memory.
func TestTooManyRules(t *testing.T) {
	many := make([]Selector, 1000)
	for i := range many {
		many[i] = Selector{Mark: []Mark{{uint32(i), AllBits}}}
	}
	tags := make([]Selector, 1000)
	for i := range tags {
		tags[i] = Selector{VLAN: []Range{SingleRange(uint16(i + 1))}}
	}
	tree, problems := links(
		Group{Name: "t", Match: many, Groups: []Group{{Name: "a", Match: tags}, {Name: "b", Match: tags}}}, rest,
	).Resolve("out", true)
	if len(problems) != 1 || !strings.HasPrefix(problems[0].Error(), "out.groups: too many rules") {
		t.Errorf("%v", problems)
	}
	if len(tree.Rules) > MaxRules {
		t.Errorf("%d rules", len(tree.Rules))
	}
	groups := make([]Group, MaxGroups+1)
	for i := range groups {
		groups[i] = Group{Name: fmt.Sprint(i), Default: i == 0}
	}
	if _, problems := links(groups...).Resolve("out", true); len(problems) != 1 || !strings.Contains(problems[0].Message, "16001 groups are too many") {
		t.Errorf("%v", problems)
	}
}

// TestValuesThatMultiply: lists that are too long, or that multiply to more than a classifier
// holds, are rejected before they cost minutes.
func TestValuesThatMultiply(t *testing.T) {
	marks := func(n int) Selector {
		s := Selector{Mark: make([]Mark, n)}
		for i := range s.Mark {
			s.Mark[i] = Mark{uint32(i), AllBits}
		}
		return s
	}
	// No two pairs of these ranges have the same intersection.
	var low, high, both Selector
	for i := range uint16(MaxValues) {
		low.SPort, high.SPort = append(low.SPort, PortRange{i, 60000}), append(high.SPort, PortRange{2000, 2000 + i})
	}
	both.SPort, both.DPort = high.SPort, high.SPort
	for i := range low.SPort {
		high.SPort[i] = PortRange{0, 2000 + uint16(i)}
	}
	var nets Selector
	for i := range 1000 {
		nets.Dst = append(nets.Dst, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24))
	}
	below := func(outer Selector, inner ...Selector) *Direction {
		return links(Group{Name: "t", Match: []Selector{outer}, Groups: []Group{{Name: "a", Match: inner}}}, rest)
	}
	began := time.Now()
	for name, c := range map[string]struct {
		d    *Direction
		want string
	}{
		"a long list":         {below(marks(MaxValues), marks(1_000_000)), "out.groups[0].groups[0].match[0].mark: 1000000 values are too many"},
		"long parent list":    {below(marks(1_000_000), marks(MaxValues)), "out.groups[0].match[0].mark: 1000000 values are too many"},
		"ranges that overlap": {below(low, high), "out.groups[0].groups[0].match[0]: too many combinations with the rules of the parent groups"},
		"many such rules":     {below(low, slices.Repeat([]Selector{both}, 1000)...), "out.groups[0].groups[0].match[0]: too many combinations with the rules of the parent groups"},
		"a thousand networks": {below(nets, nets, nets, nets), ""},
		"two budgets":         {&Direction{Limit: unit.Gbit, Groups: append(below(nets, slices.Repeat([]Selector{nets}, 10)...).Groups, Group{Name: "u", Match: []Selector{nets}, Groups: []Group{{Name: "a", Match: slices.Repeat([]Selector{nets}, 10)}}})}, ""},
		"a thousand marks":    {below(marks(MaxValues), marks(MaxValues)), ""},
	} {
		tree, problems := c.d.Resolve("out", true)
		got := ""
		if len(problems) > 0 {
			got = problems[0].Error()
		}
		if c.want == "" && len(problems) > 0 || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %v, want %q", name, problems, c.want)
		}
		if c.want == "" && !reflect.DeepEqual(tree.Rules[0].Selector, c.d.Groups[0].Match[0]) {
			t.Errorf("%s: the intersection with an equal selector differs from it", name)
		}
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestFind(t *testing.T) {
	resolved, problems := Interface{Dev: "eth0", Out: links(
		Group{Name: "t", Groups: []Group{{Name: "web"}, {Name: "db"}, {Name: "rest"}}}, Group{Name: "u", Groups: []Group{{Name: "web"}}}, rest,
	)}.Resolve()
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	tree := resolved.OutTree
	for name, want := range map[string]string{
		"t/web": "t/web", "db": "t/db", "rest": "rest", "t/rest": "t/rest",
		"web": `"web" is ambiguous: write "t/web" or "u/web"`, "t": `there is no group "t"`, "": `there is no group ""`, "eb": `there is no group "eb"`,
	} {
		i, err := tree.Find(name)
		got := fmt.Sprint(err)
		if err == nil {
			got = tree.Nodes[i].Path
		}
		if got != want {
			t.Errorf("Find(%q) gives %s, want %s", name, got, want)
		}
	}
}

// TestAmountsFit: in a valid tree, no group has more than its parent, and the guarantees of
// sibling groups do not exceed the guarantee of their parent.
func TestAmountsFit(t *testing.T) {
	// Mostly shares or no amount, because random rates seldom fit.
	amount := rapid.Custom(func(t *rapid.T) Amount {
		switch rapid.IntRange(0, 7).Draw(t, "kind") {
		case 0:
			return Amount{Rate: unit.Rate(rapid.Uint64Range(0, uint64(unit.Gbit)/2).Draw(t, "rate"))}
		case 1, 2, 3:
			return Amount{Share: unit.Share(rapid.Uint32Range(0, uint32(unit.Whole)/2).Draw(t, "of"))}
		}
		return Amount{}
	})
	var draw func(t *rapid.T, depth int) []Group
	draw = func(t *rapid.T, depth int) (out []Group) {
		for i := range rapid.IntRange(1, 3).Draw(t, "groups") {
			g := Group{Name: fmt.Sprint(i), Guarantee: amount.Draw(t, "guarantee"), Ceiling: amount.Draw(t, "ceiling")}
			if depth < MaxDepth && rapid.Bool().Draw(t, "inner") {
				g.Groups = draw(t, depth+1)
			}
			out = append(out, g)
		}
		return out
	}
	resolved := 0
	rapid.Check(t, func(t *rapid.T) {
		d := Direction{Limit: unit.Rate(rapid.Uint64Range(uint64(MinRate), uint64(unit.Gbit)).Draw(t, "limit")), Groups: append(draw(t, 1), rest)}
		tree, problems := d.Resolve("out", true)
		if len(problems) > 0 {
			return
		}
		resolved++
		sums := map[int]unit.Rate{}
		for i, n := range tree.Nodes {
			guarantee, ceiling := d.Limit, d.Limit
			if n.Parent >= 0 {
				if n.Parent >= i {
					t.Fatalf("%s precedes its parent", n.Path)
				}
				guarantee, ceiling = tree.Nodes[n.Parent].Guarantee, tree.Nodes[n.Parent].Ceiling
			}
			sums[n.Parent] += n.Guarantee
			if n.Guarantee > n.Ceiling || n.Ceiling > ceiling || sums[n.Parent] > guarantee {
				t.Fatalf("%s has guarantee %v and ceiling %v, its parent %v and %v", n.Path, n.Guarantee, n.Ceiling, guarantee, ceiling)
			}
		}
	})
	if resolved == 0 && !testing.Short() { // -short draws few trees
		t.Error("no tree was valid: the test checks nothing")
	}
}

// TestRuleOrigins: each rule of a tree has the key of the match, or the default, that it comes
// from.
func TestRuleOrigins(t *testing.T) {
	resolved, problems := Interface{Dev: "eth0", In: links(
		Group{Name: "t", Match: []Selector{{VLAN: []Range{SingleRange(5)}}, {VLAN: []Range{SingleRange(6)}}}, Groups: []Group{
			{Name: "rest", Default: true},
			{Name: "web", Match: []Selector{{SPort: ports(80)}, {SPort: ports(443)}}},
		}},
		rest,
	)}.Resolve()
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := []string{
		"in.groups[0].groups[1].match[0]", "in.groups[0].groups[1].match[0]", "in.groups[0].groups[1].match[1]", "in.groups[0].groups[1].match[1]",
		"in.groups[0].groups[0].default", "in.groups[0].groups[0].default",
	}
	if !slices.Equal(resolved.InRules, want) || len(want) != len(resolved.InTree.Rules) {
		t.Errorf("the rules have the origins %v, want %v", resolved.InRules, want)
	}
}

func TestTakes(t *testing.T) {
	for _, c := range []struct {
		dev, name string
		want      bool
	}{
		{"eth0", "eth0", true}, {"eth0", "eth1", false}, {"veth*", "veth7", true}, {"*", "eth0", true}, {"eth[", "eth[", false},
		{"*", "lo", false}, {"lo", "lo", true}, {"l?", "lo", false}, {"*", "hgi12", false}, {"hg*", "hgi1", false},
		{"*", "hgi", true}, {"hgi*", "hgi1a", true},
	} {
		if got := MatchesDevice(c.dev, c.name); got != c.want {
			t.Errorf("Takes(%q, %q) = %v", c.dev, c.name, got)
		}
	}
}
