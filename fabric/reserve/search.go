package reserve

import (
	"cmp"
	"slices"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"
)

// ask is what a search looks for: paths between two ports.
type ask struct {
	from, to fabric.PortID
	// count is the number of paths with the spare path, and parts the number among which rates are divided.
	count, parts     int
	by               fabric.Disjointness
	forward, reverse int64
	// closed are the links that may not be used, in either direction, or nil.
	closed map[fabric.LinkID]bool
	// passed are switches that may not be passed, or nil.
	passed map[fabric.DPID]bool
}

func newAsk(r Request) ask {
	a := ask{
		from: r.Source.At, to: r.Destination.At, parts: r.paths(), count: r.paths(), by: r.Disjoint,
		forward: int64(r.Forward), reverse: int64(r.Reverse),
	}
	if r.Protected {
		a.count++
	}
	for _, id := range r.Avoid {
		a.close(id)
	}
	return a
}

// close takes a cable out of the search.
func (a *ask) close(id fabric.LinkID) {
	if a.closed == nil {
		a.closed = map[fabric.LinkID]bool{}
	}
	a.closed[id], a.closed[id.Reverse()] = true, true
}

// part is the greatest rate of one path, of which all have a total.
func (a ask) part(total int64) int64 { return (total + int64(a.parts) - 1) / int64(a.parts) }

// with returns the ask for another forward rate, with the reverse rate in the same proportion.
func (a ask) with(forward int64) ask {
	a.reverse = scaled(a.reverse, forward, a.forward)
	a.forward = forward
	return a
}

// end is a line that a reservation needs whatever its paths are, and the rate that it has there.
type end struct {
	line int32
	rate int64
	back bool // the rate is the reverse one
}

// ends are the lines from and to the hosts. A line that does not exist is left out: check has refused its port.
func (l *ledger) ends(a ask) (all []end) {
	for k, e := range hostLines(a.from, a.to, unit.Rate(a.forward), unit.Rate(a.reverse)) {
		if i, ok := l.index[e.id]; ok && e.rate > 0 {
			all = append(all, end{line: i, rate: int64(e.rate), back: k >= 2})
		}
	}
	return all
}

// endsCarry reports whether the lines from and to the hosts have enough for an ask at every moment of [from, to).
func (l *ledger) endsCarry(a ask, from, to int64) bool {
	return !slices.ContainsFunc(l.ends(a), func(e end) bool { return l.lines[e.line].free(from, to) < e.rate })
}

// pair reports whether a path of an ask may have a link, and returns the line of the link's reverse, -1 if the ask does not
// need that.
func (l *ledger) pair(a *ask, link int32) (back int32, ok bool) {
	if a.closed != nil || a.passed != nil {
		id := l.ids[link]
		if a.closed[id] || a.passed[id.From.Switch] || a.passed[id.To.Switch] {
			return -1, false
		}
	}
	if a.reverse == 0 {
		return -1, true
	}
	back = l.back[link]
	return back, back >= 0 && l.usable[back]
}

// route returns the paths of an ask with the least total weight, the one with the least first. It returns nil if there are
// not so many.
func (l *ledger) route(a *ask, weight func(link int32) uint64) []fabric.Path {
	var paths [][]int32
	if a.count == 1 {
		p, ok := l.top.Cheapest(a.from.Switch, a.to.Switch, weight)
		if !ok {
			return nil
		}
		paths = append(paths, p)
	} else if paths = l.top.CheapestDisjoint(a.from.Switch, a.to.Switch, a.count, a.by, weight); len(paths) < a.count {
		return nil
	}
	total := func(p []int32) (sum uint64) {
		for _, i := range p {
			sum += weight(i)
		}
		return sum
	}
	slices.SortFunc(paths, func(p, q []int32) int { return cmp.Or(cmp.Compare(total(p), total(q)), slices.Compare(p, q)) })
	routes := make([]fabric.Path, len(paths))
	for i, p := range paths {
		routes[i] = make(fabric.Path, len(p))
		for j, link := range p {
			routes[i][j] = l.ids[link]
		}
	}
	return routes
}

// divide makes paths of a reservation: the rates are divided among the first ones, and the others are spare.
func (a ask) divide(routes []fabric.Path) []Path {
	share := func(total int64, i int) unit.Rate {
		if int64(i) < total%int64(a.parts) {
			return unit.Rate(total/int64(a.parts) + 1)
		}
		return unit.Rate(total / int64(a.parts))
	}
	paths := make([]Path, len(routes))
	for i, r := range routes {
		paths[i] = Path{Links: r, Forward: share(a.forward, i), Reverse: share(a.reverse, i)}
		if i >= a.parts {
			paths[i] = Path{Links: r, Forward: unit.Rate(a.part(a.forward)), Reverse: unit.Rate(a.part(a.reverse)), Spare: true}
		}
	}
	return paths
}

// whole is the utilisation of a link that is reserved up to its limit, in millionths.
const whole = 1_000_000

// find returns paths with enough bandwidth at every moment of [from, to), nil if there are none: of all such paths the ones
// with the least total of weight.
func (l *ledger) find(a ask, from, to int64) []fabric.Path {
	if !l.endsCarry(a, from, to) {
		return nil
	}
	forward, reverse := a.part(a.forward), a.part(a.reverse)
	weights := make([]uint64, len(l.back)) // 0: the link was not looked at
	return l.route(&a, func(link int32) uint64 {
		if weights[link] > 0 {
			return weights[link]
		}
		used := int64(never)
		if back, ok := l.pair(&a, link); ok {
			used = l.lines[link].utilised(forward, from, to)
			if back >= 0 && used != never {
				used = max(used, l.lines[back].utilised(reverse, from, to))
			}
		}
		weights[link] = weight(used)
		return weights[link]
	})
}

// utilised returns the highest utilisation of a line in [from, to) with a rate more, in millionths, rounded up.
func (l *line) utilised(rate, from, to int64) int64 {
	u := l.held + l.highest(from, to) + rate
	if u > l.limit {
		return never
	}
	return scaledUp(u, whole, l.limit)
}

// weight is what a link of a path costs by its utilisation u: 1 + 2u^2, in millionths. It prefers few links while the
// network is empty, and a way round of one link or more where a link would be full.
func weight(u int64) uint64 {
	if u == never {
		return fabric.Unusable
	}
	return uint64(whole + 2*u*u/whole)
}
