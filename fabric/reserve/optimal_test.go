package reserve

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"
)

var zero = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// between is a request between the first ports of two switches.
func between(name string, i, j int, rate unit.Rate, start time.Time, d time.Duration) Request {
	return Request{
		ID: ID{Name: name}, Class: 1, Forward: rate, Start: start, Duration: d,
		Source: Endpoint{Name: fmt.Sprintf("h%d", i), At: port(i)}, Destination: Endpoint{Name: fmt.Sprintf("h%d", j), At: port(j)},
	}
}

// The bandwidth that Book accepts is at least 97 % of that of oracles that try every simple path for each request, in each of
// 50 random networks that are offered about twice what they carry. The oracles take the path with the least utilised
// bottleneck, with the fewest links, or with the least total of 1 + u^4.
func TestOptimal(t *testing.T) {
	oracles := map[string]func(hops, most, sum int64) int64{
		"least utilised": func(hops, most, _ int64) int64 { return most*1000 + hops },
		"fewest links":   func(hops, most, _ int64) int64 { return hops*whole*1000 + most },
		"least total":    func(_, _, sum int64) int64 { return sum },
	}
	totals := map[string]float64{}
	worst := 2.0
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		n := 6 + rnd.IntN(5)
		top := network(rnd, n, n+n/2+rnd.IntN(4), unit.Gbit, unit.Gbit, 2*unit.Gbit)
		var requests []Request
		for i := range 300 {
			from := rnd.IntN(n)
			rate := unit.Mbit * unit.Rate(20+rnd.IntN(280))
			start := zero.Add(time.Duration(rnd.IntN(100)) * time.Minute)
			requests = append(requests, between(fmt.Sprint(i), 1+from, 1+(from+1+rnd.IntN(n-1))%n, rate, start, time.Duration(5+rnd.IntN(40))*time.Minute))
		}
		book, err := NewBook(top, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		ours := 0.0
		for _, r := range requests {
			if _, err := book.Admit(r, zero); err == nil {
				ours += float64(r.Forward) * r.Duration.Hours()
			}
		}
		totals["ours"] += ours
		best := 0.0
		for name, key := range oracles {
			accepted := exhaustive(top, requests, key)
			totals[name] += accepted
			best = max(best, accepted)
		}
		worst = min(worst, ours/best)
	}
	for name := range oracles {
		t.Logf("%.2f %% of the oracle that takes the %s", 100*totals["ours"]/totals[name], name)
	}
	// No one oracle is the best of all three in every network, so that this is less.
	t.Logf("%.2f %% of the best of them in the worst network", 100*worst)
	if worst < 0.97 {
		t.Errorf("accepted %.2f %% of the best oracle in one network, want 97 %%", 100*worst)
	}
}

// exhaustive returns the bandwidth times hours that an oracle accepts, which tries every simple path and takes the one
// with the least key.
func exhaustive(top *fabric.Topology, requests []Request, key func(hops, most, sum int64) int64) (accepted float64) {
	l := newLedger(top, Limits{})
	paths := map[[2]fabric.DPID][]fabric.Path{}
	for _, r := range requests {
		from, to := moment(r.Start), moment(r.Start.Add(r.Duration))
		ends := [2]fabric.DPID{r.Source.At.Switch, r.Destination.At.Switch}
		if paths[ends] == nil {
			paths[ends] = simple(top, ends[0], ends[1])
		}
		used := map[fabric.LinkID]int64{}
		for i := range l.back {
			used[l.ids[i]] = l.lines[i].utilised(int64(r.Forward), from, to)
		}
		var best fabric.Path
		least := int64(never)
		for _, p := range paths[ends] {
			most, sum := int64(0), int64(0)
			for _, id := range p {
				if most = max(most, used[id]); most == never {
					break
				}
				square := used[id] * used[id] / whole
				sum += whole + square*square/whole
			}
			if most == never {
				continue
			}
			if k := key(int64(len(p)), most, sum); k < least {
				best, least = p, k
			}
		}
		if best == nil {
			continue
		}
		accepted += float64(r.Forward) * r.Duration.Hours()
		for _, id := range best {
			n := &l.lines[l.index[id]]
			n.calendar = n.add(from, to, int64(r.Forward))
		}
	}
	return accepted
}
