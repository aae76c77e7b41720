package fabric

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"headgate.dev/headgate/unit"

	"pgregory.net/rapid"
)

// query is a random search in a random network.
type query struct {
	parts    *builder
	t        *Topology
	from, to DPID
	metric   Metric
	refused  map[LinkID]bool
	loads    map[LinkID]float64
}

func drawQuery(t *rapid.T, maxSwitches, maxCables int) query {
	parts := drawParts(t, maxSwitches, maxCables)
	n := len(parts.Switches)
	q := query{
		parts: parts, t: parts.topology(t),
		from: DPID(rapid.IntRange(1, n).Draw(t, "source")), to: DPID(rapid.IntRange(1, n).Draw(t, "destination")),
		metric:  rapid.SampledFrom([]Metric{Hops, Cost}).Draw(t, "metric"),
		refused: map[LinkID]bool{}, loads: map[LinkID]float64{},
	}
	for _, l := range q.t.Links() {
		q.refused[l.LinkID] = rapid.IntRange(0, 9).Draw(t, "refused") == 0
		q.loads[l.LinkID] = rapid.SampledFrom([]float64{-0.1, 0, 0.1, 0.5, 1, math.NaN()}).Draw(t, "load")
	}
	return q
}

func (q query) fits(l LinkID) bool    { return !q.refused[l] }
func (q query) load(l LinkID) float64 { return q.loads[l] }

func (q query) oracle() []Path {
	all := oraclePaths(q.t, q.from, q.to, q.fits)
	slices.SortFunc(all, oracleOrder(q.t, q.metric))
	return all
}

func TestShortestMatchesOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuery(t, 7, 12)
		all := q.oracle()
		got, ok := q.t.Shortest(q.from, q.to, q.metric, q.fits)
		if ok != (len(all) > 0) || ok && !slices.Equal(got, all[0]) {
			t.Fatalf("from %v to %v: got %v %v, want the first of %v", q.from, q.to, got, ok, all)
		}
	})
}

func TestKShortestMatchesOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuery(t, 7, 12)
		k := rapid.IntRange(0, 30).Draw(t, "k")
		all := q.oracle()
		all = all[:min(k, len(all))]
		got := q.t.KShortest(q.from, q.to, k, q.metric, q.fits)
		if !slices.EqualFunc(got, all, slices.Equal[Path]) {
			t.Fatalf("from %v to %v: got %v, want %v", q.from, q.to, got, all)
		}
	})
}

func TestLeastLoadedMatchesOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuery(t, 7, 12)
		q.metric = Hops
		var best Path
		least, found := math.Inf(1), false
		for _, p := range q.oracle() { // shorter ones first
			most := math.Inf(-1)
			for _, l := range p {
				most = math.Max(most, q.loads[l]) // NaN if one is NaN
			}
			if !math.IsNaN(most) && (!found || most < least) {
				best, least, found = p, most, true
			}
		}
		got, ok := q.t.LeastLoaded(q.from, q.to, q.fits, q.load)
		if ok != found || !slices.Equal(got, best) {
			t.Fatalf("from %v to %v: got %v %v, want %v with load %v", q.from, q.to, got, ok, best, least)
		}
	})
}

func TestDisjointMatchesOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuery(t, 6, 10)
		if q.from == q.to {
			return
		}
		k := rapid.IntRange(0, 4).Draw(t, "k")
		by := rapid.SampledFrom([]Disjointness{ByLink, BySwitch}).Draw(t, "by")
		all := q.oracle()
		n, hops, cost := oracleDisjoint(q.t, all, k, by, q.metric)
		got := q.t.Disjoint(q.from, q.to, k, by, q.metric, q.fits)
		gotHops, gotCost := 0, 0
		for i, p := range got {
			if !slices.ContainsFunc(all, func(q Path) bool { return slices.Equal(p, q) }) {
				t.Fatalf("%v is not a path", p)
			}
			for _, other := range got[:i] {
				if oracleShare(by, p, other) {
					t.Fatalf("%v and %v are not disjoint", p, other)
				}
			}
			gotHops, gotCost = gotHops+len(p), gotCost+oracleCost(q.t, p)
		}
		if len(got) != n || gotHops != hops || gotCost != cost {
			t.Fatalf("got %d paths with %d hops and cost %d, want %d with %d and %d: %v", len(got), gotHops, gotCost, n, hops, cost, got)
		}
		if !slices.IsSortedFunc(got, oracleOrder(q.t, q.metric)) {
			t.Fatalf("not in order: %v", got)
		}
	})
}

// TestPathsAreDeterministic: the order in which parts are given changes no result.
func TestPathsAreDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuery(t, 7, 12)
		other := q.parts.shuffled(t).topology(t)
		results := func(top *Topology) (all []Path) {
			p, _ := top.LeastLoaded(q.from, q.to, q.fits, q.load)
			all = append(top.KShortest(q.from, q.to, 3, q.metric, q.fits), p)
			return append(all, top.Disjoint(q.from, q.to, 3, ByLink, q.metric, q.fits)...)
		}
		if a, b := results(q.t), results(other); !slices.EqualFunc(a, b, slices.Equal[Path]) {
			t.Fatalf("%v, but after a permutation %v", a, b)
		}
	})
}

// TestSeedPaths: in the network of the reservations seed all paths from left to right cross the bottleneck, and those
// without enough residual bandwidth are refused.
func TestSeedPaths(t *testing.T) {
	top := seedNetwork(t)
	residual := func(l LinkID) unit.Rate {
		if l.From.Switch == 2 && l.To.Switch == 5 {
			return 100 * unit.Mbit
		}
		return unit.Gbit
	}
	p, ok := top.Shortest(1, 6, Hops, Enough(residual, 100*unit.Mbit))
	if !ok || len(p) != 3 || p[1].From.Switch != 2 || p[1].To.Switch != 5 {
		t.Errorf("path from s1 to s6: %v", p)
	}
	if p, ok := top.Shortest(1, 6, Hops, Enough(residual, 100*unit.Mbit+1)); ok {
		t.Errorf("the bottleneck has not enough bandwidth for %v", p)
	}
	if p := top.Disjoint(1, 6, 2, ByLink, Hops, nil); len(p) != 1 {
		t.Errorf("disjoint paths across one bottleneck: %v", p)
	}
	if p, ok := top.Shortest(1, 1, Hops, nil); !ok || len(p) != 0 {
		t.Errorf("from a switch to itself: %v %v", p, ok)
	}
	for _, unknown := range [][2]DPID{{1, 7}, {7, 1}} {
		if p, ok := top.Shortest(unknown[0], unknown[1], Hops, nil); ok {
			t.Errorf("a path with a switch that does not exist: %v", p)
		}
	}
}

// TestLoad: the load is the fraction of the capacity that is not residual, and a link that does not exist has none.
func TestLoad(t *testing.T) {
	top := seedNetwork(t)
	load := top.Load(func(LinkID) unit.Rate { return 250 * unit.Mbit })
	if got := load(top.Links()[0].LinkID); got != 0.75 {
		t.Errorf("250 Mbit/s of 1 Gbit/s are left: load %v", got)
	}
	if got := load(LinkID{}); !math.IsNaN(got) {
		t.Errorf("a link that does not exist has load %v", got)
	}
}

// A network of 200 switches and 800 links, and the filter of a reservation.
func benchmark(b *testing.B, search func(t *Topology, from, to DPID, residual func(LinkID) unit.Rate)) {
	top := mesh(200, 400).topology(b)
	rnd := rand.New(rand.NewPCG(3, 4))
	left := map[LinkID]unit.Rate{}
	for _, l := range top.Links() {
		left[l.LinkID] = unit.Rate(rnd.Uint64N(uint64(unit.Gbit)))
	}
	residual := func(l LinkID) unit.Rate { return left[l] }
	for b.Loop() {
		search(top, DPID(1+rnd.IntN(200)), DPID(1+rnd.IntN(200)), residual)
	}
}

func BenchmarkShortest(b *testing.B) {
	benchmark(b, func(t *Topology, from, to DPID, residual func(LinkID) unit.Rate) {
		t.Shortest(from, to, Hops, Enough(residual, 100*unit.Mbit))
	})
}

func BenchmarkLeastLoaded(b *testing.B) {
	benchmark(b, func(t *Topology, from, to DPID, residual func(LinkID) unit.Rate) {
		t.LeastLoaded(from, to, Enough(residual, 100*unit.Mbit), t.Load(residual))
	})
}

func BenchmarkFourShortest(b *testing.B) {
	benchmark(b, func(t *Topology, from, to DPID, residual func(LinkID) unit.Rate) {
		t.KShortest(from, to, 4, Hops, Enough(residual, 100*unit.Mbit))
	})
}

func BenchmarkTwoDisjoint(b *testing.B) {
	benchmark(b, func(t *Topology, from, to DPID, residual func(LinkID) unit.Rate) {
		t.Disjoint(from, to, 2, BySwitch, Hops, Enough(residual, 100*unit.Mbit))
	})
}
