package reserve

// rounds bounds how often a search for the earliest start takes a new lower bound. It keeps a refusal within milliseconds where
// links of one path are free by turns: with 10,000 reservations of a minute each, on two links by turns, the search would
// have 5,000 rounds of 7 us. In networks of 200 switches with 10,000 random reservations of a week it has 50 at the most,
// and 160 where these have half an hour and half of a link's rate.
const rounds = 500

// earliest returns the first moment, not before from, from which there are paths with enough bandwidth for a duration,
// and never if there is none before tried. tried is never if there is none up to latest, and else where the search was
// given up.
//
// A start that suits a path suits all its links. So, from a lower bound on the start, the search goes from the destination
// to the source, and asks each link for the first start that suits it, not before the least one found for the way behind
// it. What it finds at the source is the next lower bound, and exact if it is the lower bound that it began with.
func (l *ledger) earliest(a ask, from, latest, duration int64) (start, tried int64) {
	ends := l.ends(a)
	forward, reverse := a.part(a.forward), a.part(a.reverse)
	known := make([]gap, len(l.back))
	suits := func(link int32, start int64) int64 {
		g := &known[link]
		if g.from <= start && start <= g.start && g.asked {
			return g.start
		}
		*g = gap{from: start, start: never, asked: true}
		if back, ok := l.pair(&a, link); ok {
			g.start = l.lines[link].suits(start, latest, duration, forward)
			for back >= 0 && g.start != never {
				at := l.lines[back].suits(g.start, latest, duration, reverse)
				if at == g.start {
					break
				}
				g.start = at
				if at != never {
					g.start = l.lines[link].suits(at, latest, duration, forward)
				}
			}
		}
		return g.start
	}
	start = from
	for range rounds {
		next := start
		for _, e := range ends {
			if next != never {
				next = l.lines[e.line].suits(next, latest, duration, e.rate)
			}
		}
		if next == start {
			next = l.top.Least(a.from.Switch, a.to.Switch, start, suits)
		}
		if next == start && a.count > 1 {
			next = l.top.LeastDisjoint(a.from.Switch, a.to.Switch, a.count, a.by, start, func(link int32) int64 { return suits(link, start) })
		}
		switch next {
		case start:
			return start, never
		case never:
			return never, never
		}
		start = next
	}
	return never, start
}

// gap is what is known of a link: the first start that suits it, of those not before from.
type gap struct {
	from, start int64
	asked       bool
}

// suits returns the first moment, not before from, from which a line has a rate for a duration, and never if there is none
// up to latest.
func (l *line) suits(from, latest, duration, rate int64) int64 {
	if at := l.earliest(from, duration, l.leaves(rate)); at <= latest {
		return at
	}
	return never
}
