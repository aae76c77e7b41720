package fabric

// rerouting computes the next hops to one destination after the other. Its slices are by switch, and are used again.
//
// The best ports to a destination form a tree, whose root is the destination. If the cable between a switch u and its
// parent fails, the switches below u, and u, need an exit: a cable that is not in the tree and leads from one of them, x,
// to a switch y that is not below u. From y on the tree leads to the destination without the failed cable.
//
// An exit is higher the nearer to the root the paths of x and y meet. Each switch knows the highest exit at or below it.
// Exits that are equally high are ordered by a fixed rule, so that on the way from u down to x each switch has the same
// highest exit: a packet needs no other mark than that it was rerouted and comes from the parent.
type rerouting struct {
	t      *Topology
	ids    []DPID
	dist   []uint64
	parent []int32  // the link to the parent, -1 at the root and where there is no path
	depth  []uint32 // in the tree
	order  []int32  // switches by distance, the root first
	exit   []uint64 // the highest exit at or below each switch, as a key: less is higher
	toExit []int32  // the link to it: of the tree downwards, or the exit itself
	meets  []uint32 // of each link of a possible exit: the depth at which the paths of its ends meet
	queue  heap
}

func newRerouting(t *Topology) *rerouting {
	n := len(t.parts.Switches)
	r := &rerouting{
		t: t, dist: make([]uint64, n), parent: make([]int32, n), depth: make([]uint32, n), order: make([]int32, 0, n),
		exit: make([]uint64, n), toExit: make([]int32, n), meets: make([]uint32, len(t.parts.Links)),
	}
	for _, s := range t.parts.Switches {
		r.ids = append(r.ids, s.ID)
	}
	return r
}

// compute writes the next hops to d.
func (r *rerouting) compute(d int32, next []NextHop) {
	r.tree(d)
	r.exits()
	for _, u := range r.order[1:] {
		next[u].Best = r.port(r.parent[u])
		r.backup(u, next)
	}
}

// port is the port at which a link leaves its switch.
func (r *rerouting) port(link int32) PortNo { return r.t.parts.Links[link].From.Port }

// tree computes the shortest paths to d by cost. Of links that are equally good, a switch takes one by a hash of the
// link and the destination, so that traffic to different destinations is spread over them, and a link that is added or
// removed changes no other choice (D. Thaler and C. Ravishankar, "Using Name-Based Mappings to Increase Hit Rates",
// IEEE/ACM Transactions on Networking 6, 1998).
func (r *rerouting) tree(d int32) {
	g := &r.t.graph
	for i := range r.dist {
		r.dist[i], r.parent[i] = Unusable, -1
	}
	r.dist[d], r.depth[d] = 0, 0
	r.order = r.order[:0]
	r.queue = append(r.queue[:0], heapItem{0, d})
	for len(r.queue) > 0 {
		at := r.queue.pop()
		v := at.node
		if at.key > r.dist[v] {
			continue
		}
		r.order = append(r.order, v)
		if p := r.parent[v]; p >= 0 {
			r.depth[v] = r.depth[g.head[p]] + 1
		}
		for _, l := range g.in[v] {
			if g.twin[l] < 0 {
				continue
			}
			u := g.tail[l]
			key := at.key + Cost.weight(g.cost[l])
			switch {
			case key < r.dist[u]:
				r.dist[u], r.parent[u] = key, l
				r.queue.push(key, u)
			case key == r.dist[u] && r.preferred(l, r.parent[u], d):
				r.parent[u] = l
			}
		}
	}
}

// preferred reports whether link a is chosen before link b for destination d.
func (r *rerouting) preferred(a, b, d int32) bool {
	x, y := r.hash(a, d), r.hash(b, d)
	return x < y || x == y && a < b
}

// hash mixes the bits of its input (the finalizer of splitmix64: G. Steele and others, OOPSLA 2014).
func (r *rerouting) hash(link, d int32) uint64 {
	from := r.t.parts.Links[link].From
	x := uint64(r.ids[d])*0x9e3779b97f4a7c15 ^ uint64(from.Switch)<<20 ^ uint64(from.Port)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// exits finds the highest exit of each switch, from the leaves of the tree to the root.
func (r *rerouting) exits() {
	g := &r.t.graph
	for _, u := range r.order {
		r.exit[u], r.toExit[u] = Unusable, -1
		for _, l := range g.out[u] {
			if l < g.twin[l] && r.leavesTree(l) {
				m := r.meet(u, g.head[l])
				r.meets[l], r.meets[g.twin[l]] = m, m
			}
		}
	}
	for i := len(r.order) - 1; i > 0; i-- {
		u := r.order[i]
		for _, l := range g.out[u] {
			if !r.leavesTree(l) {
				continue
			}
			if key := r.exitKey(l); key < r.exit[u] {
				r.exit[u], r.toExit[u] = key, l
			}
		}
		if p := g.head[r.parent[u]]; r.exit[u] < r.exit[p] {
			r.exit[p], r.toExit[p] = r.exit[u], g.twin[r.parent[u]]
		}
	}
}

// leavesTree reports whether a link belongs to a cable that is usable and not in the tree.
func (r *rerouting) leavesTree(l int32) bool {
	g := &r.t.graph
	return g.twin[l] >= 0 && l != r.parent[g.tail[l]] && r.parent[g.head[l]] != g.twin[l]
}

// exitKey orders exits: by the depth at which the paths of their ends meet (16 bits), then by the depths of the ends
// (18 bits), so that detours are short, then by identity (30 bits). Networks of 65,536 switches in a row or 2^30 links
// would not fit.
func (r *rerouting) exitKey(l int32) uint64 {
	g := &r.t.graph
	return uint64(r.meets[l])<<48 | uint64(r.depth[g.tail[l]]+r.depth[g.head[l]])<<30 | uint64(l)
}

// meet returns the depth of the switch at which the paths of u and v to the root meet.
func (r *rerouting) meet(u, v int32) uint32 {
	for u != v {
		if r.depth[u] < r.depth[v] {
			u, v = v, u
		}
		u = r.t.graph.head[r.parent[u]]
	}
	return r.depth[u]
}

// backup chooses the backup of u. An exit of u itself is as good as one below it, and needs no detour. One that leads
// around the parent too is preferred.
func (r *rerouting) backup(u int32, next []NextHop) {
	g := &r.t.graph
	best, bestMeets, bestDist := int32(-1), uint32(0), uint64(0)
	for _, l := range g.out[u] {
		if !r.leavesTree(l) {
			continue
		}
		v, meets := g.head[l], r.meets[l]
		if meets == r.depth[u] {
			continue // v is below u
		}
		dist := r.dist[v] + Cost.weight(g.cost[l])
		around, bestAround := meets+1 < r.depth[u], bestMeets+1 < r.depth[u]
		if best < 0 || around && !bestAround || around == bestAround && dist < bestDist {
			best, bestMeets, bestDist = l, meets, dist
		}
	}
	below := uint32(r.exit[u] >> 48)
	switch {
	case best >= 0 && (bestMeets+1 < r.depth[u] || r.toExit[u] < 0 || below+1 >= r.depth[u]):
		next[u].Backup = r.port(best)
		next[u].SurvivesSwitch = bestMeets+1 < r.depth[u]
	case r.toExit[u] >= 0 && below < r.depth[u]:
		next[u].Backup = r.port(r.toExit[u])
		next[u].Hairpin = true
		next[u].SurvivesSwitch = below+1 < r.depth[u]
		for w := g.head[r.toExit[u]]; next[w].Detour == 0; w = g.head[r.toExit[w]] {
			next[w].Detour = r.port(r.toExit[w])
			if r.leavesTree(r.toExit[w]) {
				break
			}
		}
	}
}
