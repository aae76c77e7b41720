package limiter

import (
	"math"

	"headgate/probe"
)

// paced is what a Xen-like limiter leaves in a train: bursts that begin at multiples
// of one interval.
type ticking struct {
	interval, intervalError float64 // ns
	packets, packetsError   float64
	frame                   float64
	seen                    int     // intervals
	fit                     float64 // the part of differences that are multiples of it
}

const (
	// regular is by how much a burst may begin off its tick, as a part of the
	// interval; cross traffic and stamps add offTick.
	regular = 0.06
	offTick = 30e3 // ns
	// mostMissed intervals in a row in which nothing came.
	mostMissed = 4
	// leastTicks are how many differences between bursts make a pattern.
	leastTicks = 3
	// fits is the part of differences that must be multiples of the interval; fitsFew, if
	// there are fewer than fewTicks. A burst that is late spoils two.
	fits, fitsFew = 0.6, 0.8
	fewTicks      = 6
)

// run is the bursts of one train that began at a tick: all but the first.
type run struct {
	v      *view
	bursts []burst
}

func (r run) start(i int) float64 { return r.v.at[r.bursts[i].from] }

// ticks looks for (T, delta) in trains of full packets. The first burst of a train
// begins whenever it comes, and the last is cut.
func ticks(runs []run, loss, link float64) (ticking, bool) {
	var differences []float64
	for _, r := range runs {
		for i := 1; i < len(r.bursts); i++ {
			differences = append(differences, r.start(i)-r.start(i-1))
		}
	}
	if len(differences) < leastTicks {
		return ticking{}, false
	}
	t := ticking{}
	for _, candidate := range differences {
		// The mean of those like it: one alone is off by the cross traffic of two ticks.
		near, once := 0.0, 0
		for _, d := range differences {
			if k := multiple(d, candidate); k == 1 {
				near, once = near+d, once+1
			}
		}
		if once == 0 {
			continue
		}
		interval := near / float64(once)
		matched := 0
		for _, d := range differences {
			if multiple(d, interval) > 0 {
				matched++
			}
		}
		fit := float64(matched) / float64(len(differences))
		if once*5 >= len(differences) && (fit > t.fit || fit == t.fit && interval > t.interval) {
			t.interval, t.fit = interval, fit
		}
	}
	if t.fit < fits || len(differences) < fewTicks && t.fit < fitsFew {
		return t, false
	}
	t.frame = runs[0].v.frame
	t.refine(runs)
	t.count(runs, loss, link)
	return t, t.seen >= leastTicks
}

// multiple is how many intervals d is, or 0 if it is not close to so many.
func multiple(d, interval float64) int {
	k := math.Round(d / interval)
	if k < 1 || k > mostMissed || math.Abs(d-k*interval) > regular*interval+offTick {
		return 0
	}
	return int(k)
}

// refine fits the bursts' beginnings to ticks by least squares, each train's with a
// phase of its own.
func (t *ticking) refine(runs []run) {
	var xx, xy, rest float64
	type point struct{ x, y float64 }
	var centred []point
	groups := 0
	for _, r := range runs {
		var points []point
		k := 0.0
		for i := range r.bursts {
			if i > 0 {
				step := multiple(r.start(i)-r.start(i-1), t.interval)
				if step == 0 {
					break
				}
				k += float64(step)
			}
			points = append(points, point{k, r.start(i)})
		}
		if len(points) < 2 {
			continue
		}
		var mx, my float64
		for _, p := range points {
			mx, my = mx+p.x, my+p.y
		}
		mx, my = mx/float64(len(points)), my/float64(len(points))
		for _, p := range points {
			q := point{p.x - mx, p.y - my}
			xx, xy = xx+q.x*q.x, xy+q.x*q.y
			centred = append(centred, q)
		}
		groups++
	}
	if xx == 0 {
		return
	}
	t.interval = xy / xx
	for _, p := range centred {
		rest += (p.y - t.interval*p.x) * (p.y - t.interval*p.x)
	}
	free := math.Max(float64(len(centred)-groups-1), 1)
	t.intervalError = math.Hypot(z90*math.Sqrt(rest/free/xx), stampError/math.Sqrt(xx))
	t.intervalError = math.Hypot(t.intervalError, clockPace*t.interval)
}

const (
	// z90 is where 5 % of a normal distribution lie above.
	z90 = 1.645
	// stampError is what a stamp is off by, in ns, and clockPace how far two clocks'
	// paces differ in 90 % of pairs (both measured on hosts).
	stampError = 1000
	clockPace  = 4.5e-5
)

// measures of what came in an interval. They are the same where nothing is lost and
// nobody shares the limiter: packets that came; those and what was lost of them behind
// the limiter; packet times from the first to the last, with those of others between.
const (
	came = iota
	numbered
	slotted
	measures
)

// measure is what came in a burst.
func (r run) measure(i int, quantum, loss float64) (m [measures]float64) {
	b := r.bursts[i]
	m[came] = float64(b.count())
	m[numbered] = float64(r.v.n[r.bursts[i+1].from] - r.v.n[b.from])
	if most := m[came]*(1+3*loss) + 3; loss < someLoss || m[numbered] < m[came] || m[numbered] > most {
		// Reordered, or a queue overflowed.
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
	// someLoss is what a path loses before it matters.
	someLoss = 0.003
	// steadier is how much less a measure must vary to be the right one.
	steadier = 0.75
)

// count finds delta. The tokens of an interval are always as many, so that measure is
// right that varies least. Where that does not tell whether packets were lost before
// the limiter or behind it, delta is between.
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
	var off [measures]float64 // of one interval
	for j := range off {
		off[j] = 0.5
		if len(each[j]) >= leastTicks {
			_, sd := spread(each[j])
			off[j] = math.Max(sd, leastSpread)
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
		return math.Hypot(off[best]*t.total[best]/math.Pow(t.intervals, 1.5), 0.3/t.intervals)
	}
	t.packets, t.packetsError = all.total[best]/all.intervals, z90*error(all)
	if best != slotted {
		var parts []part
		for _, one := range tallies {
			parts = append(parts, part{one.p, one.total[best] / one.intervals, error(one)})
		}
		if more, sd := everything(parts); more > t.packets {
			t.packets, t.packetsError = more, math.Hypot(z90*sd, (more-t.packets)/4)
		}
	}
	if best == came && loss > someLoss && off[came] < off[numbered]/steadier {
		// It may have been lost behind.
		t.packets /= 1 - loss/2
		t.packetsError = math.Hypot(t.packetsError, t.packets*loss/2)
	}
}

// leastSpread: a delta that is no whole number comes as two in turn.
const leastSpread = 0.3

// quantum is a packet's time inside bursts.
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

// result are the limiter's parameters.
func (t *ticking) result() *Ticks {
	interval := within(t.interval, t.intervalError)
	packets := within(t.packets, t.packetsError)
	tokens := within(t.packets*t.frame, t.packetsError*t.frame)
	rate := tokens.Value * 8e9 / t.interval
	return &Ticks{
		Interval: interval, Packets: packets, Tokens: tokens,
		Rate: within(rate, rate*math.Hypot(t.packetsError/t.packets, t.intervalError/t.interval)),
		Seen: t.seen,
	}
}

func within(value, off float64) probe.Estimate {
	return probe.Estimate{Value: value, Low: math.Max(value-off, 0), High: value + off}
}
