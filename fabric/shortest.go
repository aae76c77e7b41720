package fabric

import (
	"math"
	"slices"

	"headgate.dev/headgate/unit"
)

// Path is a sequence of links, each of which begins at the switch at which the one before it ends. A path visits no
// switch twice. A path from a switch to itself is empty.
type Path []LinkID

// Reverse returns the path of the opposite direction.
func (p Path) Reverse() Path {
	back := make(Path, len(p))
	for i, l := range p {
		back[len(p)-1-i] = l.Reverse()
	}
	return back
}

// Metric says which of two paths is shorter. Of paths that are equal in both numbers, the one with the lesser link
// where they first differ is shorter, so that there is always one shortest path.
type Metric uint8

const (
	// Hops: fewer links, then lower cost.
	Hops Metric = iota
	// Cost: lower total cost, then fewer links.
	Cost
)

// weight is a link's part of the length of a path. Both numbers are added in one integer, of which the second has 32
// bits: a path of 65,535 links of the highest cost fits.
func (m Metric) weight(cost uint16) uint64 {
	if m == Cost {
		return uint64(cost)<<32 | 1
	}
	return 1<<32 | uint64(cost)
}

// Enough returns a filter for path searches: it accepts links with a residual bandwidth of at least rate.
func Enough(residual func(LinkID) unit.Rate, rate unit.Rate) func(LinkID) bool {
	return func(l LinkID) bool { return residual(l) >= rate }
}

// Load returns the load of links for LeastLoaded: the fraction of the capacity that is not residual.
func (t *Topology) Load(residual func(LinkID) unit.Rate) func(LinkID) float64 {
	return func(id LinkID) float64 {
		l, ok := t.Link(id)
		if !ok {
			return math.NaN()
		}
		return 1 - float64(residual(id))/float64(l.Capacity)
	}
}

// Shortest returns the shortest path over usable links that fits accepts; nil accepts all. It reports false if there is
// no such path, or a switch does not exist.
//
// With Hops and Enough it is the search of the reservations seed (section 3.3): the fewest hops over links with
// sufficient remaining bandwidth.
func (t *Topology) Shortest(from, to DPID, metric Metric, fits func(LinkID) bool) (Path, bool) {
	a, b, ok := t.ends(from, to)
	if !ok {
		return nil, false
	}
	links, ok := t.shortest(a, b, t.weigh(metric, fits))
	return t.path(links), ok
}

// LeastLoaded returns the path whose most loaded link has the least load. Of such paths it returns the one with the
// fewest hops, then the lowest cost, as Shortest with Hops does. Links with a load that is not a number are not used.
func (t *Topology) LeastLoaded(from, to DPID, fits func(LinkID) bool, load func(LinkID) float64) (Path, bool) {
	a, b, ok := t.ends(from, to)
	if !ok {
		return nil, false
	}
	// Each link is asked once, because fits and load may search calendars.
	loads := make([]float64, len(t.parts.Links))
	for i := range loads {
		loads[i] = math.NaN()
	}
	asked := make([]bool, len(loads))
	loadOf := func(l int32) float64 {
		if !asked[l] {
			asked[l] = true
			if id := t.parts.Links[l].LinkID; fits == nil || fits(id) {
				loads[l] = load(id)
			}
		}
		return loads[l]
	}
	most := t.Least(from, to, math.MinInt64, func(l int32, rest int64) int64 {
		if loadOf(l) != loadOf(l) {
			return Never
		}
		return max(rest, ordered(loadOf(l)))
	})
	links, ok := t.shortest(a, b, func(l int32) uint64 {
		if loadOf(l) == loadOf(l) && ordered(loadOf(l)) <= most {
			return Hops.weight(t.parts.Links[l].Cost)
		}
		return Unusable
	})
	return t.path(links), ok
}

// ordered maps numbers to integers in the same order.
func ordered(v float64) int64 {
	b := math.Float64bits(v)
	if b>>63 != 0 {
		return int64(^b) + math.MinInt64
	}
	return int64(b)
}

// ends returns the indices of two switches.
func (t *Topology) ends(from, to DPID) (a, b int32, ok bool) {
	a, okA := t.index[from]
	b, okB := t.index[to]
	return a, b, okA && okB
}

func (t *Topology) weigh(metric Metric, fits func(LinkID) bool) func(link int32) uint64 {
	return func(l int32) uint64 {
		link := &t.parts.Links[l]
		if fits != nil && !fits(link.LinkID) {
			return Unusable
		}
		return metric.weight(link.Cost)
	}
}

// shortest returns the links of the shortest path: Dijkstra's algorithm from the destination, then a walk from the
// source that takes the least link of those on shortest paths.
func (t *Topology) shortest(from, to int32, weight func(link int32) uint64) ([]int32, bool) {
	dist := make([]uint64, len(t.graph.in))
	for i := range dist {
		dist[i] = Unusable
	}
	dist[to] = 0
	queue := heap{{0, to}}
	for len(queue) > 0 {
		at := queue.pop()
		if at.node == from {
			break // the switches on shortest paths have their distances
		}
		if at.key > dist[at.node] {
			continue
		}
		for _, l := range t.graph.in[at.node] {
			u := t.graph.tail[l]
			if dist[u] <= at.key {
				continue // its weight need not be asked
			}
			w := weight(l)
			if w != Unusable && at.key+w < dist[u] {
				dist[u] = at.key + w
				queue.push(dist[u], u)
			}
		}
	}
	if dist[from] == Unusable {
		return nil, false
	}
	links := []int32{}
	for at := from; at != to; {
		i := slices.IndexFunc(t.graph.out[at], func(l int32) bool {
			next := dist[t.graph.head[l]]
			if next >= dist[at] {
				return false
			}
			w := weight(l)
			return w != Unusable && next+w == dist[at]
		})
		l := t.graph.out[at][i]
		links = append(links, l)
		at = t.graph.head[l]
	}
	return links, true
}

// path returns the identities of links.
func (t *Topology) path(links []int32) Path {
	if links == nil {
		return nil
	}
	p := make(Path, len(links))
	for i, l := range links {
		p[i] = t.parts.Links[l].LinkID
	}
	return p
}
