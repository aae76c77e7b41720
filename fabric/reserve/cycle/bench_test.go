package cycle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

// fat is a fat tree of 1,000 switches: 40 pods of 12 edge and 12 aggregation switches, and 40 core switches. An edge switch
// has links to all aggregation switches of its pod, an aggregation switch to 3 or 4 core switches: 15,000 directed links. 10,000
// reservations between edge switches, of 1 to 50 Mbit/s forward and a tenth of it in reverse, take random paths, 9 of 10
// across the core. Links have 10 Gbit/s, a tenth of them 1 Gbit/s. Best effort is limited by link.
func fat(t testing.TB) (Network, *rand.Rand) {
	const pods, width, core, reservations = 40, 12, 40, 10_000
	rnd := rand.New(rand.NewPCG(29, 1))
	var p fabric.Parts
	add := func() int {
		p.Switches = append(p.Switches, fabric.Switch{ID: fabric.DPID(len(p.Switches) + 1), Ports: []fabric.Port{{No: 1, Speed: 100 * unit.Gbit}}})
		return len(p.Switches) - 1
	}
	links := map[[2]int]fabric.LinkID{}
	cable := func(a, b int) {
		end := func(i int) fabric.PortID {
			s := &p.Switches[i]
			s.Ports = append(s.Ports, fabric.Port{No: fabric.PortNo(len(s.Ports) + 1)})
			return fabric.PortID{Switch: s.ID, Port: fabric.PortNo(len(s.Ports))}
		}
		id := fabric.LinkID{From: end(a), To: end(b)}
		capacity := 10 * unit.Gbit
		if rnd.IntN(10) == 0 {
			capacity = unit.Gbit
		}
		links[[2]int{a, b}], links[[2]int{b, a}] = id, id.Reverse()
		p.Links = append(p.Links, fabric.Link{LinkID: id, Capacity: capacity, Cost: 1}, fabric.Link{LinkID: id.Reverse(), Capacity: capacity, Cost: 1})
	}
	cores := make([]int, core)
	for i := range cores {
		cores[i] = add()
	}
	var edges, aggregates [pods][width]int
	up := map[int][]int{} // the core switches of an aggregation switch
	for pod := range pods {
		for i := range width {
			edges[pod][i], aggregates[pod][i] = add(), add()
		}
		for i := range core {
			a := aggregates[pod][i%width]
			cable(a, cores[i])
			up[a] = append(up[a], cores[i])
		}
		for _, e := range edges[pod] {
			for _, a := range aggregates[pod] {
				cable(e, a)
			}
		}
	}
	top, err := fabric.New(p)
	if err != nil {
		t.Fatal(err)
	}
	n := Network{Topology: top, Enforcers: metered(top)}
	n.Enforcers.Leaving = n.Enforcers.Meters
	for i := range reservations {
		from, to, k := rnd.IntN(pods), rnd.IntN(pods), rnd.IntN(width)
		hops := []int{edges[from][rnd.IntN(width)], aggregates[from][k], aggregates[to][k], edges[to][rnd.IntN(width)]}
		if from == to {
			hops = []int{hops[0], hops[1], hops[3]}
			if hops[0] == hops[2] {
				hops = hops[:1]
			}
		} else {
			c := up[hops[1]]
			hops = []int{hops[0], hops[1], c[rnd.IntN(len(c))], hops[2], hops[3]}
		}
		var path fabric.Path
		for h := 1; h < len(hops); h++ {
			path = append(path, links[[2]int{hops[h-1], hops[h]}])
		}
		rate := unit.Rate(1+rnd.IntN(50)) * unit.Mbit
		r := request(fmt.Sprint("r", i), 1+rnd.IntN(4), fabric.PortID{Switch: p.Switches[hops[0]].ID, Port: 1}, fabric.PortID{Switch: p.Switches[hops[len(hops)-1]].ID, Port: 1}, rate, rate/10)
		n.Reservations = append(n.Reservations, reserve.Reservation{
			Request: r, Paths: []reserve.Path{{Links: path, Forward: rate, Reverse: rate / 10}}, Forward: rate, Reverse: rate / 10,
			Start: noon, End: noon.Add(24 * time.Hour), Since: noon,
		})
	}
	n.BestEffort = BestEffort(n, top.NextHops())
	return n, rnd
}

// BenchmarkCycle is the requirement's cycle: 1,000 switches, 10,000 reservations of which a tenth of the flows changes per
// cycle and all have 2 % of noise, in at most 100 ms. Best effort offers up to twice what a link carries.
func BenchmarkCycle(b *testing.B) {
	n, rnd := fat(b)
	c := New(share.NewAdaptive(share.DefaultQuantum))
	t := Time{Wall: noon}
	started := time.Now()
	c.Set(n, t)
	set := time.Since(started)
	mean := map[FlowID]float64{}
	readings := make([]Reading, 0, 64_000)
	for _, s := range c.Flows() {
		mean[s.Flow] = draw(rnd, s)
		readings = append(readings, Reading{Flow: s.Flow, Index: len(readings)})
	}
	flows := c.Flows()
	messages, cycles := 0, 0
	for b.Loop() {
		b.StopTimer()
		t.Elapsed, t.Wall = t.Elapsed+time.Second, t.Wall.Add(time.Second)
		for i := range readings {
			r := &readings[i]
			if rnd.IntN(10) == 0 {
				mean[r.Flow] = draw(rnd, flows[i])
			}
			sent := mean[r.Flow] * math.Exp(0.02*rnd.NormFloat64()) / 8
			r.At = t.Elapsed
			r.Offered += uint64(sent)
			r.Delivered += uint64(sent)
		}
		b.StartTimer()
		messages += len(c.Step(t, readings).Limits)
		cycles++
	}
	b.ReportMetric(float64(messages)/float64(cycles), "messages/op")
	b.ReportMetric(float64(len(readings)), "flows")
	b.ReportMetric(float64(set.Milliseconds()), "ms/set")
}

// draw returns what a flow offers, in bit/s: up to eight times its reservation.
func draw(rnd *rand.Rand, s Status) float64 {
	if s.Class == share.BestEffort {
		return float64(rnd.IntN(20)) * 1e9
	}
	return rnd.Float64() * 8 * float64(s.Reserved)
}
