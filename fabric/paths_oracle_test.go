package fabric

import (
	"cmp"
	"slices"
)

// oraclePaths returns every path without a repeated switch over links that are usable and accepted.
func oraclePaths(t *Topology, from, to DPID, fits func(LinkID) bool) []Path {
	var all []Path
	var walk func(at DPID, path Path, seen []DPID)
	walk = func(at DPID, path Path, seen []DPID) {
		if at == to {
			all = append(all, slices.Clone(path))
			return
		}
		for _, l := range t.Links() {
			a, _ := t.Port(l.From)
			b, _ := t.Port(l.To)
			if l.From.Switch == at && !slices.Contains(seen, l.To.Switch) && a.State == Up && b.State == Up && fits(l.LinkID) {
				walk(l.To.Switch, append(path, l.LinkID), append(seen, l.To.Switch))
			}
		}
	}
	walk(from, Path{}, []DPID{from})
	return all
}

func oracleCost(t *Topology, p Path) (sum int) {
	for _, id := range p {
		l, _ := t.Link(id)
		sum += int(l.Cost)
	}
	return sum
}

// oracleOrder compares paths as Metric says.
func oracleOrder(t *Topology, metric Metric) func(a, b Path) int {
	return func(a, b Path) int {
		hops, cost := cmp.Compare(len(a), len(b)), cmp.Compare(oracleCost(t, a), oracleCost(t, b))
		if metric == Cost {
			hops, cost = cost, hops
		}
		return cmp.Or(hops, cost, slices.CompareFunc(a, b, LinkID.Compare))
	}
}

func oracleShare(by Disjointness, a, b Path) bool {
	for _, l := range a {
		if slices.Contains(b, l) || slices.Contains(b, l.Reverse()) {
			return true
		}
	}
	if by == BySwitch {
		for _, l := range a[1:] {
			if slices.ContainsFunc(b[1:], func(m LinkID) bool { return m.From.Switch == l.From.Switch }) {
				return true
			}
		}
	}
	return false
}

// oracleDisjoint returns the greatest number of disjoint paths, at most k, and the least total of hops and cost for it,
// by trying all sets of paths.
func oracleDisjoint(t *Topology, paths []Path, k int, by Disjointness, metric Metric) (n, hops, cost int) {
	var try func(rest []Path, chosen []Path, h, c int)
	try = func(rest []Path, chosen []Path, h, c int) {
		order := cmp.Or(cmp.Compare(h, hops), cmp.Compare(c, cost))
		if metric == Cost {
			order = cmp.Or(cmp.Compare(c, cost), cmp.Compare(h, hops))
		}
		if len(chosen) > n || len(chosen) == n && order < 0 {
			n, hops, cost = len(chosen), h, c
		}
		if len(chosen) == k {
			return
		}
		for i, p := range rest {
			if !slices.ContainsFunc(chosen, func(q Path) bool { return oracleShare(by, p, q) }) {
				try(rest[i+1:], append(chosen, p), h+len(p), c+oracleCost(t, p))
			}
		}
	}
	try(paths, nil, 0, 0)
	return n, hops, cost
}
