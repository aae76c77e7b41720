package fabric

import "math"

// The searches of this file are for callers that keep what they know of links by position: the index in Topology.Links.
// They ask for a link only when the search comes to it, so that what is dear to know is known of few links. They may ask
// for one twice.

// Unusable is the weight of a link that a path may not have, and the distance of a switch that has no path.
const Unusable uint64 = math.MaxUint64

// Never is the key of a link that Least and LeastDisjoint do not use, and their result if there is no path.
const Never int64 = math.MaxInt64

// Cheapest returns the path over usable links with the least total weight, as positions. The total of all weights fits 63
// bits, and none is 0. Of equal paths it returns the one with the lesser link where they first differ. It reports false if
// there is no path, or a switch does not exist.
func (t *Topology) Cheapest(from, to DPID, weight func(link int32) uint64) ([]int32, bool) {
	a, b, ok := t.ends(from, to)
	if !ok {
		return nil, false
	}
	return t.shortest(a, b, weight)
}

// CheapestDisjoint returns k paths with nothing in common, with the least total weight that k such paths can have, or as
// many as there are (Disjoint).
func (t *Topology) CheapestDisjoint(from, to DPID, k int, by Disjointness, weight func(link int32) uint64) [][]int32 {
	a, b, ok := t.ends(from, to)
	if !ok || a == b {
		return nil
	}
	f := newFlow(t, a, b, by, weight)
	n := 0
	for n < k && f.augment() {
		n++
	}
	return f.paths(n)
}

// Least returns the least key of a path over usable links. The empty path has the key first. A path that begins with a
// link has the key that extend returns for the link and the key of the rest. That key is not less than the one of the rest,
// and not less for a greater one. For example the key can be the highest load of a path's links, or a moment from which
// all have enough bandwidth.
func (t *Topology) Least(from, to DPID, first int64, extend func(link int32, rest int64) int64) int64 {
	a, b, ok := t.ends(from, to)
	if !ok {
		return Never
	}
	best := make([]int64, len(t.graph.in))
	for i := range best {
		best[i] = Never
	}
	best[b] = first
	queue := heap{{sortable(first), b}}
	for best[a] > first && len(queue) > 0 {
		at := queue.pop()
		rest := best[at.node]
		if at.key > sortable(rest) {
			continue
		}
		if rest >= best[a] {
			break // all others are not less
		}
		for _, l := range t.graph.in[at.node] {
			u := t.graph.tail[l]
			if best[u] <= rest {
				continue
			}
			if key := extend(l, rest); key < best[u] {
				best[u] = key
				queue.push(sortable(key), u)
			}
		}
	}
	return best[a]
}

// sortable maps numbers to unsigned ones in the same order.
func sortable(key int64) uint64 { return uint64(key) ^ 1<<63 }

// LeastDisjoint returns the least number such that the links with a key up to it form k paths with nothing in common, and
// at least first.
//
// It is a flow that grows by one unit at a time, each along the way whose highest key is least (augment with other
// distances). What is open stays open as the number grows, so that no number below allows one unit more.
func (t *Topology) LeastDisjoint(from, to DPID, k int, by Disjointness, first int64, key func(link int32) int64) int64 {
	a, b, ok := t.ends(from, to)
	if !ok || a == b {
		return Never
	}
	f := newFlow(t, a, b, by, nil)
	for range k {
		if first = f.widen(first, key); first == Never {
			break
		}
	}
	return first
}

// widen adds one unit along the way over open arcs whose highest key is least, and returns that, or first if it is less.
// Arcs within a switch, and those that take a unit back, have no key. It returns Never if there is no way.
func (f *flow) widen(first int64, key func(link int32) int64) int64 {
	best := make([]int64, len(f.first))
	came := make([]int32, len(f.first))
	for i := range best {
		best[i] = Never
	}
	best[f.source] = first
	queue := heap{{sortable(first), f.source}}
	for best[f.sink] > first && len(queue) > 0 {
		at := queue.pop()
		here := best[at.node]
		if at.key > sortable(here) {
			continue
		}
		if here >= best[f.sink] {
			break
		}
		for a := f.first[at.node]; a >= 0; a = f.next[a] {
			v := f.to[a]
			if !f.open[a] || best[v] <= here {
				continue
			}
			next := here
			if a&1 == 0 && f.link[a] >= 0 {
				next = max(next, key(f.link[a]))
			}
			if next < best[v] {
				best[v], came[v] = next, a
				queue.push(sortable(next), v)
			}
		}
	}
	if best[f.sink] == Never {
		return Never
	}
	f.push(came)
	return best[f.sink]
}
