package probing

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/limiter"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/unit"
)

// limited is a path with one kind of limiter, and its parameters; a parameter of another kind is NaN.
type limited struct {
	sim.Path
	class           limiter.Class
	interval, delta float64 // ns and bytes, for a Xen-like limiter
}

var limiterClasses = []limiter.Class{limiter.TBF, limiter.Xen, limiter.Scheduling, limiter.Policer, limiter.CPU, limiter.None}

// drawLimited draws a path with a limiter of a class. The limiter is effective: it passes at most
// three quarters of the available bandwidth of each link.
func drawLimited(d *bench.Draw, class limiter.Class) limited {
	for {
		if l, ok := tryLimited(d, class); ok {
			return l
		}
	}
}

func tryLimited(d *bench.Draw, class limiter.Class) (limited, bool) {
	l := limited{Path: ends(d), class: class}
	hops, cross, left := d.Int(1, 3), max(d.Uniform(-0.25, 0.5), 0), math.Inf(1)
	for range hops {
		c := bench.OneOf(d, 1e9, 2.5e9, 10e9)
		l.Hops = append(l.Hops, link.Spec{
			Rate: unit.Rate(c), Delay: d.Duration(50*time.Microsecond, 10*time.Millisecond),
			Queue: link.Amount{Time: d.Duration(20*time.Millisecond, 500*time.Millisecond)}, Cross: crossOf(d, cross*c),
		})
		left = min(left, c*(1-cross))
	}
	at := &l.Hops[d.Int(0, hops-1)]
	limit := func(rate float64) bool {
		at.Cross = crossOf(d, cross*rate)
		return rate <= 0.75*left
	}
	switch class {
	case limiter.TBF:
		b := &link.Bucket{Rate: d.Rate(50*unit.Mbit, 2*unit.Gbit), Size: unit.Bytes(d.Log(1600, 1e6))}
		at.Bucket = b
		return l, limit(float64(b.Rate)) && float64(b.Size) < 1.2e6*(1-float64(b.Rate)/left)
	case limiter.Policer:
		b := &link.Bucket{Rate: d.Rate(20*unit.Mbit, unit.Gbit), Size: unit.Bytes(d.Log(10e3, 400e3)), Police: true}
		at.Bucket = b
		return l, limit(float64(b.Rate)) && float64(b.Size) < 1.2e6*(1-float64(b.Rate)/left)
	case limiter.Xen:
		l.interval, l.delta = d.Log(2e6, 40e6), d.Log(3, 260)*1514
		at.Xen = &link.Xen{Interval: time.Duration(l.interval), Tokens: unit.Bytes(l.delta)}
		return l, limit(l.delta * 8e9 / l.interval)
	case limiter.CPU:
		l.Work = time.Duration(1514 * 8e9 / d.Log(50e6, 700e6))
		return l, 1514*8e9/float64(l.Work) <= 0.75*left
	case limiter.Scheduling:
		on, off := d.Log(0.5e6, 20e6), d.Log(0.5e6, 100e6)
		l.Sleep = link.Active{On: time.Duration(on), Off: time.Duration(off)}
	}
	return l, true
}

func limiterCases(d *bench.Draw) []bench.Case {
	var claims []bench.Claim
	for _, c := range limiterClasses {
		claims = append(claims, bench.NewClaim("limiter/simulated/"+string(c)+"/recall", "paths of this class that are recognised", recalled))
	}
	claims = append(claims,
		bench.NewClaim("limiter/simulated/xen/T", "p90 error of T", parameterOff),
		bench.NewClaim("limiter/simulated/xen/delta", "p90 error of delta", parameterOff))
	claims = append(claims, honestClaims("limiter-T")...)
	return []bench.Case{{
		Name: "limiter/simulated", Claims: claims,
		Takes: func(quick bool) time.Duration { return bench.Pick(quick, 4*time.Second, 12*time.Second) },
		Drawn: "token buckets and policers of 20 Mbit/s to 2 Gbit/s, T of 2 to 40 ms with delta of 3 to 260 packets, senders that run for 0.5 to 20 ms and sleep for 0.5 to 100, processors of 50 to 700 Mbit/s, none; on 1 to 3 hops with queues of 20 to 500 ms and cross traffic of 0 to 50 %",
		Run:   func(ctx context.Context, r *bench.Run) error { return runLimiters(ctx, r, d) },
	}, profileCase(d)}
}

func runLimiters(ctx context.Context, r *bench.Run, d *bench.Draw) error {
	each := bench.Pick(r.Quick, 20, 100)
	n := each * len(limiterClasses)
	said := make([]limiter.Result, n)
	drawn := make([]limited, n)
	onAll(ctx, n, func(i int) {
		drawn[i] = drawLimited(d.For(fmt.Sprintf("limiter/%d", i)), limiterClasses[i%len(limiterClasses)])
		samples, _, _ := simulate(drawn[i].Path, d.Seed()+uint64(i), limiter.Detector{}.Next)
		said[i] = limiter.Detector{}.Estimate(samples)
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	sheet := r.Sheet(bench.Ours)
	var intervals, deltas pool
	for k, class := range limiterClasses {
		id := "limiter/simulated/" + string(class) + "/recall"
		right := 0
		var wrong []string
		for i := k; i < n; i += len(limiterClasses) {
			switch s := said[i]; {
			case s.Class == class:
				right++
			case s.Cannot != "":
				wrong = append(wrong, "cannot tell")
			default:
				wrong = append(wrong, string(s.Class))
			}
			if class == limiter.Xen && said[i].Ticks != nil {
				intervals = append(intervals, judge(said[i].Ticks.Interval, drawn[i].interval))
				deltas = append(deltas, judge(said[i].Ticks.Tokens, drawn[i].delta))
			}
		}
		sheet.Set(id, 100*float64(right)/float64(each))
		if len(wrong) > 0 {
			sheet.Note(id, "%d of %d; others reported: %s", right, each, strings.Join(wrong, ", "))
		}
	}
	intervals.setP90(sheet, "limiter/simulated/xen/T")
	deltas.setP90(sheet, "limiter/simulated/xen/delta")
	intervals.setHonest(sheet, "limiter-T")
	return nil
}

// profile is an instance of tables 4.2 to 4.4, with a bucket that a probe can empty within its budget;
// those of 2014 held some GB.
type profile struct {
	name            string
	path            sim.Path
	class           limiter.Class
	rate            float64 // of a token bucket
	interval, delta float64 // ns and packets
}

func profiles() []profile {
	bucket := func(c, r unit.Rate) sim.Path {
		return sim.Path{Work: 250, Noise: 700, Hops: []link.Spec{{Rate: c, Queue: endless, Bucket: &link.Bucket{Rate: r, Size: 500_000}}}}
	}
	ticks := func(packets float64) sim.Path {
		return sim.Path{Work: 250, Noise: 700, Hops: []link.Spec{{Rate: unit.Gbit, Queue: endless, Xen: &link.Xen{Interval: 15 * time.Millisecond, Tokens: unit.Bytes(packets * 1514)}}}}
	}
	return []profile{
		{"E1", bucket(unit.Gbit, 65*unit.Mbit), limiter.TBF, 65e6, 0, 0},
		{"E2", bucket(unit.Gbit, 300*unit.Mbit), limiter.TBF, 300e6, 0, 0},
		{"E3", bucket(unit.Gbit, 700*unit.Mbit), limiter.TBF, 700e6, 0, 0},
		{"G1-out", bucket(3200*unit.Mbit, 500*unit.Mbit), limiter.TBF, 500e6, 0, 0},
		{"G1-in", bucket(3200*unit.Mbit, 300*unit.Mbit), limiter.TBF, 300e6, 0, 0},
		{"G2", sim.Path{Work: 250, Noise: 700, Hops: []link.Spec{{Rate: 10 * unit.Gbit, Queue: endless}}}, limiter.None, 0, 0, 0},
		{"M1", ticks(6.5), limiter.Xen, 0, 15e6, 6.5},
		{"xen-130", ticks(130), limiter.Xen, 0, 15e6, 130},
		{"xen-260", ticks(260), limiter.Xen, 0, 15e6, 260},
		{"M2", sim.Path{Work: 12 * time.Microsecond, Noise: 700, Sleep: link.Active{On: 130 * 12 * time.Microsecond, Off: 15*time.Millisecond - 130*12*time.Microsecond}, Hops: []link.Spec{{Rate: 10 * unit.Gbit, Queue: endless}}}, limiter.Scheduling, 0, 0, 0},
	}
}

// profileCase distinguishes the instances of the tables.
func profileCase(d *bench.Draw) bench.Case {
	var claims []bench.Claim
	for _, p := range profiles() {
		id := "limiter/profile/" + p.name
		claims = append(claims, bench.NewClaim(id+"/recall", "runs with the correct limiter type", recalled))
		if p.interval > 0 {
			claims = append(claims, bench.NewClaim(id+"/T", "p90 error of T = 15 ms", parameterOff), bench.NewClaim(id+"/delta", "p90 error of delta", parameterOff))
		}
		if p.rate > 0 {
			claims = append(claims, bench.NewClaim(id+"/R", "p90 error of R", parameterOff))
		}
	}
	return bench.Case{
		Name: "limiter/profile", Claims: claims,
		Takes: func(quick bool) time.Duration { return bench.Pick(quick, time.Second, 2*time.Second) },
		Run: func(ctx context.Context, r *bench.Run) error {
			all := profiles()
			onAll(ctx, len(all), func(i int) { all[i].run(r.Sheet(bench.Ours), d.Seed(), bench.Pick(r.Quick, 5, 20)) })
			return ctx.Err()
		},
	}
}

func (p profile) run(sheet *bench.Sheet, seed uint64, times int) {
	id := "limiter/profile/" + p.name
	right := 0
	var rates, intervals, deltas pool
	for i := range times {
		samples, _, _ := simulate(p.path, seed+uint64(i), limiter.Detector{}.Next)
		s := limiter.Detector{}.Estimate(samples)
		if s.Class == p.class {
			right++
		} else {
			sheet.Note(id+"/recall", "%s%s", s.Class, s.Cannot)
		}
		none := probe.NoEstimate("another limiter type was reported")
		rate, interval, delta := none, none, none
		if s.Bucket != nil {
			rate = s.Bucket.Rate
		}
		if s.Ticks != nil {
			interval, delta = s.Ticks.Interval, s.Ticks.Packets
		}
		rates, intervals, deltas = append(rates, judge(rate, p.rate)), append(intervals, judge(interval, p.interval)), append(deltas, judge(delta, p.delta))
	}
	sheet.Set(id+"/recall", 100*float64(right)/float64(times))
	if p.interval > 0 {
		intervals.setP90(sheet, id+"/T")
		deltas.setP90(sheet, id+"/delta")
	}
	if p.rate > 0 {
		rates.setP90(sheet, id+"/R")
	}
}

// limiterLab are the lab's cells.
var limiterLabs = []struct {
	name  string
	class limiter.Class
	link  link.Spec
}{
	{"tbf", limiter.TBF, link.Spec{Bucket: &link.Bucket{Rate: 300 * unit.Mbit, Size: 50_000}}},
	{"xen-6.5", limiter.Xen, link.Spec{Xen: &link.Xen{Interval: 15 * time.Millisecond, Tokens: 9841}}},
	{"xen-130", limiter.Xen, link.Spec{Xen: &link.Xen{Interval: 15 * time.Millisecond, Tokens: 130 * 1514}}},
	{"policer", limiter.Policer, link.Spec{Bucket: &link.Bucket{Rate: 200 * unit.Mbit, Size: 100_000, Police: true}}},
	{"none", limiter.None, link.Spec{}},
	{"none-cross-40%", limiter.None, link.Spec{Cross: []link.Cross{{Load: 400 * unit.Mbit, Model: link.Pareto}}}},
}

func limiterLab() (out []bench.Case) {
	for _, c := range limiterLabs {
		id := "limiter/lab/" + c.name
		claims := []bench.Claim{bench.NewClaim(id+"/recall", "runs with the correct limiter type", recalled)}
		if c.link.Xen != nil {
			claims = append(claims, bench.NewClaim(id+"/T", "p90 error of T", parameterOff), bench.NewClaim(id+"/delta", "p90 error of delta", parameterOff))
		}
		s := c.link
		s.Rate, s.Delay, s.Queue = unit.Gbit, 5*time.Millisecond, link.Amount{Time: time.Second}
		out = append(out, bench.Case{
			Name: id, Claims: claims,
			Takes: func(quick bool) time.Duration { return bench.Pick(quick, 5*time.Second, 33*time.Second) },
			Run: func(ctx context.Context, r *bench.Run) error {
				return withServer(ctx, twoHosts(s), func(on *stage) error {
					right, all := 0, 0
					var intervals, deltas pool
					sheet := r.Sheet(bench.Ours)
					err := on.each(ctx, runsOf(r.Quick), []string{"limiter"}, func(a *path.Answer) {
						if all++; a.Limiter.Class == c.class {
							right++
						} else {
							sheet.Note(id+"/recall", "%s%s", a.Limiter.Class, a.Limiter.Cannot)
						}
						if t := a.Limiter.Ticks; t != nil && c.link.Xen != nil {
							intervals = append(intervals, judge(t.Interval, float64(c.link.Xen.Interval)))
							deltas = append(deltas, judge(t.Tokens, float64(c.link.Xen.Tokens)))
						}
					})
					if err != nil {
						return err
					}
					sheet.Set(id+"/recall", 100*float64(right)/float64(all))
					intervals.setP90(sheet, id+"/T")
					deltas.setP90(sheet, id+"/delta")
					return nil
				})
			},
		})
	}
	return out
}
