package reserved

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/unit"
)

func reservation(key string, rate unit.Rate, selectors ...group.Selector) Reservation {
	return Reservation{Key: key, Dev: "eth0", Rate: rate, Limit: rate, Class: 1, Traffic: selectors}
}

func to(prefix string) group.Selector {
	return group.Selector{Dst: []netip.Prefix{netip.MustParsePrefix(prefix)}}
}

// configured is a limit of 100 Mbit/s of which 60 are guaranteed.
func configured(t *testing.T, spare group.Spare) *group.Tree {
	t.Helper()
	tree, problems := group.Direction{Limit: 100 * unit.Mbit, Spare: spare, Groups: []group.Group{
		{Name: "tenant", Guarantee: group.Amount{Rate: 60 * unit.Mbit}, Groups: []group.Group{
			{Name: "web", Guarantee: group.Amount{Rate: 50 * unit.Mbit}, Match: []group.Selector{to("10.0.0.0/8")}},
			{Name: "other"},
		}},
		{Name: "rest", Default: true},
	}}.Resolve("out", true)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return &tree
}

func TestJoinConfigured(t *testing.T) {
	own := configured(t, group.Proportional)
	list := []Reservation{
		reservation("acme/backup/forward", 30*unit.Mbit, to("10.1.0.0/16"), to("2001:db8::/32")),
		reservation("acme/large/forward", 11*unit.Mbit, to("10.2.0.0/16")),
		reservation("-/small/forward", 10*unit.Mbit, to("10.3.0.0/16")),
	}
	joined, refused := Join(own, 0, list)
	if len(refused) != 1 || refused["acme/large/forward"] == nil || !strings.Contains(refused["acme/large/forward"].Error(), "10Mbit") {
		t.Errorf("refused are %v, want the one of 11 Mbit/s, of which 10 are free", refused)
	}
	if len(joined.Nodes) != len(own.Nodes)+2 || len(joined.Rules) != len(own.Rules)+3 || joined.Default != own.Default {
		t.Fatalf("the tree is %+v", joined)
	}
	n := joined.Nodes[len(own.Nodes)]
	if n.Path != "reservation:acme:backup:forward" || n.Guarantee != 30*unit.Mbit || n.Ceiling != 100*unit.Mbit || !n.Adjustable || n.Parent != -1 || !n.Leaf {
		t.Errorf("the group is %+v", n)
	}
	if len(own.Rules) != 1 || len(own.Nodes) != 4 {
		t.Error("the configured tree has changed")
	}
	// The rules of reservations precede those of the tenant, in both versions of IP.
	for dst, path := range map[string]string{"10.1.2.3": "reservation:acme:backup:forward", "2001:db8::1": "reservation:acme:backup:forward", "10.3.0.1": "reservation:-:small:forward", "10.2.0.1": "tenant/web", "192.0.2.1": "rest"} {
		if got := groupOf(joined, group.Packet{Proto: group.TCP, Dst: netip.MustParseAddr(dst)}); got != path {
			t.Errorf("a packet to %s is in %s, want %s", dst, got, path)
		}
	}
}

func groupOf(t *group.Tree, p group.Packet) string {
	for _, r := range t.Rules {
		if r.Selector.Matches(p) {
			return t.Nodes[r.Node].Path
		}
	}
	return t.Nodes[t.Default].Path
}

func TestJoinWithoutConfiguration(t *testing.T) {
	list := []Reservation{reservation("a", 40*unit.Mbit, to("10.1.0.0/16")), reservation("b", 70*unit.Mbit, to("10.2.0.0/16"))}
	joined, refused := Join(nil, 0, list)
	if joined != nil || len(refused) != 2 || !strings.Contains(refused["a"].Error(), "capacity") {
		t.Errorf("without a capacity the tree is %+v, refused are %v", joined, refused)
	}
	joined, refused = Join(nil, 100*unit.Mbit, list)
	if len(refused) != 1 || refused["b"] == nil {
		t.Errorf("refused are %v, want b", refused)
	}
	if joined.Limit != 100*unit.Mbit || len(joined.Nodes) != 2 || joined.Nodes[joined.Default].Path != RestPath || joined.Nodes[joined.Default].Ceiling != 100*unit.Mbit {
		t.Errorf("the tree is %+v", joined)
	}
	if joined, refused = Join(nil, 100*unit.Mbit, list[1:][:0]); joined != nil || len(refused) > 0 {
		t.Errorf("without reservations the tree is %+v", joined)
	}
}

// The line is slower than the configured limit.
func TestJoinSlowLine(t *testing.T) {
	own := configured(t, group.Proportional)
	if joined, refused := Join(own, 80*unit.Mbit, []Reservation{reservation("a", 21*unit.Mbit, to("10.1.0.0/16"))}); joined != own || refused["a"] == nil {
		t.Errorf("21 Mbit/s fit in 80 - 60 Mbit/s: %+v, %v", joined, refused)
	}
}

func TestJoinPriority(t *testing.T) {
	r := reservation("a", 10*unit.Mbit, to("10.1.0.0/16"))
	r.Class = 3
	joined, _ := Join(configured(t, group.Priority), 0, []Reservation{r})
	if n := joined.Nodes[len(joined.Nodes)-1]; n.Priority != 2 {
		t.Errorf("the priority of class 3 is %d, want 2", n.Priority)
	}
}

func TestJoinRefuses(t *testing.T) {
	own := configured(t, group.Proportional)
	icmp := group.Selector{Proto: []uint8{group.ICMP}, DPort: []group.PortRange{group.SingleRange(80)}}
	unparsed := reservation("a", unit.Mbit, to("10.1.0.0/16"))
	unparsed.Invalid = errors.New("10.1.0.0/99 is not a prefix")
	for what, list := range map[string][]Reservation{
		"not a key":       {reservation("a b", unit.Mbit, to("10.1.0.0/16"))},
		"another":         {reservation("x/y", unit.Mbit, to("10.1.0.0/16")), reservation("x:y", unit.Mbit, to("10.2.0.0/16"))},
		"too small":       {reservation("a", 1*unit.Kbit, to("10.1.0.0/16"))},
		"all packets":     {reservation("a", unit.Mbit)},
		"has no ports":    {reservation("a", unit.Mbit, icmp)},
		"not a prefix":    {unparsed},
		"are reserved":    {reservation("a", 41*unit.Mbit, to("10.1.0.0/16"))},
		"more than 16384": {reservation("a", unit.Mbit, slicesOf(to("10.1.0.0/16"), group.MaxRules)...)},
	} {
		joined, refused := Join(own, 0, list)
		last := list[len(list)-1].Key
		if err := refused[last]; err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("refused are %v, want %q", refused, what)
		}
		if len(list) == 1 && joined != own {
			t.Errorf("%s: the tree is not the configured one", what)
		}
	}
}

func slicesOf(s group.Selector, n int) (out []group.Selector) {
	for range n {
		out = append(out, s)
	}
	return out
}
