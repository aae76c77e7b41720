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
	"headgate.dev/headgate/probe/compare"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/unit"
)

// pathComp is the dissertation's method.
const pathComp = "PathComp"

// testbed is the network of section 3.7.1: three links each, in bit/s, and a shared one of 10 Gbit/s;
// each own link has cross traffic, except for the senders' first.
func testbed(a, b [3]float64, crossA, crossB float64, d *bench.Draw) sim.Meeting {
	own := func(rates [3]float64, cross float64) sim.Path {
		p := ends(d)
		for i, r := range rates {
			hop := link.Spec{Rate: unit.Rate(r), Delay: d.Duration(50*time.Microsecond, 3*time.Millisecond), Queue: endless}
			if i > 0 {
				hop.Cross = crossOf(d, cross*r)
			}
			p.Hops = append(p.Hops, hop)
		}
		return p
	}
	m := sim.Meeting{
		Branches: []sim.Path{own(a, crossA), own(b, crossB)},
		Shared:   sim.Path{Hops: []link.Spec{{Rate: 10 * unit.Gbit, Queue: endless}}, Noise: time.Duration(d.Uniform(500, 1000))},
		Jitter:   d.Duration(20*time.Microsecond, time.Millisecond),
	}
	return m
}

// ratios is a cell: paths whose ratios' errors are pooled.
type ratios struct {
	id, what string
	target   bench.Target
	// mayAbstain: "cannot tell" is accepted as well.
	mayAbstain bool
	draw       func(d *bench.Draw) (sim.Meeting, float64)
}

// narrowA is the slower path of section 3.7.1, and its narrow link.
var narrowA = [3]float64{500e6, 200e6, 1e9}

var ratioCells = []ratios{
	{"figure-3.23a", "ratios of 2 to 8 with 30 % of cross traffic", ratioOff, false, func(d *bench.Draw) (sim.Meeting, float64) {
		r := d.Uniform(2, 8)
		return testbed(narrowA, [3]float64{1.6e9, 200e6 * r, 10e9}, 0.3, 0.3, d), r
	}},
	{"figure-3.23b", "ratios of 1 to 2 with 30 % of cross traffic", ratioOff, false, func(d *bench.Draw) (sim.Meeting, float64) {
		r := d.Uniform(1, 2)
		return testbed(narrowA, [3]float64{1e9, 200e6 * r, 1e9}, 0.3, 0.3, d), r
	}},
	{"figure-3.24a", "a ratio of 2, 10 to 60 % on the slow path, 30 % on the fast", ratioOff, false, func(d *bench.Draw) (sim.Meeting, float64) {
		return testbed(narrowA, [3]float64{1e9, 400e6, 1e9}, d.Uniform(0.1, 0.6), 0.3, d), 2
	}},
	{"figure-3.24b", "a ratio of 2, 10 to 50 % on the fast path, 30 % on the slow", ratioOff, false, func(d *bench.Draw) (sim.Meeting, float64) {
		return testbed(narrowA, [3]float64{1e9, 400e6, 1e9}, 0.3, d.Uniform(0.1, 0.5), d), 2
	}},
	{"figure-3.24b-60%", "a ratio of 2, 60 % on the fast path; only those with an estimate", ratioOffHard, true, func(d *bench.Draw) (sim.Meeting, float64) {
		return testbed(narrowA, [3]float64{1e9, 400e6, 1e9}, 0.3, 0.6, d), 2
	}},
	{"drawn-close-links", "as drawn, but cross traffic queues on a later link that is 1.2 to 2 times the narrow one", ratioOff, false, func(d *bench.Draw) (sim.Meeting, float64) {
		return drawnRatio(d, 1.2, 2)
	}},
	{"drawn", "ratios of 1 to 8, 10 to 60 % on either, last links 2 to 8 times as fast", ratioOff, false, func(d *bench.Draw) (sim.Meeting, float64) {
		return drawnRatio(d, 2, 8)
	}},
}

// drawnRatio returns two paths from the range of the targets. In the dissertation's figures a path's
// last link, with cross traffic as well, is 2.5 to 5 times as fast as the narrow one.
func drawnRatio(d *bench.Draw, low, high float64) (sim.Meeting, float64) {
	r, c := d.Log(1, 8), d.Log(50e6, 400e6)
	own := func(c float64) [3]float64 { return [3]float64{c * d.Uniform(1.2, 4), c, c * d.Uniform(low, high)} }
	return testbed(own(c), own(c*r), d.Uniform(0.1, 0.6), d.Uniform(0.1, 0.5), d), r
}

func compareCases(d *bench.Draw) (out []bench.Case) {
	for i, c := range ratioCells {
		id := "compare/simulated/" + c.id
		claims := []bench.Claim{
			bench.NewClaim(id+"/p90", "p90 error of the ratio: "+c.what, c.target, pathComp),
			bench.NewClaim(id+"/bytes", "maximum of sent bytes of each server", measuredOnly("MB"), pathComp),
		}
		last := i == len(ratioCells)-1
		if last {
			claims = append(claims, honestClaims("compare")...)
		}
		out = append(out, bench.Case{
			Name: id, Claims: claims, Drawn: c.what,
			Takes: func(quick bool) time.Duration { return bench.Pick(quick, 4*time.Second, 19*time.Second) },
			Run:   func(ctx context.Context, r *bench.Run) error { return c.run(ctx, r, d, id, last) },
		})
	}
	return append(out, equalCase(d))
}

// race runs a method over a simulated meeting.
func race(m sim.Meeting, seed uint64, step func([]probe.JointSample) (probe.Joint, bool)) (samples []probe.JointSample, bytes float64) {
	n := sim.NewJoint(m, seed)
	for range rounds {
		j, ok := step(samples)
		if !ok {
			break
		}
		samples = append(samples, n.Send(j))
		largest := 0.0
		for _, t := range j.Trains {
			largest = max(largest, float64(t.Bytes()))
		}
		bytes += largest
	}
	return samples, bytes
}

func (c ratios) run(ctx context.Context, r *bench.Run, d *bench.Draw, id string, honest bool) error {
	n := bench.Pick(r.Quick, 20, 200)
	ours, seeds := make(pool, n), make(pool, n)
	onAll(ctx, n, func(i int) {
		m, truth := c.draw(d.For(fmt.Sprintf("%s/%d", id, i)))
		samples, bytes := race(m, d.Seed()+uint64(i), compare.SmallBlocks{}.Next)
		ours[i] = judge(compare.SmallBlocks{}.Estimate(samples).Ratio, truth)
		ours[i].bytes = bytes
		if i < bench.Pick(r.Quick, 10, 60) {
			samples, bytes = race(m, d.Seed()+uint64(i), compare.PathComp{}.Next)
			seeds[i] = judge(compare.PathComp{}.Estimate(samples).Ratio, truth)
			seeds[i].bytes = bytes
		}
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	write := func(sheet *bench.Sheet, p pool) {
		judged := p
		if c.mayAbstain {
			if judged = p.answered(); len(judged) == 0 {
				sheet.Set(id+"/p90", 0)
				sheet.Note(id+"/p90", "no estimate for any of %d: %s", len(p), p.why())
			}
		}
		judged.setP90(sheet, id+"/p90")
		sheet.Set(id+"/bytes", quantile(p.each(func(o outcome) float64 { return o.bytes / 1e6 }), 1))
	}
	write(r.Sheet(bench.Ours), ours)
	write(r.Sheet(pathComp), measuredOf(seeds))
	distribution(r, "compare", "compare-"+strings.TrimSuffix(c.id, "%"), "Ratios of capacities: "+c.what, map[string]pool{bench.Ours: ours, pathComp: measuredOf(seeds)})
	if honest {
		ours.setHonest(r.Sheet(bench.Ours), "compare")
	}
	return nil
}

// equalCase: of equal paths neither may be reported as the faster one.
func equalCase(d *bench.Draw) bench.Case {
	const id = "compare/simulated/equal"
	return bench.Case{
		Name: id,
		Claims: []bench.Claim{
			bench.NewClaim(id+"/bias", "mean ratio of equal paths, deviation from 1", ratioOff, pathComp),
			bench.NewClaim(id+"/p90", "p90 error of the ratio of equal paths with 10 to 50 % of cross traffic", ratioOff, pathComp),
		},
		Takes: func(quick bool) time.Duration { return bench.Pick(quick, 4*time.Second, 19*time.Second) },
		Run: func(ctx context.Context, r *bench.Run) error {
			n := bench.Pick(r.Quick, 20, 200)
			ours, seeds := make([]probe.Estimate, n), make([]probe.Estimate, n)
			onAll(ctx, n, func(i int) {
				v := d.For(fmt.Sprintf("%s/%d", id, i))
				c := v.Log(50e6, 400e6)
				rates := [3]float64{2 * c, c, 2 * c}
				m := testbed(rates, rates, v.Uniform(0.1, 0.5), v.Uniform(0.1, 0.5), v)
				samples, _ := race(m, d.Seed()+uint64(i), compare.SmallBlocks{}.Next)
				ours[i] = compare.SmallBlocks{}.Estimate(samples).Ratio
				samples, _ = race(m, d.Seed()+uint64(i), compare.PathComp{}.Next)
				seeds[i] = compare.PathComp{}.Estimate(samples).Ratio
			})
			for by, all := range map[string][]probe.Estimate{bench.Ours: ours, pathComp: seeds} {
				var p pool
				sum, known := 0.0, 0.0
				for _, e := range all {
					p = append(p, judge(e, 1))
					if e.Known() {
						sum, known = sum+e.Value, known+1
					}
				}
				sheet := r.Sheet(by)
				if known > 0 {
					sheet.Set(id+"/bias", 100*math.Abs(sum/known-1))
				}
				p.setP90(sheet, id+"/p90")
			}
			return ctx.Err()
		},
	}
}
