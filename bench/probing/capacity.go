package probing

import (
	"context"
	"fmt"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/capacity"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/unit"
)

// narrow is a path with a narrow link, and perhaps a shaper.
type narrow struct {
	sim.Path
	capacity float64
}

// drawNarrow draws from the range of the target for capacities: 100 Mbit/s to 10 Gbit/s, on two of
// three of those up to 2 Gbit/s with a shaper of figure 2.17 (where C is 1 Gbit/s) before or after the
// narrow link, cross traffic of 0 to 50 % of each hop.
func drawNarrow(d *bench.Draw) narrow {
	n := narrow{Path: ends(d), capacity: d.Log(100e6, 10e9)}
	hops := d.Int(1, 4)
	at := d.Int(0, hops-1)
	cross := max(d.Uniform(-0.15, 0.5), 0)
	for i := range hops {
		hop := link.Spec{Rate: unit.Rate(n.capacity), Delay: d.Duration(100*time.Microsecond, 5*time.Millisecond), Queue: endless}
		if i != at {
			hop.Rate = unit.Rate(n.capacity * d.Uniform(1.1, 4))
		}
		hop.Cross = crossOf(d, cross*float64(hop.Rate))
		n.Hops = append(n.Hops, hop)
	}
	if rate := bench.OneOf(d, 200e6, 400e6, 600e6); n.capacity <= maxShaped && rate < 0.9*n.capacity && d.Int(0, 2) > 0 {
		hop := &n.Hops[d.Int(0, hops-1)]
		hop.Bucket = &link.Bucket{Rate: unit.Rate(rate), Size: bench.OneOf[unit.Bytes](d, 1600, 10_000, 100_000)}
		hop.Cross = crossOf(d, cross*rate)
	}
	return n
}

const maxShaped = 2e9

// seedCapacity is the dissertation's method, with its intervals between pairs.
var seedCapacity = capacity.NarrowLink{Length: 3}

func capacityCase(d *bench.Draw) bench.Case {
	const name = "capacity/simulated"
	claims := append([]bench.Claim{
		bench.NewClaim(name+"/p90", "p90 error of the capacity", capacityOff, narrowLinkCapacity),
		bench.NewClaim(name+"/bytes", "maximum of sent bytes", measuredOnly("MB"), narrowLinkCapacity),
		bench.NewClaim(name+"/seconds", "maximum duration", measuredOnly("s"), narrowLinkCapacity),
	}, honestClaims("capacity")...)
	return bench.Case{
		Name: name, Claims: claims,
		Takes: func(quick bool) time.Duration { return bench.Pick(quick, 5*time.Second, 22*time.Second) },
		Drawn: "C 100 Mbit/s to 10 Gbit/s on 1 to 4 hops, on two of three of those up to 2 Gbit/s a shaper of 200, 400 or 600 Mbit/s with 1.6, 10 or 100 KB at any hop, cross traffic of 0 to 50 % of each hop",
		Run: func(ctx context.Context, r *bench.Run) error {
			n := pathsOf(r.Quick)
			ours, seeds := make(pool, n), make(pool, n)
			onAll(ctx, n, func(i int) {
				p := drawNarrow(d.For(fmt.Sprintf("%s/%d", name, i)))
				samples, bytes, seconds := simulate(p.Path, d.Seed()+uint64(i), capacity.Bursts{}.Next)
				ours[i] = judge(capacity.Bursts{}.Estimate(samples).Capacity, p.capacity)
				ours[i].bytes, ours[i].seconds = bytes, seconds
				// Five binary steps of 20 s of cross traffic at 10 Gbit/s take minutes to compute.
				if i < bench.Pick(r.Quick, 0, 60) && p.capacity <= 2e9 {
					seeds[i] = seedCapacityOf(p, d.Seed()+uint64(i))
				}
			})
			sheet := r.Sheet(bench.Ours)
			ours.setP90(sheet, name+"/p90")
			ours.setSpent(sheet, name+"/bytes", name+"/seconds")
			ours.setHonest(sheet, "capacity")
			if done := measuredOf(seeds); len(done) > 0 {
				seed := r.Sheet(narrowLinkCapacity)
				done.setP90(seed, name+"/p90")
				done.setSpent(seed, name+"/bytes", name+"/seconds")
			}
			distribution(r, "capacity", "capacity-simulated", "Capacities on random paths", map[string]pool{bench.Ours: ours, narrowLinkCapacity: measuredOf(seeds)})
			return ctx.Err()
		},
	}
}

func seedCapacityOf(p narrow, seed uint64) outcome {
	samples, bytes, seconds := simulate(p.Path, seed, seedCapacity.Next)
	o := judge(told(seedCapacity.Estimate(samples)), p.capacity)
	o.bytes, o.seconds = bytes, seconds
	return o
}

// measuredOf returns the outcomes of measured paths.
func measuredOf(p pool) (out pool) {
	for _, o := range p {
		if o.bytes > 0 {
			out = append(out, o)
		}
	}
	return out
}

func measuredOnly(what string) bench.Target { return bench.Target{Op: bench.Measured, Unit: what} }

// narrowLab is a cell of the lab.
type narrowLab struct {
	name     string
	capacity unit.Rate
	bucket   *link.Bucket
	cross    float64
}

var narrowLabs = []narrowLab{
	{"100Mbit", 100 * unit.Mbit, nil, 0},
	{"400Mbit-cross-30%", 400 * unit.Mbit, nil, 0.3},
	{"1Gbit", unit.Gbit, nil, 0},
	{"1Gbit-shaper-200Mbit-1.6KB", unit.Gbit, &link.Bucket{Rate: 200 * unit.Mbit, Size: 1600}, 0},
	{"1Gbit-shaper-600Mbit-10KB", unit.Gbit, &link.Bucket{Rate: 600 * unit.Mbit, Size: 10_000}, 0},
	{"1Gbit-shaper-400Mbit-100KB-cross-30%", unit.Gbit, &link.Bucket{Rate: 400 * unit.Mbit, Size: 100_000}, 0.3},
}

func capacityLab() (out []bench.Case) {
	for _, c := range narrowLabs {
		id := "capacity/lab/" + c.name
		out = append(out, bench.Case{
			Name: id,
			Claims: []bench.Claim{
				bench.NewClaim(id+"/p90", "p90 error of the capacity", capacityOff),
				bench.NewClaim(id+"/bytes", "maximum of sent bytes in a direction", measuredOnly("MB")),
				bench.NewClaim(id+"/seconds", "maximum duration for a direction", measuredOnly("s")),
			},
			Takes: func(quick bool) time.Duration { return bench.Pick(quick, 4*time.Second, 15*time.Second) },
			Run:   func(ctx context.Context, r *bench.Run) error { return c.run(ctx, r, id) },
		})
	}
	return out
}

func (c narrowLab) run(ctx context.Context, r *bench.Run, id string) error {
	s := link.Spec{Rate: c.capacity, Delay: 5 * time.Millisecond, Queue: link.Amount{Time: 500 * time.Millisecond}, Bucket: c.bucket}
	if c.cross > 0 {
		carries := c.capacity
		if c.bucket != nil {
			carries = c.bucket.Rate
		}
		s.Cross = []link.Cross{{Load: unit.Rate(c.cross * float64(carries)), Model: link.Pareto, Sizes: []int{64, 576, 1514}}}
	}
	return withServer(ctx, twoHosts(s), func(s *stage) error {
		var ours pool
		err := s.each(ctx, runsOf(r.Quick), []string{"capacity"}, func(a *path.Answer) {
			o := judge(*a.Capacity, float64(c.capacity))
			o.bytes, o.seconds = float64(a.Bytes), a.Seconds
			ours = append(ours, o)
		})
		if err != nil {
			return err
		}
		sheet := r.Sheet(bench.Ours)
		ours.setP90(sheet, id+"/p90")
		ours.setSpent(sheet, id+"/bytes", id+"/seconds")
		return nil
	})
}

// each probes n times, and returns the results of both directions.
func (s *stage) each(ctx context.Context, n int, args []string, take func(*path.Answer)) error {
	for range n {
		report, err := s.probe(ctx, args...)
		if err != nil {
			return err
		}
		for _, d := range probe.Directions {
			take(report.Directions[d])
		}
	}
	return nil
}
