package limiter

import "math"

// The measures of the tokens of an interval. They are equal without loss and without
// cross traffic. came is the number of packets that arrived. numbered adds those that
// were lost behind the limiter. slotted is the packet times from the first to the last
// packet, with those of cross traffic between them.
const (
	came = iota
	numbered
	slotted
	measures
)

// measure returns the measures of a burst.
func (r run) measure(i int, quantum, loss float64) (m [measures]float64) {
	b := r.bursts[i]
	m[came] = float64(b.count())
	m[numbered] = float64(r.v.n[r.bursts[i+1].from] - r.v.n[b.from])
	if limit := m[came]*(1+3*loss) + 3; loss < someLoss || m[numbered] < m[came] || m[numbered] > limit {
		// Packets were reordered, or a queue overflowed.
		m[numbered] = m[came] / (1 - loss)
	}
	m[slotted] = m[came]
	if r.v.asked == 0 && quantum > 0 {
		slots := math.Round((r.v.at[b.to-1]-r.v.at[b.from])/quantum) + 1
		if slots > m[came] && slots < 2*m[came] {
			m[slotted] = slots
		}
	}
	return m
}

const (
	// someLoss is the minimum loss of a path that matters.
	someLoss = 0.003
	// steadier: a measure must vary by less than this fraction of the variation of the
	// others to be chosen.
	steadier = 0.75
)

// count computes delta. The tokens of an interval are constant, so that the measure with
// the least variation is correct. If that does not show whether packets were lost before
// or behind the limiter, delta is between the two.
func (t *ticking) count(runs []run, loss, link float64) {
	type tally struct {
		p         float64
		total     [measures]float64
		intervals float64
	}
	var each [measures][]float64
	var all tally
	var tallies []tally
	for _, r := range runs {
		one := tally{p: r.v.offered()}
		if link > 0 {
			one.p = math.Min(one.p, link)
		}
		quantum := r.quantum()
		for i := 0; i+1 < len(r.bursts); i++ {
			k := multiple(r.start(i+1)-r.start(i), t.interval)
			if k == 0 {
				continue
			}
			one.intervals += float64(k)
			for j, m := range r.measure(i, quantum, loss) {
				one.total[j] += m
				all.total[j] += m
				if k == 1 {
					each[j] = append(each[j], m)
				}
			}
		}
		all.intervals += one.intervals
		if one.intervals > 0 {
			tallies = append(tallies, one)
		}
	}
	if t.seen = int(all.intervals); t.seen == 0 {
		return
	}
	var off [measures]float64 // relative deviation for one interval
	for j := range off {
		off[j] = 0.5
		if len(each[j]) >= minTicks {
			_, sd := spread(each[j])
			off[j] = math.Max(sd, minSpread)
		}
		off[j] /= all.total[j] / all.intervals
	}
	best := came
	for j := numbered; j < measures; j++ {
		if off[j] < steadier*off[best] {
			best = j
		}
	}
	error := func(t tally) float64 {
		return math.Hypot(off[best]*t.total[best]/math.Pow(t.intervals, 1.5), 0.5/t.intervals)
	}
	t.packets, t.packetsError = all.total[best]/all.intervals, z90*error(all)
	if best != slotted {
		var parts []part
		for _, one := range tallies {
			parts = append(parts, part{one.p, one.total[best] / one.intervals, error(one)})
		}
		if more, sd := totalRate(parts); more > t.packets {
			t.packets, t.packetsError = more, math.Hypot(z90*sd, (more-t.packets)/4)
		}
	}
	if best == came && loss > someLoss && off[came] < off[numbered]/steadier {
		// Packets may have been lost behind the limiter.
		t.packets /= 1 - loss/2
		t.packetsError = math.Hypot(t.packetsError, t.packets*loss/2)
	}
}

// minSpread is the minimum deviation: a fractional delta alternates between two
// numbers.
const minSpread = 0.3

// quantum returns the time of a packet within bursts.
func (r run) quantum() float64 {
	var times []float64
	now := 0.0
	for _, b := range r.bursts {
		for j := b.from + 1; j < b.to; j++ {
			now += r.v.at[j] - r.v.at[j-1]
			times = append(times, now)
		}
	}
	q, _ := serves(times)
	return q.gap
}
