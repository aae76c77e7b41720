package probing

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/available"
	"headgate.dev/headgate/probe/limiter"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/unit"
)

// adversarial is a path that is drawn from all that links do, and what is true of it.
type adversarial struct {
	sim.Path
	truth
	// canTell has the estimators whose value some method could find with the bytes of this one: the oracle of the row "useful".
	canTell map[string]bool
	// cross is the rate of the others' traffic of each hop, in bit/s.
	cross []float64
	// vague: a burst of a few packets may have another rate than the narrow link, because of a peak rate that falls with the tokens of a small bucket, or of a
	// receiver that takes packets in batches more slowly than the link brings them.
	vague bool
}

// leastQueue is the shortest queue, in full packets.
const leastQueue = 16

// fewPackets are the bytes of a burst that measures the capacity.
const fewPackets = 100e3

// Estimators of the rows "wrong", "useful" and "calibration".
const (
	ofCapacity, ofTokenRate, ofClass, ofAvailable = "capacity", "token-rate", "class", "available"
)

var estimators = []string{ofCapacity, ofTokenRate, ofClass, ofAvailable}

// oracleBytes returns what a method may send for the token rate on a path: half of the bytes of a measurement, which are 5 MB, and on slow links those of the row "slow".
func oracleBytes(capacity float64) float64 {
	if capacity <= 10e6 {
		return slowBytes.Value * 1e3 / 2
	}
	return spentBytes.Value * 1e6 / 2
}

// drawAdversarial draws hops 1 to mostHops, limiters 0 to 3, queues of 16 packets to 1 s, decay, gifts, groups, loss of 0 to 3 %, jitter, reordering, and cross
// traffic of 0 to 90 %, at 1 Mbit/s to fastest.
func drawAdversarial(d *bench.Draw, mostHops int, fastest float64) adversarial {
	a := adversarial{Path: ends(d), canTell: map[string]bool{ofCapacity: true, ofAvailable: true}}
	hops, speed, cross := d.Int(1, mostHops), d.Log(1e6, fastest), max(d.Uniform(-0.45, 0.9), 0)
	narrow, limiters := d.Int(0, hops-1), min(d.Int(0, 3), hops)
	for i := range hops {
		rate := speed
		if i != narrow {
			rate *= d.Uniform(1, 4)
		}
		a.Hops = append(a.Hops, link.Spec{Rate: unit.Rate(rate), Delay: d.Duration(100*time.Microsecond, 10*time.Millisecond)})
	}
	a.capacity, a.rate, a.bucket, a.available = speed, math.NaN(), math.NaN(), math.Inf(1)
	a.classes = []limiter.Class{limiter.None}
	least, drained := math.Inf(1), 0.
	at := make([]int, hops)
	for i := range at {
		at[i] = i
	}
	d.Shuffle(hops, func(i, j int) { at[i], at[j] = at[j], at[i] })
	for _, i := range at[:limiters] {
		h := &a.Hops[i]
		r, size := d.Uniform(0.03, 0.97)*speed, d.Log(1600, 4e6)
		b := &link.Bucket{Rate: unit.Rate(r), Size: unit.Bytes(size), Police: d.Uniform(0, 1) < 0.3}
		exact := true
		if !b.Police && d.Uniform(0, 1) < 0.2 { // PowerBoost
			b.Peak, b.PeakLow, exact = unit.Rate(speed), unit.Rate(d.Uniform(r, speed)), false
			a.vague = a.vague || size < fewPackets
		}
		if d.Uniform(0, 1) < 0.1 { // a gift
			b.Gift, b.GiftEvery, exact = unit.Bytes(d.Log(1e5, 5e6)), 20*time.Second, false
		}
		h.Bucket = b
		long := *b
		long.Size += b.Gift
		a.limits = append(a.limits, long)
		if r < least {
			least, a.rate, a.bucket = r, r, math.NaN()
			if exact && limiters == 1 {
				a.bucket = size
			}
			a.classes = []limiter.Class{bench.Pick(b.Police, limiter.Policer, limiter.TBF)}
			drained = size + float64(b.Gift)
		}
	}
	for i := range a.Hops {
		h := &a.Hops[i]
		if d.Uniform(0, 1) < 0.4 {
			h.Queue = link.Amount{Segments: int(d.Log(leastQueue, 1000))}
		} else {
			h.Queue = link.Amount{Time: max(d.Duration(5*time.Millisecond, time.Second), time.Duration(leastQueue*1514*8e9/float64(h.Slowest())))}
		}
		switch what := d.Uniform(0, 1); {
		case what < 0.1:
			h.RED = &link.RED{Profile: link.Profile{Min: link.Amount{Time: 5 * time.Millisecond}, Max: link.Amount{Time: 50 * time.Millisecond}, Probability: 0.1}}
		case what < 0.2:
			h.CoDel = &link.CoDel{}
		}
		carries := float64(h.Slowest())
		load := cross * d.Uniform(0.3, 1)
		h.Cross = crossOf(d, load*carries)
		a.cross = append(a.cross, load*carries)
		a.available = math.Min(a.available, carries*(1-load))
	}
	last := &a.Hops[hops-1]
	rough := false
	switch what := d.Uniform(0, 1); {
	case what < 0.15:
		last.Suspension, rough = &link.Suspension{Packets: int(d.Log(8, 500)), Time: d.Duration(200*time.Microsecond, 5*time.Millisecond)}, true
		if takes := float64(last.Suspension.Packets) * 1514 * 8 / last.Suspension.Time.Seconds(); takes < a.available {
			a.available = math.NaN() // a train that is shorter than a batch has more than long ones
			a.vague = true           // as a burst has
		}
	case what < 0.3:
		last.Jitter, rough = link.Jitter{Amount: d.Duration(20*time.Microsecond, 2*time.Millisecond), Reorder: d.Uniform(0, 1) < 0.5}, true
	}
	if d.Uniform(0, 1) < 0.3 {
		last.Loss = link.Loss{Probability: d.Uniform(0, 0.03)}
	}
	if rough {
		a.classes = append(a.classes, limiter.Scheduling, limiter.Xen)
	}
	a.canTell[ofTokenRate] = !math.IsNaN(a.rate) && drained/(1-a.rate/speed) < oracleBytes(speed) && !rough && cross < 0.5
	a.canTell[ofClass] = math.IsNaN(a.rate) || a.canTell[ofTokenRate]
	a.tellsRough(last, speed)
	return a
}

// tellsRough takes out what no train can show because the delays of the last link vary for longer than it lasts. A train at the capacity ends where a bucket is empty.
func (a *adversarial) tellsRough(last *link.Spec, speed float64) {
	varies := last.Jitter.Amount.Seconds()
	if last.Suspension != nil {
		varies = last.Suspension.Time.Seconds()
	}
	burst := spentBytes.Value * 1e6
	for _, l := range a.limits {
		burst = math.Min(burst, float64(l.Size))
	}
	if burst*8/speed < outlasts*varies {
		a.canTell[ofCapacity] = false
	}
	if spentBytes.Value*8e6/a.available < outlasts*varies {
		a.canTell[ofAvailable] = false
	}
}

// outlasts is how much longer than the variation of delays a train is that shows a rate.
const outlasts = 4

// verdict is what an answer is worth on one path, for one estimator.
type verdict struct {
	answered, wrong, covered bool
	// judged: the truth is known. bound: the answer is only a bound. tells: it says something of use, which a bound below half of the true value does not.
	judged, bound, tells bool
	// confidence is the stated one of a class, and right whether it is a true one.
	confidence float64
	right      bool
}

func (a adversarial) verdicts(got path.Answer) map[string]verdict {
	out := map[string]verdict{}
	value := func(name string, e *probe.Estimate, is float64, slack float64) {
		if e == nil || !e.Known() {
			out[name] = verdict{}
			return
		}
		if math.IsNaN(is) { // there is no limit: any value is wrong that is not a bound
			out[name] = verdict{answered: true, judged: true, bound: e.AtLeast, tells: true, wrong: e.AtLeast && e.Value > a.capacity*(1+slack) || !e.AtLeast && e.Value < a.capacity*(1-slack)}
			return
		}
		out[name] = verdict{answered: true, judged: true, bound: e.AtLeast, tells: !e.AtLeast || e.Value >= is/2, wrong: isWrong(*e, is, slack), covered: e.AtLeast || e.Low*(1-roundOff) <= is && is <= e.High*(1+roundOff)}
	}
	if a.vague {
		out[ofCapacity] = verdict{answered: got.Capacity.Known(), tells: true}
	} else {
		value(ofCapacity, got.Capacity, a.capacity, roundOff)
	}
	if r := got.TokenRate; r != nil {
		value(ofTokenRate, &r.Rate, a.rateFor(*r), roundOff)
	}
	if v := got.Available; v != nil {
		if is := a.availableFor(v); math.IsNaN(is) {
			out[ofAvailable] = verdict{answered: v.Available.Known(), tells: true}
		} else {
			value(ofAvailable, &v.Available, is, 0.1)
		}
	}
	if l := got.Limiter; l != nil {
		is := a.truth
		if r := got.TokenRate; r != nil {
			if least, ok := a.limitFor(*r); ok {
				is.classes = append([]limiter.Class{bench.Pick(least.Police, limiter.Policer, limiter.TBF)}, a.classes[1:]...)
			}
		}
		if l.Class == limiter.None && l.Held > 0 && !a.limitedWithin(float64(l.Held)) {
			is.classes = append([]limiter.Class{limiter.None}, a.classes[1:]...)
		}
		tells := l.Confidence >= 0.5 && (l.Class != limiter.None || !a.limitedWithin(oracleBytes(a.capacity)))
		out[ofClass] = verdict{answered: l.Cannot == "", judged: true, tells: tells, wrong: is.isWrongClass(*l), confidence: l.Confidence, right: slices.Contains(is.classes, l.Class)}
	}
	return out
}

// limitedWithin reports whether a train of some bytes at the capacity empties the bucket of a limiter, beside the others' traffic.
func (a adversarial) limitedWithin(bytes float64) bool {
	for i, h := range a.Hops {
		if b := h.Bucket; b != nil && float64(b.Size+b.Gift) <= bytes*(1-(float64(b.Rate)-a.cross[i])/a.capacity) {
			return true
		}
	}
	return false
}

// realisedTo is the rate of a path up to which the others' traffic of the measurement's own time counts: in that of a faster one there are so many packets that it
// is the mean.
const realisedTo = 1e9

// measure measures the path in the simulator. The available bandwidth is then what the others' traffic left while the trains for it were sent.
func (a *adversarial) measure(seed uint64) path.Answer {
	n, m := sim.New(a.Path, seed), path.Method{Parts: path.AllParts}
	records := false
	samples := sendAll(n, func(seen []probe.Sample) (probe.Train, bool) {
		t, ok := m.Next(seen)
		if ok && !records && a.capacity <= realisedTo && (strings.HasPrefix(t.Purpose, "available/") || strings.HasPrefix(t.Purpose, "pass/")) {
			n.Record()
			records = true
		}
		return t, ok
	})
	if records {
		a.realise(n.RealisedHops())
	}
	return m.Estimate(samples)
}

// realise replaces the mean of the others' traffic by what there was.
func (a *adversarial) realise(left []unit.Rate) {
	lowest := math.Inf(1)
	for i, h := range a.Hops {
		if left[i] < unit.MaxRate {
			a.cross[i] = float64(h.Slowest() - left[i])
		}
		lowest = math.Min(lowest, float64(h.Slowest())-a.cross[i])
	}
	if !math.IsNaN(a.available) {
		a.available = lowest
	}
}

// availableFor returns the available bandwidth for a transfer of the bytes for which an answer says that it was held. A limiter whose bucket outlasts these bytes,
// beside the others' traffic, does not slow such a transfer if the bucket is full, and does if it is empty: of the values between these two it returns the one
// next to the answer. An answer that names no bytes is held against all limiters. It returns NaN if the value is not known.
func (a adversarial) availableFor(v *available.Result) float64 {
	if !v.Available.Known() || math.IsNaN(a.available) || v.Held == 0 || v.Available.Value <= 0 {
		return a.available
	}
	is := math.Inf(1)
	for i, h := range a.Hops {
		cross, carries := a.cross[i], float64(h.Rate)
		if b := h.Bucket; b != nil {
			spent := (1 - (float64(b.Rate)-cross)/v.Available.Value) * float64(v.Held)
			switch {
			case spent >= float64(b.Size+b.Gift):
				carries = math.Min(carries, float64(h.Slowest()))
			case b.Peak > 0: // what is spent of the bucket lowers the rate
				full := 1 - math.Max(spent, 0)/float64(b.Size)
				carries = math.Min(carries, float64(b.PeakLow)+math.Max(full, 0)*float64(b.Peak-b.PeakLow))
			}
		}
		is = math.Min(is, carries-cross)
	}
	return min(max(v.Available.Value, a.available), is)
}

// adversarialClaims are those of the rows "wrong", "useful" and "calibration" for drawn paths, in the simulator or in the lab.
func adversarialClaims(where string) (claims []bench.Claim) {
	for _, e := range estimators {
		claims = append(claims, bench.NewClaim("wrong/"+where+"/"+e, "answers outside their own 99 % interval, false bounds, wrong classes above 0.9", wrongAnswers))
	}
	for _, e := range estimators {
		claims = append(claims, bench.NewClaim("useful/"+where+"/"+e, "answers, of the paths where a method with the same bytes could answer", bench.Target{Op: ">=", Value: bench.Pick(e == ofCapacity, 95., 90.), Unit: "%"}))
	}
	for _, e := range []string{ofCapacity, ofTokenRate, ofAvailable} {
		claims = append(claims,
			bench.NewClaim("calibration/"+where+"/"+e+"/covers-at-least", "90 % intervals that hold the true value", minCovers),
			bench.NewClaim("calibration/"+where+"/"+e+"/covers-at-most", "90 % intervals that hold the true value", maxCovers))
	}
	return append(claims, bench.NewClaim("calibration/"+where+"/class", "largest difference of stated confidence and outcomes, over the tenths with 20 answers", calibrated))
}

const adversarialDrawn = "0 to 3 limiters in series of which 30 % police, 20 % decay and 10 % have gifts, queues of 16 packets to 1 s with tail drop, RED or CoDel, receivers in groups, jitter, reordering, loss of 0 to 3 %, cross traffic of 0 to 90 %"

func adversarialCase(d *bench.Draw) bench.Case {
	return bench.Case{
		Name: "wrong/simulated", Claims: adversarialClaims("simulated"),
		Takes: func(quick bool) time.Duration { return bench.Pick(quick, 40*time.Second, 10*time.Minute) },
		Drawn: "1 to 5 hops, " + adversarialDrawn + ", 1 Mbit/s to 40 Gbit/s",
		Run: func(ctx context.Context, r *bench.Run) error {
			n := bench.Pick(r.Quick, 60, 2000)
			paths, all := make([]adversarial, n), make([]map[string]verdict, n)
			onAll(ctx, n, func(i int) {
				paths[i] = drawAdversarial(d.For(fmt.Sprintf("adversarial/%d", i)), 5, 40e9)
				all[i] = paths[i].verdicts(paths[i].measure(d.Seed() + uint64(i)))
			})
			if ctx.Err() != nil {
				return ctx.Err()
			}
			setAdversarial(r.Sheet(bench.Ours), "simulated", paths, all)
			return nil
		},
	}
}

// setAdversarial sets the claims of drawn paths, given the verdicts on their answers.
func setAdversarial(sheet *bench.Sheet, where string, paths []adversarial, all []map[string]verdict) {
	for _, e := range estimators {
		var answers, wrong, wrongs, could, useful, intervals, covered, bounds, sures float64
		for i, v := range all {
			o := v[e]
			if o.answered && o.judged {
				answers++
				wrong += float64(bench.Pick(o.wrong, 1, 0))
				if o.confidence > sure {
					sures++
				}
				if !o.bound {
					wrongs += float64(bench.Pick(o.wrong, 1, 0))
					intervals++
					covered += float64(bench.Pick(o.covered, 1, 0))
				}
			}
			if paths[i].canTell[e] {
				could++
				useful += float64(bench.Pick(o.answered && o.tells, 1, 0))
				bounds += float64(bench.Pick(o.answered && o.tells && o.bound, 1, 0))
			}
		}
		sheet.Set("wrong/"+where+"/"+e, 100*wrong/max(answers, 1))
		sheet.Note("wrong/"+where+"/"+e, "%.0f of %.0f answers, on %d paths", wrong, answers, len(all))
		if e == ofClass {
			sheet.Note("wrong/"+where+"/"+e, "%.0f answers have a confidence above %.1f", sures, sure)
		} else {
			sheet.Note("wrong/"+where+"/"+e, "%.0f of the %.0f that are no bounds", wrongs, intervals)
		}
		sheet.Set("useful/"+where+"/"+e, 100*useful/max(could, 1))
		if e != ofClass {
			sheet.Note("useful/"+where+"/"+e, "of these %.0f are bounds; a bound below half of the true value does not count", bounds)
			sheet.Set("calibration/"+where+"/"+e+"/covers-at-least", 100*covered/max(intervals, 1))
			sheet.Set("calibration/"+where+"/"+e+"/covers-at-most", 100*covered/max(intervals, 1))
		}
	}
	tenths := map[int][]verdict{}
	for _, v := range all {
		if o := v[ofClass]; o.answered {
			tenth := min(int(o.confidence*10), 9)
			tenths[tenth] = append(tenths[tenth], o)
		}
	}
	worst := 0.
	for _, tenth := range slices.SortedFunc(maps.Keys(tenths), cmp.Compare) {
		var said, right float64
		for _, o := range tenths[tenth] {
			said, right = said+o.confidence, right+float64(bench.Pick(o.right, 1, 0))
		}
		count := float64(len(tenths[tenth]))
		off := 100 * math.Abs(said-right) / count
		sheet.Note("calibration/"+where+"/class", "confidence %.2f: right in %.2f of %.0f", said/count, right/count, count)
		if count >= 20 {
			worst = max(worst, off)
		}
	}
	sheet.Set("calibration/"+where+"/class", worst)
}
