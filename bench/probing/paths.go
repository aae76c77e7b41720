package probing

import (
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/unit"
)

// endless queues drop nothing.
var endless = link.Amount{Time: 10 * time.Second}

// shaped is a path of some hops with one shaper.
type shaped struct {
	sim.Path
	// rate and bucket are those of the shaper, capacity that of the narrow link, in bit/s and bytes;
	// cross is the load on each hop, relative to its capacity.
	rate, bucket, capacity, cross float64
}

// ends draws the errors of hosts: timestamps that are off by 0.5 to 1 us, a clock that is off by up to
// 50 ppm, and 0.2 to 0.6 us of processing for each packet.
func ends(d *bench.Draw) sim.Path {
	return sim.Path{
		Noise: time.Duration(d.Uniform(500, 1000)), Skew: d.Uniform(-5e-5, 5e-5), Work: time.Duration(d.Uniform(200, 350)),
	}
}

// crossOf draws cross traffic of a load: Poisson or Pareto, full frames or mixed sizes.
func crossOf(d *bench.Draw, load float64) []link.Cross {
	if load <= 0 {
		return nil
	}
	return []link.Cross{{
		Load: unit.Rate(load), Model: bench.OneOf(d, link.Poisson, link.Pareto),
		Sizes: bench.OneOf(d, []int{1514}, []int{64, 576, 1514}, []int{200, 1514, 1514}),
	}}
}

// drawShaped draws a path with a shaper of rate and bucket before one of one to four hops.
func drawShaped(d *bench.Draw, rate, bucket, cross float64) shaped {
	s := shaped{Path: ends(d), rate: rate, bucket: bucket, cross: cross}
	s.capacity = max(bench.OneOf(d, 1e9, 2.5e9, 10e9), rate*d.Uniform(1.15, 4))
	hops := d.Int(1, 4)
	narrow, at := d.Int(0, hops-1), d.Int(0, hops-1)
	for i := range hops {
		hop := link.Spec{Rate: unit.Rate(s.capacity), Delay: d.Duration(100*time.Microsecond, 5*time.Millisecond), Queue: endless}
		if i != narrow {
			hop.Rate = unit.Rate(s.capacity * d.Uniform(1, 4))
		}
		carries := float64(hop.Rate)
		if i == at {
			hop.Bucket = &link.Bucket{Rate: unit.Rate(rate), Size: unit.Bytes(bucket)}
			carries = rate
		}
		hop.Cross = crossOf(d, cross*carries)
		s.Hops = append(s.Hops, hop)
	}
	return s
}

// drawTokenRate draws from the range of the target for token rates: R 50 to 2,000 Mbit/s, buckets of
// 1.6 KB to 1 MB, cross traffic of 0 to 50 %, none on a quarter of the paths.
func drawTokenRate(d *bench.Draw) shaped {
	cross := 0.0
	if d.Uniform(0, 1) > 0.25 {
		cross = d.Uniform(0, 0.5)
	}
	return drawShaped(d, d.Log(50e6, 2000e6), d.Log(1600, 1e6), cross)
}
