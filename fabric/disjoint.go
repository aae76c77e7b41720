package fabric

import "slices"

// Disjointness says what two paths may not have in common.
type Disjointness uint8

const (
	// ByLink: no cable.
	ByLink Disjointness = iota
	// BySwitch: no cable, and no switch but the first and the last.
	BySwitch
)

// Disjoint returns k paths with nothing in common, with the least total length that k such paths can have, over usable
// links that fits accepts; nil accepts all. If there are not so many, it returns as many as there are, again with the
// least total. The shorter path comes first. A switch has no disjoint paths to itself.
//
// It is a flow of minimum cost, in which each link (and each switch) carries one unit: successive shortest paths with
// potentials, which for two paths is the algorithm of J. Suurballe and R. Tarjan (Networks 14, 1984), and for more
// that of R. Bhandari ("Survivable Networks", 1999). No two paths use the two directions of one cable: without it the
// total would be less.
func (t *Topology) Disjoint(from, to DPID, k int, by Disjointness, metric Metric, fits func(LinkID) bool) []Path {
	paths := t.CheapestDisjoint(from, to, k, by, t.weigh(metric, fits))
	length := func(links []int32) (sum uint64) {
		for _, l := range links {
			sum += metric.weight(t.parts.Links[l].Cost)
		}
		return sum
	}
	slices.SortFunc(paths, func(p, q []int32) int {
		if a, b := length(p), length(q); a != b {
			if a < b {
				return -1
			}
			return 1
		}
		return slices.Compare(p, q)
	})
	var result []Path
	for _, p := range paths {
		result = append(result, t.path(p))
	}
	return result
}

// flow is a network of arcs of capacity 1. Arc i and arc i^1 are opposite: one of them is open. A switch is a node
// where frames arrive (2s) and one where they leave (2s+1). They are one node (2s) where paths may share the switch.
type flow struct {
	t            *Topology
	source, sink int32
	to           []int32 // of each arc
	link         []int32 // of each arc, -1 within a switch
	ask          func(link int32) uint64
	weight       []uint64 // of each arc, 0 for one of a link that was not asked for
	open         []bool
	first        []int32 // of each node: an arc that leaves it, -1 if there is none
	next         []int32 // of each arc: another one that leaves the same node
	potential    []uint64
}

// newFlow returns a flow of 0. weight is asked when the flow comes to a link, and is not 0.
func newFlow(t *Topology, from, to int32, by Disjointness, weight func(link int32) uint64) *flow {
	n := len(t.graph.in)
	arcs := 2 * (n + len(t.parts.Links))
	f := &flow{
		t: t, source: 2 * from, sink: 2 * to, ask: weight, first: make([]int32, 2*n), potential: make([]uint64, 2*n),
		to: make([]int32, 0, arcs), link: make([]int32, 0, arcs), next: make([]int32, 0, arcs), weight: make([]uint64, 0, arcs), open: make([]bool, 0, arcs),
	}
	for i := range f.first {
		f.first[i] = -1
	}
	for s := range int32(n) {
		if by == BySwitch && s != from && s != to {
			f.arc(2*s, 2*s+1, -1)
		}
	}
	for u := range int32(n) {
		leave := 2 * u
		if by == BySwitch && u != from {
			leave++
		}
		for _, l := range t.graph.out[u] {
			v := t.graph.head[l]
			if u == to || v == from {
				continue
			}
			f.arc(leave, 2*v, l)
		}
	}
	return f
}

func (f *flow) arc(from, to, link int32) {
	i := int32(len(f.to))
	f.to = append(f.to, to, from)
	f.link = append(f.link, link, link)
	f.weight = append(f.weight, 0, 0)
	f.open = append(f.open, true, false)
	f.next = append(f.next, f.first[from], f.first[to])
	f.first[from], f.first[to] = i, i+1
}

// augment adds one unit along the cheapest way over open arcs, and reports false if there is none. Potentials keep the
// weights of open arcs at 0 or more, so that Dijkstra's algorithm is right.
func (f *flow) augment() bool {
	dist := make([]uint64, len(f.first))
	came := make([]int32, len(f.first))
	done := make([]bool, len(f.first))
	for i := range dist {
		dist[i] = Unusable
	}
	dist[f.source] = 0
	queue := heap{{0, f.source}}
	for len(queue) > 0 {
		at := queue.pop()
		if done[at.node] {
			continue
		}
		done[at.node] = true
		if at.node == f.sink {
			break
		}
		for a := f.first[at.node]; a >= 0; a = f.next[a] {
			v := f.to[a]
			if !f.open[a] || done[v] {
				continue
			}
			if a&1 == 0 && f.link[a] >= 0 {
				if f.weight[a] == 0 {
					w := f.ask(f.link[a])
					f.weight[a], f.weight[a^1] = w, -w // the opposite subtracts
				}
				if f.weight[a] == Unusable {
					continue
				}
			}
			if d := at.key + f.weight[a] + f.potential[at.node] - f.potential[v]; d < dist[v] {
				dist[v], came[v] = d, a
				queue.push(d, v)
			}
		}
	}
	if !done[f.sink] {
		return false
	}
	for v := range dist {
		if done[v] {
			f.potential[v] += dist[v]
		} else {
			f.potential[v] += dist[f.sink]
		}
	}
	f.push(came)
	return true
}

// push adds one unit along the way to the sink, of which came has the last arc to each node.
func (f *flow) push(came []int32) {
	for v := f.sink; v != f.source; {
		a := came[v]
		f.open[a], f.open[a^1] = false, true
		v = f.to[a^1]
	}
}

// paths returns the links of n units of flow. The flow has no cycles, because all weights are above 0.
func (f *flow) paths(n int) [][]int32 {
	paths := make([][]int32, n)
	taken := make([]bool, len(f.to))
	for i := range paths {
		for at := f.source; at != f.sink; {
			a := f.first[at]
			for a&1 != 0 || f.open[a] || taken[a] {
				a = f.next[a]
			}
			taken[a] = true
			if f.link[a] >= 0 {
				paths[i] = append(paths[i], f.link[a])
			}
			at = f.to[a]
		}
	}
	return paths
}
