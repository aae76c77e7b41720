package reservations

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/unit"
)

func optimalCases(d *bench.Draw) []bench.Case {
	return []bench.Case{{
		Name: "optimal", Run: func(ctx context.Context, r *bench.Run) error { return optimal(ctx, r, d.Seed()) }, Takes: bench.Takes(2*time.Second, 2*time.Minute),
		Drawn: fmt.Sprintf("networks and requests of seed %d", d.Seed()),
		Claims: []bench.Claim{
			bench.NewClaim("optimal/online", "bandwidth times duration that is accepted, of what the best of three oracles accepts, which try every simple path for each request: the least in 50 networks", ofOracle),
			bench.NewClaim("optimal/offline", "the same, of the offline optimum of small cases, in which all requests are known beforehand: mean of 50", shown),
		},
	}}
}

// asked is a request for a rate from one switch to another.
type asked struct {
	from, to   fabric.DPID
	rate       unit.Rate
	start, end int // minutes
}

func (a asked) worth() float64 { return float64(a.rate) * float64(a.end-a.start) }

// drawn is a random network, connected, whose links have 1 or 2 Gbit/s. Port 1 of each switch is for hosts.
func drawn(rnd *rand.Rand, switches, cables int) (*fabric.Topology, error) {
	var p fabric.Parts
	for i := range switches {
		p.Switches = append(p.Switches, fabric.Switch{ID: fabric.DPID(i + 1), Ports: []fabric.Port{{No: 1, Speed: 100 * unit.Gbit}}})
	}
	next := func(i int) fabric.PortID {
		s := &p.Switches[i]
		s.Ports = append(s.Ports, fabric.Port{No: fabric.PortNo(len(s.Ports) + 1)})
		return fabric.PortID{Switch: s.ID, Port: fabric.PortNo(len(s.Ports))}
	}
	for c := range cables {
		i, j := c+1, 0
		if i < switches {
			j = rnd.IntN(i)
		} else {
			i = rnd.IntN(switches)
			j = (i + 1 + rnd.IntN(switches-1)) % switches
		}
		id := fabric.LinkID{From: next(i), To: next(j)}
		capacity := unit.Gbit * unit.Rate(1+rnd.IntN(2))
		p.Links = append(p.Links, fabric.Link{LinkID: id, Capacity: capacity, Cost: fabric.DefaultCost}, fabric.Link{LinkID: id.Reverse(), Capacity: capacity, Cost: fabric.DefaultCost})
	}
	return fabric.New(p)
}

func requests(rnd *rand.Rand, switches, count, rates int) (all []asked) {
	for range count {
		from := rnd.IntN(switches)
		start := rnd.IntN(100)
		all = append(all, asked{
			fabric.DPID(1 + from), fabric.DPID(1 + (from+1+rnd.IntN(switches-1))%switches),
			unit.Mbit * unit.Rate(20+rnd.IntN(rates)), start, start + 5 + rnd.IntN(40),
		})
	}
	return all
}

// admitted returns what the product's book accepts of requests in their order.
func admitted(top *fabric.Topology, all []asked) (float64, error) {
	book, err := reserve.NewBook(top, reserve.Limits{})
	if err != nil {
		return 0, err
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	sum := 0.0
	end := func(at fabric.DPID) reserve.Endpoint {
		return reserve.Endpoint{Name: fmt.Sprint("h", at), At: fabric.PortID{Switch: at, Port: 1}}
	}
	for i, a := range all {
		_, err := book.Admit(reserve.Request{
			ID: reserve.ID{Name: fmt.Sprint(i)}, Class: 1, Forward: a.rate, Start: now.Add(time.Duration(a.start) * time.Minute), Duration: time.Duration(a.end-a.start) * time.Minute,
			Source: end(a.from), Destination: end(a.to),
		}, now)
		if err == nil {
			sum += a.worth()
		}
	}
	return sum, nil
}

// oracle knows what is used of each link in each minute, and all simple paths.
type oracle struct {
	top   *fabric.Topology
	used  map[fabric.LinkID]*[200]unit.Rate
	limit map[fabric.LinkID]unit.Rate
	paths map[[2]fabric.DPID][]fabric.Path
}

func newOracle(top *fabric.Topology) *oracle {
	o := &oracle{top, map[fabric.LinkID]*[200]unit.Rate{}, map[fabric.LinkID]unit.Rate{}, map[[2]fabric.DPID][]fabric.Path{}}
	for _, l := range top.Links() {
		o.used[l.LinkID], o.limit[l.LinkID] = new([200]unit.Rate), l.Capacity
	}
	return o
}

// simple returns all paths without a repeated switch.
func (o *oracle) simple(from, to fabric.DPID) []fabric.Path {
	key := [2]fabric.DPID{from, to}
	if all, ok := o.paths[key]; ok {
		return all
	}
	var all []fabric.Path
	seen := map[fabric.DPID]bool{from: true}
	var walk func(at fabric.DPID, path fabric.Path)
	walk = func(at fabric.DPID, path fabric.Path) {
		if at == to {
			all = append(all, slices.Clone(path))
			return
		}
		for _, l := range o.top.Links() {
			if l.From.Switch == at && !seen[l.To.Switch] {
				seen[l.To.Switch] = true
				walk(l.To.Switch, append(path, l.LinkID))
				delete(seen, l.To.Switch)
			}
		}
	}
	walk(from, nil)
	o.paths[key] = all
	return all
}

// fits returns the utilisation of a link with a request, at most 1 if it fits at every moment.
func (o *oracle) with(l fabric.LinkID, a asked) (most float64) {
	for _, used := range o.used[l][a.start:a.end] {
		most = max(most, float64(used+a.rate)/float64(o.limit[l]))
	}
	return most
}

// take adds a rate to the links of a path; sign -1 takes it away.
func (o *oracle) take(p fabric.Path, a asked, add bool) {
	for _, l := range p {
		used := o.used[l]
		for m := a.start; m < a.end; m++ {
			if add {
				used[m] += a.rate
			} else {
				used[m] -= a.rate
			}
		}
	}
}

// orders are what the oracles prefer: the least utilised bottleneck, the fewest links, or the least sum of 1 + u^4.
var orders = []func(hops int, most, sum float64) float64{
	func(hops int, most, _ float64) float64 { return most*1e3 + float64(hops) },
	func(hops int, most, _ float64) float64 { return float64(hops)*1e3 + most },
	func(_ int, _, sum float64) float64 { return sum },
}

// online returns what an oracle accepts in the order of the requests.
func online(top *fabric.Topology, all []asked, order func(hops int, most, sum float64) float64) (sum float64) {
	o := newOracle(top)
	for _, a := range all {
		var best fabric.Path
		least := math.Inf(1)
		for _, p := range o.simple(a.from, a.to) {
			most, total := 0.0, 0.0
			for _, l := range p {
				u := o.with(l, a)
				most, total = max(most, u), total+1+u*u*u*u
			}
			if k := order(len(p), most, total); most <= 1 && k < least {
				best, least = p, k
			}
		}
		if best != nil {
			o.take(best, a, true)
			sum += a.worth()
		}
	}
	return sum
}

// offline returns the most that any choice of requests and simple paths has.
func offline(top *fabric.Topology, all []asked) (best float64) {
	o := newOracle(top)
	rest := make([]float64, len(all)+1)
	for i := len(all) - 1; i >= 0; i-- {
		rest[i] = rest[i+1] + all[i].worth()
	}
	var try func(i int, sum float64)
	try = func(i int, sum float64) {
		best = max(best, sum)
		if i == len(all) || sum+rest[i] <= best {
			return
		}
		for _, p := range o.simple(all[i].from, all[i].to) {
			if !slices.ContainsFunc(p, func(l fabric.LinkID) bool { return o.with(l, all[i]) > 1 }) {
				o.take(p, all[i], true)
				try(i+1, sum+all[i].worth())
				o.take(p, all[i], false)
			}
		}
		try(i+1, sum)
	}
	try(0, 0)
	return best
}

func optimal(ctx context.Context, r *bench.Run, seed uint64) error {
	networks := bench.Pick(r.Quick, 5, 50)
	least, sums, of := 2.0, [3]float64{}, 0.0
	for n := range networks {
		rnd := rand.New(rand.NewPCG(seed, uint64(n)))
		switches := 6 + rnd.IntN(5)
		top, err := drawn(rnd, switches, switches+switches/2+rnd.IntN(4))
		if err != nil {
			return err
		}
		all := requests(rnd, switches, 300, 280)
		ours, err := admitted(top, all)
		if err != nil {
			return err
		}
		best := 0.0
		for k, order := range orders {
			o := online(top, all, order)
			sums[k], best = sums[k]+o, max(best, o)
		}
		of += ours
		least = min(least, ours/best)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	sheet := r.Sheet(bench.Ours)
	sheet.Set("optimal/online", 100*least)
	sheet.Note("optimal/online", "%d networks of 6 to 10 switches, 300 requests each, about twice what they carry; in all %.1f %% of the oracle that takes the least utilised path, %.1f %% of that with the fewest links, %.1f %% of that with the least sum", networks, 100*of/sums[0], 100*of/sums[1], 100*of/sums[2])
	sum, whole := 0.0, 1.0
	for n := range networks {
		rnd := rand.New(rand.NewPCG(seed, 1000+uint64(n)))
		const switches = 5
		top, err := drawn(rnd, switches, 6)
		if err != nil {
			return err
		}
		all := requests(rnd, switches, 12, 900)
		ours, err := admitted(top, all)
		if err != nil {
			return err
		}
		part := ours / offline(top, all)
		sum, whole = sum+part, min(whole, part)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	sheet.Set("optimal/offline", 100*sum/float64(networks))
	sheet.Note("optimal/offline", "%d cases of 5 switches and 12 requests; the least is %.1f %%", networks, 100*whole)
	return nil
}
