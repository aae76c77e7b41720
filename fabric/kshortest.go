package fabric

import "slices"

// KShortest returns the k shortest paths over usable links that fits accepts, shortest first; fewer if there are not so
// many. Of paths of the same length the one with the lesser link where they first differ comes first.
//
// It is the algorithm of J. Yen, "Finding the k shortest loopless paths in a network" (Management Science 17, 1971),
// with the rule of E. Lawler (Management Science 18, 1972), by which no path is found twice: each candidate is the
// shortest of a set of paths, and a candidate that is taken divides its set into smaller ones.
func (t *Topology) KShortest(from, to DPID, k int, metric Metric, fits func(LinkID) bool) []Path {
	a, b, ok := t.ends(from, to)
	if !ok || k <= 0 {
		return nil
	}
	y := yen{t: t, from: a, to: b, weight: t.weigh(metric, fits), weights: make([]uint64, len(t.parts.Links)), avoid: make([]bool, len(t.graph.in))}
	y.add(candidate{})
	var paths []Path
	for len(y.candidates) > 0 && len(paths) < k {
		best := 0
		for i, c := range y.candidates {
			if c.shorter(y.candidates[best]) {
				best = i
			}
		}
		c := y.candidates[best]
		y.candidates = slices.Delete(y.candidates, best, best+1)
		paths = append(paths, t.path(c.links))
		if len(paths) < k {
			y.divide(c)
		}
	}
	return paths
}

// candidate is the shortest path of a set: the paths that begin with links[:spur], and do not continue with one of
// banned.
type candidate struct {
	links  []int32
	spur   int
	banned []int32
	length uint64
}

func (c candidate) shorter(d candidate) bool {
	if c.length != d.length {
		return c.length < d.length
	}
	return slices.Compare(c.links, d.links) < 0
}

type yen struct {
	t          *Topology
	from, to   int32
	weight     func(link int32) uint64
	weights    []uint64 // of each link for which weight was called, 0 for the others
	avoid      []bool   // switches
	candidates []candidate
}

// divide adds the candidates of the set of c without c itself: for each switch of the path from the spur on, the paths
// that leave c there.
func (y *yen) divide(c candidate) {
	for i := c.spur; i < len(c.links); i++ {
		next := candidate{links: c.links[:i:i], spur: i, banned: []int32{c.links[i]}}
		if i == c.spur {
			next.banned = append(next.banned, c.banned...)
		}
		y.add(next)
	}
}

// add completes a candidate, of which links are the beginning, and adds it if there is such a path.
func (y *yen) add(c candidate) {
	at := y.from
	for _, l := range c.links {
		y.avoid[at] = true
		at = y.t.graph.head[l]
	}
	rest, ok := y.t.shortest(at, y.to, func(l int32) uint64 {
		if y.avoid[y.t.graph.tail[l]] || y.avoid[y.t.graph.head[l]] || y.t.graph.tail[l] == at && slices.Contains(c.banned, l) {
			return Unusable
		}
		if y.weights[l] == 0 {
			y.weights[l] = y.weight(l)
		}
		return y.weights[l]
	})
	at = y.from
	for _, l := range c.links {
		y.avoid[at] = false
		at = y.t.graph.head[l]
	}
	if !ok {
		return
	}
	c.links = append(c.links, rest...)
	for _, l := range c.links {
		c.length += y.weights[l]
	}
	y.candidates = append(y.candidates, c)
}
