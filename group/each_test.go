package group

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"headgate.dev/headgate/unit"
)

func TestParseEach(t *testing.T) {
	for text, want := range map[string]Each{
		"src/32": {IPv4: 32, IPv6: 64}, "dst/24": {Dst: true, IPv4: 24, IPv6: 64}, "src/56": {IPv4: 32, IPv6: 56},
		"dst/128": {Dst: true, IPv4: 32, IPv6: 128}, "src/24,src/24": {IPv4: 24, IPv6: 24}, "dst/32, dst/48": {Dst: true, IPv4: 32, IPv6: 48},
	} {
		got, err := ParseEach(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		if again, err := ParseEach(got.String()); err != nil || again != got {
			t.Errorf("%s prints as %v, which is %+v, %v", text, got, again, err)
		}
		b, err := json.Marshal(Group{Name: "a", Each: got})
		var back Group
		if err == nil {
			err = json.Unmarshal(b, &back)
		}
		if err != nil || back.Each != got {
			t.Errorf("%s: %+v, %v", b, back, err)
		}
	}
	for _, text := range []string{"", "src", "src/", "src/0", "any/32", "src/129", "src/-1", "src/32,dst/64", "src/33,src/64", "src/32,src/64,src/64", "32"} {
		if got, err := ParseEach(text); err == nil || !strings.Contains(err.Error(), "src") {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	if b, _ := json.Marshal(Group{Name: "a"}); strings.Contains(string(b), "each") {
		t.Errorf("%s", b)
	}
}

func TestClientOfPacket(t *testing.T) {
	e := Each{Dst: true, IPv4: 24, IPv6: 56}
	for text, want := range map[string]string{
		"udp 192.0.2.1:1 10.1.2.3:2": "10.1.2.0/24", "udp [fd00::1]:1 [fd00:1:2:3ff::4]:2": "fd00:1:2:300::/56", "arp": "invalid Prefix",
	} {
		p, err := ParsePacket(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Client(p).String(); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	e.Dst = false
	p, _ := ParsePacket("udp 192.0.2.1:1 10.1.2.3:2")
	if got := e.Client(p); got != netip.MustParsePrefix("192.0.2.0/24") {
		t.Errorf("%v", got)
	}
}

// TestEachGuarantee checks the guarantee of all clients together, beside sibling groups.
func TestEachGuarantee(t *testing.T) {
	each := func(name string, guarantee, ceiling Amount, clients int) Group {
		return Group{Name: name, Guarantee: guarantee, Ceiling: ceiling, Each: Each{IPv4: 32, IPv6: 64}, Clients: clients}
	}
	for _, c := range []struct {
		what   string
		groups []Group
		want   []unit.Rate // guarantees of nodes
		atOnce int         // of the first
		all    bool
	}{
		{"all fit", []Group{each("a", rate(unit.Mbit), Amount{}, 100), rest}, []unit.Rate{100 * unit.Mbit, 0}, 100, true},
		{"2,048 by default", []Group{each("a", rate(100*unit.Kbit), Amount{}, 0), rest}, []unit.Rate{2048 * 100 * unit.Kbit, 0}, 2048, true},
		{"limited by siblings", []Group{each("a", rate(unit.Mbit), Amount{}, 2000), {Name: "b", Guarantee: share(40)}, rest}, []unit.Rate{600 * unit.Mbit, 400 * unit.Mbit, 0}, 600, false},
		{"two groups with each", []Group{each("a", rate(unit.Mbit), Amount{}, 3000), each("b", rate(unit.Mbit), Amount{}, 1000), rest}, []unit.Rate{750 * unit.Mbit, 250 * unit.Mbit, 0}, 750, false},
		{"shares", []Group{each("a", share(1), Amount{}, 50), rest}, []unit.Rate{500 * unit.Mbit, 0}, 50, true},
		{"no guarantee", []Group{each("a", Amount{}, rate(unit.Mbit), 50), rest}, []unit.Rate{0, 0}, 50, true},
	} {
		tree, problems := links(c.groups...).Resolve("out", true)
		if len(problems) > 0 {
			t.Errorf("%s: %v", c.what, problems)
			continue
		}
		for i, want := range c.want {
			if got := tree.Nodes[i].Guarantee; got != want {
				t.Errorf("%s: node %d has a guarantee of %v, want %v", c.what, i, got, want)
			}
		}
		n := tree.Nodes[0]
		if most, all := n.GuaranteedClients(); most != c.atOnce || all != c.all {
			t.Errorf("%s: the guarantees of %d clients can be met at the same time (all: %v), want %d", c.what, most, all, c.atOnce)
		}
		if want := c.groups[0].Ceiling.Rate; n.Ceiling != unit.Gbit || want > 0 && n.Clients.Ceiling != want {
			t.Errorf("%s: ceilings of %v and %v", c.what, n.Ceiling, n.Clients.Ceiling)
		}
	}
}

// TestEachFits: the guarantees of one level never total more than the parent's guarantee.
func TestEachFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var groups []Group
		for i := range rapid.IntRange(1, 5).Draw(t, "groups") {
			g := Group{Name: string(rune('a' + i)), Guarantee: rate(unit.Rate(rapid.Uint64Range(0, uint64(200*unit.Mbit)).Draw(t, "guarantee")))}
			if rapid.Bool().Draw(t, "each") {
				g.Each, g.Clients = Each{IPv4: 32, IPv6: 64}, rapid.IntRange(0, 3000).Draw(t, "clients")
			}
			groups = append(groups, g)
		}
		groups[0].Default = true
		tree, problems := links(groups...).Resolve("out", true)
		if len(problems) > 0 {
			t.Skip()
		}
		var sum unit.Rate
		for i, n := range tree.Nodes {
			sum += n.Guarantee
			if wants := unit.Rate(n.Clients.Most) * groups[i].Guarantee.Rate; !n.Clients.IsZero() && n.Guarantee > wants {
				t.Fatalf("%v have a guarantee of %v, more than the sum %v of the clients", n.Clients, n.Guarantee, wants)
			}
		}
		if sum > unit.Gbit {
			t.Fatalf("guarantees total %v of 1Gbit", sum)
		}
	})
}
