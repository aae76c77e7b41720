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
