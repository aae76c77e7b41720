package program

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"
)

// manyCircuits are those of 10,000 reservations of one direction in a network of 1,000 switches, 3,000 cables and 10,000 hosts.
func manyCircuits(b *testing.B) (*fabric.Topology, []Circuit) {
	const switches, cables, hosts = 1000, 3000, 10
	r := rand.New(rand.NewPCG(1, 1))
	var parts fabric.Parts
	for s := range switches {
		id := fabric.DPID(s + 1)
		one := fabric.Switch{ID: id, Capabilities: whole.Capabilities}
		for p := range fabric.PortNo(hosts) {
			one.Ports = append(one.Ports, fabric.Port{No: p + 1})
			mac := fabric.MAC{2, 0, byte(id >> 8), byte(id), 0, byte(p + 1)}
			parts.Hosts = append(parts.Hosts, fabric.Host{HostID: fabric.HostID{MAC: mac}, At: fabric.PortID{Switch: id, Port: p + 1}, Addrs: []netip.Addr{netip.AddrFrom4([4]byte{10, byte(id >> 8), byte(id), byte(p + 1)})}})
		}
		parts.Switches = append(parts.Switches, one)
	}
	for n := range cables {
		ends := [2]int{r.IntN(switches), r.IntN(switches)}
		if n+1 < switches {
			ends = [2]int{r.IntN(n + 1), n + 1}
		}
		if ends[0] == ends[1] {
			continue
		}
		var at [2]fabric.PortID
		for i, s := range ends {
			one := &parts.Switches[s]
			at[i] = fabric.PortID{Switch: one.ID, Port: fabric.PortNo(len(one.Ports) + 1)}
			one.Ports = append(one.Ports, fabric.Port{No: at[i].Port})
		}
		for i := range at {
			parts.Links = append(parts.Links, fabric.Link{LinkID: fabric.LinkID{From: at[i], To: at[1-i]}, Capacity: unit.Gbit, Cost: 1})
		}
	}
	t, err := fabric.New(parts)
	if err != nil {
		b.Fatal(err)
	}
	all := make([]Circuit, 0, 10_000)
	for len(all) < cap(all) {
		from, to := parts.Hosts[r.IntN(len(parts.Hosts))], parts.Hosts[r.IntN(len(parts.Hosts))]
		path, ok := t.Shortest(from.At.Switch, to.At.Switch, fabric.Hops, nil)
		if from.At.Switch == to.At.Switch || !ok {
			continue
		}
		port := uint16(len(all))
		all = append(all, Circuit{
			Number: uint32(len(all) + 1), From: from.At, To: to.At, Paths: []fabric.Path{path}, Rate: unit.Mbit, Class: 1,
			Source: netip.PrefixFrom(from.Addrs[0], 32), Destination: netip.PrefixFrom(to.Addrs[0], 32), Flows: []Traffic{{Protocol: protocolUDP, Source: Ports{port, port}}},
		})
	}
	return t, all
}

// BenchmarkPlanCircuits is what each plan takes for 10,000 circuits, and what one more takes.
func BenchmarkPlanCircuits(b *testing.B) {
	t, all := manyCircuits(b)
	one := all[0]
	one.Number, one.Flows = 10_001, []Traffic{{Protocol: protocolUDP, Destination: Ports{5, 5}}}
	before := PlanCircuits(t, all, nil, nil)
	hops, most := 0, 0
	for _, h := range before.hops {
		hops += len(h)
		most = max(most, len(h))
	}
	for _, s := range before.States() {
		if s.BestEffort || len(s.Lacks) > 0 {
			b.Fatalf("%+v", s)
		}
	}
	b.ReportMetric(float64(hops), "flows")
	b.ReportMetric(float64(most), "most-in-a-switch")
	b.Run("plan", func(b *testing.B) {
		for b.Loop() {
			PlanCircuits(t, all, nil, before)
		}
	})
	after := PlanCircuits(t, append(all[:len(all):len(all)], one), nil, before)
	b.Run("concerned", func(b *testing.B) {
		for b.Loop() {
			if got := after.Concerned(before); len(got) == 0 || len(got) > 20 {
				b.Fatalf("%d switches are concerned", len(got))
			}
		}
	})
}
