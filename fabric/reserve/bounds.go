package reserve

import (
	"math"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"
)

// room returns the rate that can be reserved on a line.
type room func(line int32) int64

// during is what is free at every moment of [from, to).
func (l *ledger) during(from, to int64) room {
	return func(line int32) int64 { return max(0, l.lines[line].free(from, to)) }
}

// unreserved is what would be free without reservations.
func (l *ledger) unreserved(line int32) int64 { return max(0, l.lines[line].limit-l.lines[line].held) }

// widest returns the greatest forward rate for which there are paths between the switches of an ask, with the reverse rate
// in proportion, and reports whether there are any. Between ports of one switch it is MaxInt64. carries is the same of a
// link.
func (l *ledger) widest(a *ask, free room) (most int64, carries func(link int32) int64, ok bool) {
	const unknown = -1
	known := make([]int64, len(l.back))
	for i := range known {
		known[i] = unknown
	}
	carries = func(link int32) int64 {
		if known[link] == unknown {
			known[link] = free(link) * int64(a.parts)
			if a.reverse > 0 {
				known[link] = min(known[link], scaled(free(l.back[link])*int64(a.parts), a.forward, a.reverse))
			}
		}
		return known[link]
	}
	// The greatest rate is the least key.
	key := func(link int32) int64 {
		if _, ok := l.pair(a, link); !ok {
			return never
		}
		return -carries(link)
	}
	least := int64(-math.MaxInt64)
	if a.count == 1 {
		least = l.top.Least(a.from.Switch, a.to.Switch, least, func(link int32, rest int64) int64 { return max(rest, key(link)) })
	} else {
		least = l.top.LeastDisjoint(a.from.Switch, a.to.Switch, a.count, a.by, least, key)
	}
	if least == never {
		return 0, carries, false
	}
	return -least, carries, true
}

// most returns the greatest forward rate for which there are paths, with the reverse rate in proportion, 0 if there is
// none.
func (l *ledger) most(a ask, free room) int64 {
	most, _, _ := l.widest(&a, free)
	for _, e := range l.ends(a) {
		most = min(most, l.forward(&a, e, free))
	}
	return min(most, int64(unit.MaxRate))
}

// forward is the greatest forward rate that an end allows.
func (l *ledger) forward(a *ask, e end, free room) int64 {
	if e.back {
		return scaled(free(e.line), a.forward, a.reverse)
	}
	return free(e.line)
}

// bottleneck is what bounds the rate of an ask in [from, to).
type bottleneck struct {
	// forward is the greatest forward rate that there are paths for, with the reverse rate in proportion, 0 if there is
	// none.
	forward int64
	// line has not enough for the whole ask at the moment at, and free is what it has. line is -1 if there are no paths,
	// however low the rate.
	line             int32
	at, free, needed int64
}

// blame returns what bounds an ask for which find finds nothing.
func (l *ledger) blame(a ask, from, to int64) bottleneck {
	free := l.during(from, to)
	most, carries, ok := l.widest(&a, free)
	b := bottleneck{line: -1, forward: most}
	if !ok {
		return b
	}
	for _, p := range l.route(&a, func(link int32) uint64 {
		if _, ok := l.pair(&a, link); !ok || carries(link) < most {
			return fabric.Unusable
		}
		return 1
	}) {
		for _, id := range p {
			if i := l.index[id]; carries(i) == most {
				if b.line, b.needed = i, a.part(a.forward); free(i) >= b.needed {
					b.line, b.needed = l.back[i], a.part(a.reverse)
				}
			}
		}
	}
	for _, e := range l.ends(a) {
		if rate := l.forward(&a, e, free); rate < b.forward {
			b.forward, b.line, b.needed = rate, e.line, e.rate
		}
	}
	if b.line < 0 {
		b.forward = int64(unit.MaxRate) // no line has a limit
		return b
	}
	n := &l.lines[b.line]
	b.at = n.firstOver(from, n.leaves(b.needed))
	b.free = n.limit - n.held - n.level(b.at)
	return b
}
