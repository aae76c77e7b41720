package fabric

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"headgate.dev/headgate/unit"

	"pgregory.net/rapid"
)

// builder makes parts with switches 1, 2, ... named s1, s2, ...
type builder struct{ Parts }

func switches(n int) *builder {
	b := &builder{}
	for i := range n {
		b.Switches = append(b.Switches, Switch{ID: DPID(i + 1), Name: fmt.Sprintf("s%d", i+1)})
	}
	return b
}

// port adds the next port of a switch.
func (b *builder) port(id DPID) PortID {
	s := &b.Switches[slices.IndexFunc(b.Switches, func(s Switch) bool { return s.ID == id })]
	no := PortNo(len(s.Ports) + 1)
	s.Ports = append(s.Ports, Port{No: no, Name: fmt.Sprintf("eth%d", no), Speed: unit.Gbit})
	return PortID{id, no}
}

// oneWay adds a link at new ports.
func (b *builder) oneWay(from, to DPID, cost uint16, capacity unit.Rate) LinkID {
	id := LinkID{b.port(from), b.port(to)}
	b.Links = append(b.Links, Link{id, capacity, Configured, cost, 0, 0})
	return id
}

// cable adds a link in both directions.
func (b *builder) cable(a, c DPID, cost uint16) LinkID {
	id := b.oneWay(a, c, cost, unit.Gbit)
	b.Links = append(b.Links, Link{id.Reverse(), unit.Gbit, Configured, cost, 0, 0})
	return id
}

func (b *builder) topology(t interface{ Fatal(...any) }) *Topology {
	top, err := New(b.Parts)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// drawParts draws a small network with parallel cables, costs in each direction, one-way links and ports that are down.
func drawParts(t *rapid.T, maxSwitches, maxCables int) *builder {
	n := rapid.IntRange(2, maxSwitches).Draw(t, "switches")
	b := switches(n)
	cost := rapid.Uint16Range(1, 3)
	capacity := rapid.SampledFrom([]unit.Rate{unit.Gbit, 2 * unit.Gbit, 10 * unit.Gbit})
	for range rapid.IntRange(1, maxCables).Draw(t, "cables") {
		u := rapid.IntRange(1, n).Draw(t, "from")
		v := (u-1+rapid.IntRange(1, n-1).Draw(t, "step"))%n + 1
		id := b.oneWay(DPID(u), DPID(v), cost.Draw(t, "cost"), capacity.Draw(t, "capacity"))
		if rapid.IntRange(0, 9).Draw(t, "one-way") > 0 {
			b.Links = append(b.Links, Link{id.Reverse(), capacity.Draw(t, "capacity back"), Measured, cost.Draw(t, "cost back"), 0, 0})
		}
	}
	for i := range b.Switches {
		for j := range b.Switches[i].Ports {
			if rapid.IntRange(0, 19).Draw(t, "down") == 0 {
				b.Switches[i].Ports[j].State = Down
			}
		}
	}
	return b
}

// shuffled returns the same parts in another order.
func (b *builder) shuffled(t *rapid.T) *builder {
	p := clone(b.Parts)
	return &builder{Parts{p.Sites, rapid.Permutation(p.Switches).Draw(t, "switches"), rapid.Permutation(p.Links).Draw(t, "links"), rapid.Permutation(p.Hosts).Draw(t, "hosts")}}
}

// without removes both directions of a cable.
func (b *builder) without(id LinkID) *builder {
	p := clone(b.Parts)
	p.Links = slices.DeleteFunc(p.Links, func(l Link) bool { return l.LinkID == id || l.LinkID == id.Reverse() })
	return &builder{p}
}

// mesh is a random connected network of n switches and cables, for benchmarks.
func mesh(n, cables int) *builder {
	rnd := rand.New(rand.NewPCG(1, 2))
	b := switches(n)
	for i := 2; i <= n; i++ {
		b.cable(DPID(i), DPID(1+rnd.IntN(i-1)), uint16(1+rnd.IntN(3)))
	}
	for range cables - (n - 1) {
		u := rnd.IntN(n)
		v := (u + 1 + rnd.IntN(n-1)) % n
		b.cable(DPID(u+1), DPID(v+1), uint16(1+rnd.IntN(3)))
	}
	return b
}

// Figure 5.1 of the reservations seed: s1 and s3 are connected to s2, the bottleneck is s2 to s5, and s4 and s6 are
// connected to s5.
func seedNetwork(t testing.TB) *Topology {
	b := switches(6)
	b.cable(1, 2, 1)
	b.cable(3, 2, 1)
	b.cable(2, 5, 1)
	b.cable(5, 4, 1)
	b.cable(5, 6, 1)
	return b.topology(t)
}
