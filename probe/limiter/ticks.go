package limiter

import (
	"math"

	"headgate.dev/headgate/probe"
)

// ticking is the pattern of a Xen-like limiter in a train: bursts that begin at multiples
// of one interval.
type ticking struct {
	interval, intervalError float64 // ns
	packets, packetsError   float64
	frame                   float64
	seen                    int     // intervals
	fit                     float64 // fraction of the differences that are multiples of the interval
}

const (
	// regular is the maximum deviation of a burst from its tick, as a fraction of the
	// interval; cross traffic and timestamp errors add offTick.
	regular = 0.06
	offTick = 30e3 // ns
	// maxMissed is the maximum number of empty intervals in a row.
	maxMissed = 4
	// minTicks is the minimum number of differences between bursts for a pattern.
	minTicks = 3
	// fits is the minimum fraction of the differences that are multiples of the interval;
	// fitsFew if there are fewer than fewTicks. A late burst affects two differences.
	fits, fitsFew = 0.6, 0.8
	fewTicks      = 6
	// minInterval is the shortest interval in ns. Shorter ones are those at which a receiver or a virtual link looks for packets, or the distance of the
	// packets behind a slow link, some of which come late: over shapers of 30 and 120 Mbit/s, 12 of 72 measurements had a pattern of 0.22 to 0.48 ms,
	// most with the rate of the port and not of the shaper (bench loop). The tokens of Xen last for 10 ms and more.
	minInterval = 0.8e6
)

// run is the bursts of one train that began at a tick: all but the first.
type run struct {
	v      *trainView
	bursts []burst
}

func (r run) start(i int) float64 { return r.v.at[r.bursts[i].from] }

// ticks looks for (T, delta) in trains of full-size packets. The first burst of a train
// begins at any time, and the last one is cut off.
func ticks(runs []run, loss, link float64) (ticking, bool) {
	var differences []float64
	for _, r := range runs {
		for i := 1; i < len(r.bursts); i++ {
			differences = append(differences, r.start(i)-r.start(i-1))
		}
	}
	if len(differences) < minTicks {
		return ticking{}, false
	}
	t := ticking{}
	for _, candidate := range differences {
		// Use the mean of similar differences: a single one has the error of two ticks
		// with cross traffic.
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
	return t, t.seen >= minTicks && t.interval >= minInterval
}

// multiple returns how many intervals d is, or 0 if d is not close to a multiple.
func multiple(d, interval float64) int {
	k := math.Round(d / interval)
	if k < 1 || k > maxMissed || math.Abs(d-k*interval) > regular*interval+offTick {
		return 0
	}
	return int(k)
}

// refine fits the begins of the bursts to ticks by least squares. Each train has its own
// phase.
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
	// z90 is the 95 % quantile of the normal distribution.
	z90 = 1.645
	// stampError is the error of a timestamp, in ns. clockPace is the relative difference
	// between the rates of two clocks that 90 % of pairs do not exceed (both measured on
	// hosts).
	stampError = 1000
	clockPace  = 4.5e-5
)

// result returns the parameters of the limiter.
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
