package probing

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/capacity"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/probe/tokenrate"
	"headgate.dev/headgate/unit"
)

// seedMTU is the dissertation's "1500 bytes": it does not count layer-2 headers.
const seedMTU = 1500

// paretoOf is the dissertation's cross traffic (2.5.1): shape 1.9, packets of 1500 bytes.
func paretoOf(load float64) []link.Cross {
	return []link.Cross{{Load: unit.Rate(load), Model: link.Pareto, Sizes: []int{seedMTU}}}
}

// Default constants of ns-2's Pareto generators, and the maximum duration of a run.
const (
	burstMean = 500 * time.Millisecond
	nsShape   = 1.9
	nsLasts   = 5 * time.Second
)

// onOff is the cross traffic of figure 2.7: ns-2's Pareto generators send at one rate while they are
// on. The dissertation has neither their number nor that rate: here it is one for each link, at its
// token rate. If only the intervals of packets are random, hardly a gap of the token rate passes three
// more shapers, whereas 1.4, 3.5 and 5.3 % did.
func onOff(rng *rand.Rand, rate, part float64) (out []link.Cross) {
	on := traffic.Distribution[time.Duration]{Kind: traffic.Pareto, Mean: burstMean, Shape: nsShape}
	off := on
	off.Mean = time.Duration(float64(burstMean) * (1 - part) / part)
	// It has been running for a while.
	for at := -20 * burstMean; at < nsLasts; {
		stop := at + on.Draw(rng)
		if stop > 0 {
			out = append(out, link.Cross{Load: unit.Rate(rate), Model: link.Constant, Sizes: []int{seedMTU}, Start: max(at, 0), Stop: stop})
		}
		at = stop + off.Draw(rng)
	}
	return out
}

// figure27 is the network of figure 2.7: links of 1200, 1000, 400, 600 and 800 Mbit/s with shapers of
// r1, 900, 300, 500 and 700, and cross traffic as a part of each token rate.
func figure27(seed uint64, r1 float64, burst unit.Bytes, cross float64) (p sim.Path) {
	rng := rand.New(rand.NewPCG(seed, 27))
	tokens := []float64{r1, 900e6, 300e6, 500e6, 700e6}
	for i, c := range []unit.Rate{1200, 1000, 400, 600, 800} {
		p.Hops = append(p.Hops, link.Spec{
			Rate: c * unit.Mbit, Bucket: &link.Bucket{Rate: unit.Rate(tokens[i]), Size: burst}, Queue: endless, Cross: onOff(rng, tokens[i], cross),
		})
	}
	return p
}

// shareAt returns the fraction, in %, of the dispersion rates of a sample's parts from one on that are
// in a bin of 10 Mbit/s around a rate. The rate is the middle of the bin, because half of the packets
// at a rate are a ns too slow.
func shareAt(s probe.Sample, from int, at float64) float64 {
	in, all := 0, 0
	for _, part := range s.Split()[from:] {
		for _, rate := range part.DispersionRates() {
			all++
			if math.Abs(rate-at) <= 5e6 {
				in++
			}
		}
	}
	return 100 * float64(in) / float64(all)
}

// pairsOf returns 1000 pairs at a rate, 0 back to back (2.5.1).
func pairsOf(size int, rate unit.Rate) (t probe.Train) {
	for range 1000 {
		t.Parts = append(t.Parts, probe.Part{Count: 2, Size: size - probe.Overhead, Rate: rate, Pause: 4 * time.Millisecond})
	}
	return t
}

// shareOfPairs returns that of pairs at a rate, in %.
func shareOfPairs(p sim.Path, size int, at float64, seed uint64) float64 {
	return shareAt(sim.New(p, seed).Send(pairsOf(size, 0)), 0, at)
}

// drained is the time between the drain train and the next one: the arrival rate is measured in
// between, and packets that waited for tokens have left.
const drained = 200 * time.Millisecond

// estimationTrain is the dissertation's train for the token rate: with a drain train of 1000 packets
// at 350 Mbit/s before it (2.6).
func estimationTrain(size int, lambda float64) probe.Train {
	return probe.Train{Parts: []probe.Part{
		{Count: 1000, Size: seedMTU - probe.Overhead, Rate: 350 * unit.Mbit},
		{Count: 1000, Size: size - probe.Overhead, Rate: unit.Rate(lambda), Pause: drained},
	}}
}

func shareOfTrain(p sim.Path, size int, lambda, at float64, seed uint64) float64 {
	return shareAt(sim.New(p, seed).Send(estimationTrain(size, lambda)), 1, at)
}

// figure is a row of shares that the dissertation's figures order from the smallest to the largest.
type figure struct {
	name, what string
	paper      []float64 // where the text has them
	shares     func(seed uint64) []float64
}

var figures = []figure{
	{"2.8", "pairs at the capacity: bucket of 1.5 KB, of 150 KB", nil, func(s uint64) []float64 {
		return []float64{shareOfPairs(figure27(s, 100e6, 1500, 0.5), 1500, 400e6, s), shareOfPairs(figure27(s, 100e6, 150_000, 0.5), 1500, 400e6, s)}
	}},
	{"2.9", "pairs at the capacity: cross traffic of 70 %, of 30 %", nil, func(s uint64) []float64 {
		return []float64{shareOfPairs(figure27(s, 100e6, 1500, 0.7), 500, 400e6, s), shareOfPairs(figure27(s, 100e6, 1500, 0.3), 500, 400e6, s)}
	}},
	{"2.10", "pairs at the capacity: packets of 1000 bytes, of 500", []float64{0.2, 11}, func(s uint64) []float64 {
		return []float64{shareOfPairs(figure27(s, 100e6, 1500, 0.5), 1000, 400e6, s), shareOfPairs(figure27(s, 100e6, 1500, 0.5), 500, 400e6, s)}
	}},
	{"2.11", "pairs at their sending rate: 450 Mbit/s, above C, and 350, below", nil, func(s uint64) (out []float64) {
		for _, rate := range []unit.Rate{450, 350} {
			out = append(out, shareAt(sim.New(figure27(s, 100e6, 1500, 0.5), s).Send(pairsOf(500, rate*unit.Mbit)), 0, float64(rate*unit.Mbit)))
		}
		return out
	}},
	{"2.12", "a train at the token rate: of 250 Mbit/s, of 100", nil, func(s uint64) []float64 {
		return []float64{shareOfTrain(figure27(s, 250e6, 1500, 0.5), 1500, 350e6, 250e6, s), shareOfTrain(figure27(s, 100e6, 1500, 0.5), 1500, 350e6, 100e6, s)}
	}},
	{"2.13", "a train at the token rate: cross traffic of 70 %, of 5 %", nil, func(s uint64) []float64 {
		return []float64{shareOfTrain(figure27(s, 200e6, 1500, 0.7), 1500, 350e6, 200e6, s), shareOfTrain(figure27(s, 200e6, 1500, 0.05), 1500, 350e6, 200e6, s)}
	}},
	{"2.14-2.15", "a train at the token rate: packets of 1500 bytes at 350 Mbit/s, of 500 at 350, of 500 at 200", []float64{1.4, 3.5, 5.3}, func(s uint64) []float64 {
		p := figure27(s, 200e6, 1500, 0.5)
		return []float64{shareOfTrain(p, 1500, 350e6, 200e6, s), shareOfTrain(p, 500, 350e6, 200e6, s), shareOfTrain(p, 500, 200e6, 200e6, s)}
	}},
	{"2.16", "a train at the token rate of 200: sent at 20 Mbit/s, 100, 200", nil, func(s uint64) []float64 {
		p := figure27(s, 200e6, 1500, 0.5)
		return []float64{shareOfTrain(p, 500, 20e6, 200e6, s), shareOfTrain(p, 500, 100e6, 200e6, s), shareOfTrain(p, 500, 200e6, 200e6, s)}
	}},
}

// whereCases are the dissertation's figures, measured again.
func whereCases(d *bench.Draw) []bench.Case {
	claims := []bench.Claim{}
	for _, f := range figures {
		id := "where/figure-" + f.name
		claims = append(claims, bench.NewClaim(id+"/trend", "shares that contradict the figure's order: "+f.what, trend))
		for i, paper := range f.paper {
			claims = append(claims, bench.NewClaim(fmt.Sprintf("%s/share-%d", id, i+1), "share, in the order of the trend", measuredOnly("%")).WithPaper(paper))
		}
	}
	return []bench.Case{{
		Name: "where/figures", Claims: claims,
		Takes: func(quick bool) time.Duration { return bench.Pick(quick, 4*time.Second, 40*time.Second) },
		Run: func(ctx context.Context, r *bench.Run) error {
			sheet := r.Sheet(bench.Ours)
			onAll(ctx, len(figures), func(i int) { figures[i].run(sheet, d.Seed(), bench.Pick(r.Quick, 10, 100)) })
			return ctx.Err()
		},
	}, locationCase(d)}
}

// run computes means over some seeds: a share of 1 % of 1000 pairs is 10 of them.
func (f figure) run(sheet *bench.Sheet, seed uint64, times int) {
	var sums []float64
	for i := range times {
		for k, v := range f.shares(seed + uint64(i)) {
			if len(sums) <= k {
				sums = append(sums, 0)
			}
			sums[k] += v / float64(times)
		}
	}
	id := "where/figure-" + f.name
	against, text := 0, ""
	for k, v := range sums {
		if k > 0 && v <= sums[k-1] {
			against++
		}
		text += fmt.Sprintf("%s%s %%", map[bool]string{true: "", false: ", "}[k == 0], bench.Number(v))
		if k < len(f.paper) {
			sheet.Set(fmt.Sprintf("%s/share-%d", id, k+1), v)
		}
	}
	sheet.Set(id+"/trend", float64(against))
	sheet.Note(id+"/trend", "%s", text)
}

// located is a path of figures 2.20 and 2.21: five links of 2, 1, 2, 1 and 2 Gbit/s with a fifth of
// cross traffic, and shapers before some.
func located(shapers map[int]link.Bucket) (p sim.Path) {
	for i, c := range []unit.Rate{2, 1, 2, 1, 2} {
		hop := link.Spec{Rate: c * unit.Gbit, Queue: endless, Cross: paretoOf(0.2 * float64(c*unit.Gbit))}
		if b, ok := shapers[i]; ok {
			hop.Bucket, hop.Cross = &b, paretoOf(0.2*float64(b.Rate))
		}
		p.Hops = append(p.Hops, hop)
	}
	p.Noise = 500
	return p
}

// capacityOf the paths of figures 2.20 and 2.21, in bit/s.
const capacityOf = 1e9

// location is a path with shapers at some places; rate is the lowest of theirs.
type location struct {
	id      string
	shapers map[int]link.Bucket
	rate    float64
}

func locationCase(d *bench.Draw) bench.Case {
	var places []location
	for at := range 5 {
		places = append(places, location{fmt.Sprintf("where/figure-2.20/at-%d", at), map[int]link.Bucket{at: {Rate: 600 * unit.Mbit, Size: 2000}}, 600e6})
	}
	all := []link.Bucket{{Rate: 800 * unit.Mbit, Size: 10_000}, {Rate: 600 * unit.Mbit, Size: 20_000}, {Rate: 400 * unit.Mbit, Size: 40_000}, {Rate: 200 * unit.Mbit, Size: 40_000}}
	for n := 1; n <= len(all); n++ {
		shapers := map[int]link.Bucket{}
		for i, b := range all[:n] {
			shapers[i+1] = b
		}
		places = append(places, location{fmt.Sprintf("where/figure-2.21/R-%dMbit", all[n-1].Rate/unit.Mbit), shapers, float64(all[n-1].Rate)})
	}
	var claims []bench.Claim
	for _, p := range places {
		claims = append(claims,
			bench.NewClaim(p.id+"/capacity", "median error of the capacity of 1 Gbit/s", estimateOff, narrowLinkCapacity),
			bench.NewClaim(p.id+"/tokenrate", "median error of the token rate", estimateOff, narrowTokenRate))
	}
	return bench.Case{
		Name: "where/locations", Claims: claims,
		Takes: func(quick bool) time.Duration { return bench.Pick(quick, 5*time.Second, 25*time.Second) },
		Run: func(ctx context.Context, r *bench.Run) error {
			runs := bench.Pick(r.Quick, 3, 15)
			onAll(ctx, len(places), func(i int) { places[i].measure(r, d.Seed(), runs) })
			return ctx.Err()
		},
	}
}

// measure computes the median of some runs, each with different cross traffic.
func (l location) measure(r *bench.Run, seed uint64, runs int) {
	var ours, theirs [2]pool // capacity, token rate
	for i := range runs {
		p, seed := located(l.shapers), seed+uint64(i)
		m := path.Method{Parts: path.Parts{Capacity: true, TokenRate: true}}
		samples, _, _ := simulate(p, seed, m.Next)
		a := m.Estimate(samples)
		rate := probe.NoEstimate("the capacity is unknown")
		if a.TokenRate != nil {
			rate = a.TokenRate.Rate
		}
		ours[0], ours[1] = append(ours[0], judge(*a.Capacity, capacityOf)), append(ours[1], judge(rate, l.rate))
		// As in the dissertation's own test, pairs follow each other every 2 ms.
		c := capacity.NarrowLink{Gap: 2 * time.Millisecond}
		samples, _, _ = simulate(p, seed, c.Next)
		got, err := c.Estimate(samples)
		theirs[0] = append(theirs[0], judge(told(got, err), capacityOf))
		if err == nil {
			t := tokenrate.NarrowTokenRate{Capacity: got}
			samples, _, _ = simulate(p, seed, t.Next)
			got, err = t.Estimate(samples)
		}
		theirs[1] = append(theirs[1], judge(told(got, err), l.rate))
	}
	ours[0].setMedian(r.Sheet(bench.Ours), l.id+"/capacity")
	ours[1].setMedian(r.Sheet(bench.Ours), l.id+"/tokenrate")
	theirs[0].setMedian(r.Sheet(narrowLinkCapacity), l.id+"/capacity")
	theirs[1].setMedian(r.Sheet(narrowTokenRate), l.id+"/tokenrate")
}
