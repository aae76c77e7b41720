package fabric

import (
	"cmp"
	"slices"
	"testing"

	"headgate.dev/headgate/unit"

	"pgregory.net/rapid"
)

// positions is a random search over links with weights, and keys that grow along a way.
type positions struct {
	query
	weights []uint64
	keys    []int64
}

func drawPositions(t *rapid.T, maxSwitches, maxCables int) positions {
	p := positions{query: drawQuery(t, maxSwitches, maxCables)}
	for range p.t.Links() {
		p.weights = append(p.weights, rapid.SampledFrom([]uint64{1, 2, 3, 10, Unusable}).Draw(t, "weight"))
		p.keys = append(p.keys, rapid.SampledFrom([]int64{-7, 0, 1, 2, 3, 9, Never}).Draw(t, "key"))
	}
	return p
}

// paths are all paths over links that accept, as positions.
func (p positions) paths(accept func(link int32) bool) (all [][]int32) {
	position := map[LinkID]int32{}
	for i, l := range p.t.Links() {
		position[l.LinkID] = int32(i)
	}
	for _, path := range oraclePaths(p.t, p.from, p.to, func(id LinkID) bool { return accept(position[id]) }) {
		links := []int32{}
		for _, id := range path {
			links = append(links, position[id])
		}
		all = append(all, links)
	}
	return all
}

func (p positions) total(paths ...[]int32) (sum uint64) {
	for _, links := range paths {
		for _, l := range links {
			sum += p.weights[l]
		}
	}
	return sum
}

// disjoint calls f with each set of k paths of all that have nothing in common.
func (p positions) disjoint(all [][]int32, k int, by Disjointness, f func(chosen [][]int32)) {
	var try func(rest, chosen [][]int32)
	try = func(rest, chosen [][]int32) {
		if len(chosen) == k {
			f(chosen)
			return
		}
		for i, q := range rest {
			if !slices.ContainsFunc(chosen, func(c []int32) bool { return oracleShare(by, p.t.path(q), p.t.path(c)) }) {
				try(rest[i+1:], append(chosen, q))
			}
		}
	}
	try(all, nil)
}

func TestCheapestMatchesOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPositions(t, 7, 12)
		all := p.paths(func(l int32) bool { return p.weights[l] != Unusable })
		slices.SortFunc(all, func(a, b []int32) int { return cmp.Or(cmp.Compare(p.total(a), p.total(b)), slices.Compare(a, b)) })
		got, ok := p.t.Cheapest(p.from, p.to, func(l int32) uint64 { return p.weights[l] })
		if ok != (len(all) > 0) || ok && !slices.Equal(got, all[0]) {
			t.Fatalf("got %v %v, want the first of %v", got, ok, all)
		}
	})
}

func TestCheapestDisjointMatchesOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPositions(t, 6, 10)
		if p.from == p.to {
			return
		}
		k := rapid.IntRange(1, 3).Draw(t, "k")
		by := rapid.SampledFrom([]Disjointness{ByLink, BySwitch}).Draw(t, "by")
		all := p.paths(func(l int32) bool { return p.weights[l] != Unusable })
		least := uint64(Unusable)
		p.disjoint(all, k, by, func(chosen [][]int32) { least = min(least, p.total(chosen...)) })
		got := p.t.CheapestDisjoint(p.from, p.to, k, by, func(l int32) uint64 { return p.weights[l] })
		if (len(got) == k) != (least != Unusable) {
			t.Fatalf("got %v, and the least total of %d is %d", got, k, least)
		}
		if len(got) < k {
			return
		}
		sound := false
		p.disjoint(got, k, by, func([][]int32) { sound = true })
		for _, links := range got {
			sound = sound && slices.ContainsFunc(all, func(q []int32) bool { return slices.Equal(q, links) })
		}
		if !sound || p.total(got...) != least {
			t.Fatalf("got %v with a total of %d, want %d", got, p.total(got...), least)
		}
	})
}

// The key of a way grows with that of the rest, as the earliest moment does at which all its links have enough.
func TestLeastMatchesOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPositions(t, 7, 12)
		first := rapid.Int64Range(-9, 9).Draw(t, "first")
		extend := func(link int32, rest int64) int64 {
			switch key := p.keys[link]; {
			case key == Never:
				return Never
			case key%2 == 0:
				return max(rest, key)
			default: // at a multiple of the key
				key = max(key, 1)
				if r := rest % key; r > 0 {
					return rest - r + key
				} else if r < 0 {
					return rest - r
				}
				return rest
			}
		}
		least := Never
		for _, links := range p.paths(func(l int32) bool { return p.keys[l] != Never }) {
			key := first
			for i := len(links) - 1; i >= 0; i-- {
				key = extend(links[i], key)
			}
			least = min(least, key)
		}
		if got := p.t.Least(p.from, p.to, first, extend); got != least {
			t.Fatalf("got %d, want %d", got, least)
		}
	})
}

func TestLeastDisjointMatchesOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPositions(t, 6, 10)
		if p.from == p.to {
			return
		}
		first := rapid.Int64Range(-9, 9).Draw(t, "first")
		k := rapid.IntRange(1, 3).Draw(t, "k")
		by := rapid.SampledFrom([]Disjointness{ByLink, BySwitch}).Draw(t, "by")
		least := Never
		p.disjoint(p.paths(func(l int32) bool { return p.keys[l] != Never }), k, by, func(chosen [][]int32) {
			most := first
			for _, links := range chosen {
				for _, l := range links {
					most = max(most, p.keys[l])
				}
			}
			least = min(least, most)
		})
		if got := p.t.LeastDisjoint(p.from, p.to, k, by, first, func(l int32) int64 { return p.keys[l] }); got != least {
			t.Fatalf("got %d, want %d", got, least)
		}
	})
}

func BenchmarkCheapest(b *testing.B) {
	benchmark(b, func(t *Topology, from, to DPID, residual func(LinkID) unit.Rate) {
		t.Cheapest(from, to, func(link int32) uint64 { return 1_000_000 + uint64(link)*1000 })
	})
}

func BenchmarkLeast(b *testing.B) {
	benchmark(b, func(t *Topology, from, to DPID, residual func(LinkID) unit.Rate) {
		t.Least(from, to, 0, func(link int32, rest int64) int64 { return max(rest, int64(link)*7919%1600) })
	})
}
