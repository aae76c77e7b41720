package probing

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/limiter"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/probe/tokenrate"
	"headgate.dev/headgate/unit"
)

// truth is what is true of a path, in bit/s and bytes. NaN is what has no value, and what is not judged.
type truth struct {
	capacity, rate, bucket, available float64
	// limits are those that show after more bytes than the first, whose rate is the one until then: an answer says for how many bytes its rate was held.
	limits []link.Bucket
	// classes are those that are right.
	classes []limiter.Class
}

// faults names what an answer says that is not true: a value outside its own 99 % interval, a bound that does not hold, a class of which it is sure.
func (t truth) faults(a path.Answer) (out []string) {
	judge := func(what string, e *probe.Estimate, is float64) {
		if e == nil || !e.Known() || math.IsNaN(is) {
			return
		}
		switch low, high := e.Widened(); {
		case !isWrong(*e, is, roundOff):
		case e.AtLeast:
			out = append(out, fmt.Sprintf("%s at least %.4g, is %.4g", what, e.Value, is))
		default:
			out = append(out, fmt.Sprintf("%s %.4g (%.4g to %.4g), is %.4g", what, e.Value, low, high, is))
		}
	}
	judge("capacity", a.Capacity, t.capacity)
	if r := a.TokenRate; r != nil {
		judge("token rate", &r.Rate, t.rateFor(*r))
		judge("bucket", &r.Bucket, t.bucket)
	}
	if v := a.Available; v != nil {
		is := t.available
		switch {
		case t.limits == nil || a.TokenRate == nil:
		case a.TokenRate.Rate.Carried():
			is = t.rateFor(tokenrate.Result{Rate: v.Available, Held: v.Held})
		default:
			is = t.rateFor(*a.TokenRate) // that of the time of the measurement
		}
		judge("available", &v.Available, is)
	}
	if l := a.Limiter; l != nil && t.classes != nil && t.isWrongClass(*l) {
		out = append(out, fmt.Sprintf("limiter %s (%.2f), is %v", l.Class, l.Confidence, t.classes))
	}
	return out
}

// isWrong reports whether a known value is outside its own 99 % interval, or a bound does not hold. slack is the part that the truth may be off.
func isWrong(e probe.Estimate, is, slack float64) bool {
	if e.AtLeast {
		return e.Value > is*(1+slack)
	}
	low, high := e.Widened()
	return is < low*(1-slack) || is > high*(1+slack)
}

// isWrongClass reports whether a limiter type is wrong, and stated with a confidence that allows no mistake.
func (t truth) isWrongClass(l limiter.Result) bool {
	return l.Cannot == "" && l.Confidence > sure && !slices.Contains(t.classes, l.Class)
}

// rateFor returns the rate of a transfer of the bytes for which an answer says that its rate was held: that of the limits which do not outlast it.
func (t truth) rateFor(r tokenrate.Result) float64 {
	if l, ok := t.limitFor(r); ok {
		return float64(l.Rate)
	} else if len(t.limits) > 0 && r.Held > 0 {
		return math.Inf(1)
	}
	return t.rate
}

// limitFor returns the least of the limits that do not outlast the bytes for which an answer says that its rate was held, or that the answer's own interval holds.
func (t truth) limitFor(r tokenrate.Result) (least link.Bucket, ok bool) {
	if !r.Rate.Known() || r.Held == 0 {
		return least, false
	}
	low, high := r.Rate.Widened()
	for _, l := range t.limits {
		is := float64(l.Rate)
		if over := 1 - is/r.Rate.Value; (over <= 0 || !r.Rate.AtLeast && (over <= 0.01 || low <= is && is <= high) || float64(l.Size)/over <= float64(r.Held)) && (!ok || l.Rate < least.Rate) {
			least, ok = l, true
		}
	}
	return least, ok
}

// sure is the confidence above which a wrong class is a fault, and roundOff the part that a value may be off without one: packets are whole.
const sure, roundOff = 0.9, 0.002

// kind is one of the ten kinds of links on which the probe was found wrong.
type kind struct {
	name  string
	hops  []link.Spec
	truth truth
}

// namedKinds are those of the table of the issue.
func namedKinds() []kind {
	const mbit, gbit, kB, MB = 1e6, 1e9, 1e3, 1e6
	none := math.NaN()
	hop := func(rate float64, change func(*link.Spec)) link.Spec {
		s := link.Spec{Rate: unit.Rate(rate), Delay: 5 * time.Millisecond, Queue: link.Amount{Time: 100 * time.Millisecond}}
		if change != nil {
			change(&s)
		}
		return s
	}
	bucket := func(rate, size float64, queue int) func(*link.Spec) {
		return func(s *link.Spec) {
			s.Bucket = &link.Bucket{Rate: unit.Rate(rate), Size: unit.Bytes(size)}
			if queue > 0 {
				s.Queue = link.Amount{Segments: queue}
			}
		}
	}
	policer := func(rate, size float64) func(*link.Spec) {
		return func(s *link.Spec) {
			s.Bucket = &link.Bucket{Rate: unit.Rate(rate), Size: unit.Bytes(size), Police: true}
		}
	}
	shaper := func(c, rate, size float64) truth {
		return truth{c, rate, size, rate, nil, []limiter.Class{limiter.TBF}}
	}
	series := func(first, second, b1, b2 float64) []link.Spec {
		return []link.Spec{hop(gbit, bucket(first, b1, 0)), hop(gbit, bucket(second, b2, 0))}
	}
	free := func(c float64) truth { return truth{c, none, none, c, nil, []limiter.Class{limiter.None}} }
	var kinds []kind
	add := func(name string, t truth, hops ...link.Spec) { kinds = append(kinds, kind{name, hops, t}) }

	add("short-queue/large-bucket", shaper(gbit, 20*mbit, 500*kB), hop(gbit, bucket(20*mbit, 500*kB, 50)))
	add("short-queue/64", shaper(gbit, 100*mbit, 100*kB), hop(gbit, bucket(100*mbit, 100*kB, 64)))
	add("short-queue/20", shaper(gbit, 37*mbit, 3*kB), hop(gbit, bucket(37*mbit, 3*kB, 20)))
	for _, s := range [][4]float64{{300, 250, 20, 800}, {250, 300, 800, 20}, {260, 250, 30, 30}, {400, 250, 30, 30}, {600, 250, 30, 30}} {
		hops := series(s[0]*mbit, s[1]*mbit, s[2]*kB, s[3]*kB)
		least := truth{gbit, 250 * mbit, none, 250 * mbit, []link.Bucket{*hops[0].Bucket, *hops[1].Bucket}, []limiter.Class{limiter.TBF}}
		add(fmt.Sprintf("series/%.0f-%.0f", s[0], s[1]), least, hops...)
	}
	add("decay/200-to-100", shaper(200*mbit, 50*mbit, none), hop(gbit, func(s *link.Spec) {
		s.Bucket = &link.Bucket{Rate: 50e6, Size: 2e6, Peak: 200e6, PeakLow: 100e6}
	}))
	add("decay/1000-to-600", shaper(gbit, 65*mbit, none), hop(gbit, func(s *link.Spec) {
		s.Bucket = &link.Bucket{Rate: 65e6, Size: 12.5e6, Peak: 1000e6, PeakLow: 600e6}
	}))
	add("docsis", truth{60 * mbit, 35 * mbit, none, 35 * mbit, nil, []limiter.Class{limiter.TBF}}, hop(gbit, func(s *link.Spec) {
		s.Queue = link.Amount{Time: 250 * time.Millisecond}
		s.Bucket = &link.Bucket{Rate: 35e6, Size: 200e3, Peak: 60e6}
		s.Suspension = &link.Suspension{Packets: 16, Time: 2 * time.Millisecond}
	}))
	add("wifi", truth{600 * mbit, none, none, none, nil, []limiter.Class{limiter.Scheduling, limiter.None}}, hop(600*mbit, func(s *link.Spec) {
		s.Queue, s.Jitter = link.Amount{Time: 60 * time.Millisecond}, link.Jitter{Amount: time.Millisecond}
		s.Active = &link.Active{On: 2 * time.Millisecond, Off: 1500 * time.Microsecond}
	}))
	add("reordering", free(gbit), hop(gbit, func(s *link.Spec) { s.Jitter = link.Jitter{Amount: 500 * time.Microsecond, Reorder: true} }))
	add("available/400", shaper(gbit, 400*mbit, 500*kB), hop(gbit, bucket(400*mbit, 500*kB, 50)))
	add("available/930", shaper(gbit, 930*mbit, 50*kB), hop(gbit, bucket(930*mbit, 50*kB, 0)))
	add("policer/100", truth{gbit, 100 * mbit, none, 100 * mbit, nil, []limiter.Class{limiter.Policer}}, hop(gbit, policer(100*mbit, 4*kB)))
	add("policer/150", truth{gbit, 150 * mbit, none, 150 * mbit, nil, []limiter.Class{limiter.Policer}}, hop(gbit, policer(150*mbit, 20*kB)))
	add("ten-gigabit", truth{10 * gbit, none, none, 6 * gbit, nil, nil}, hop(10*gbit, func(s *link.Spec) {
		s.Cross = []link.Cross{{Load: 4e9, Sizes: []int{1514}}}
		s.Suspension = &link.Suspension{Packets: 200, Time: time.Millisecond}
	}))
	return kinds
}

// namedRuns is how often each kind is measured.
const namedRuns = 20

func namedCase(d *bench.Draw) bench.Case {
	var claims []bench.Claim
	for _, k := range namedKinds() {
		claims = append(claims, bench.NewClaim("named/"+k.name, "runs without a value outside its own 99 % interval, a false bound, or a wrong class above 0.9", namedRight))
	}
	return bench.Case{
		Name: "named", Claims: claims,
		Takes: func(quick bool) time.Duration { return bench.Pick(quick, 20*time.Second, time.Minute) },
		Drawn: "the ten kinds of links of the issue, in the simulator, by the method of `headgate probe path`; hosts' clocks and processors are drawn",
		Run:   func(ctx context.Context, r *bench.Run) error { return runNamed(ctx, r, d) },
	}
}

func runNamed(ctx context.Context, r *bench.Run, d *bench.Draw) error {
	kinds, runs := namedKinds(), bench.Pick(r.Quick, 4, namedRuns)
	answers := make([]path.Answer, len(kinds)*runs)
	onAll(ctx, len(answers), func(i int) {
		p := ends(d.For(fmt.Sprintf("named/%d", i)))
		p.Hops = kinds[i/runs].hops
		answers[i] = measured(p, d.Seed()+uint64(i), path.Method{Parts: path.AllParts})
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	sheet := r.Sheet(bench.Ours)
	for k, kind := range kinds {
		id, right := "named/"+kind.name, 0
		var wrong []string
		for _, a := range answers[k*runs : (k+1)*runs] {
			if f := kind.truth.faults(a); f != nil {
				wrong = append(wrong, f[0])
			} else {
				right++
			}
		}
		sheet.Set(id, 100*float64(right)/float64(runs))
		if len(wrong) > 0 {
			sheet.Note(id, "%d wrong, such as: %s", len(wrong), wrong[0])
		}
	}
	return nil
}

// measured is the answer of the command's own method over a simulated path.
func measured(p sim.Path, seed uint64, m path.Method) path.Answer {
	samples, _, _ := simulate(p, seed, m.Next)
	return m.Estimate(samples)
}
