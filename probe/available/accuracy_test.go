package available_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/available"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/unit"
)

// loaded is a path with cross traffic, and the results of the earlier methods.
type loaded struct {
	sim.Path
	found available.HoldTrains
	// answer is the time from the end of a train to the begin of the next one.
	answer time.Duration
}

// crossed returns cross traffic with a mean rate, of small, medium and full-size frames.
func crossed(rng *rand.Rand, load float64) []link.Cross {
	c := link.Cross{Load: unit.Rate(load), Sizes: []int{54, 590, 1514}}
	if rng.IntN(2) == 0 {
		c.Model = link.Pareto
	}
	return []link.Cross{c}
}

// drawLoaded draws one to three hops of a capacity. One is loaded to a fraction between
// from and to, the others less.
func drawLoaded(rng *rand.Rand, c, from, to float64) (p loaded) {
	p.found.Capacity = c
	p.Noise = time.Duration(500+rng.IntN(500)) * time.Nanosecond
	p.Skew = (2*rng.Float64() - 1) * 5e-5
	load := from + (to-from)*rng.Float64()
	hops := 1 + rng.IntN(3)
	tight := rng.IntN(hops)
	for i := range hops {
		hop := link.Spec{Rate: unit.Rate(c), Delay: time.Duration(100+rng.IntN(900)) * time.Microsecond}
		if i == tight {
			hop.Cross = crossed(rng, load*c)
		} else {
			hop.Rate *= unit.Rate(1 + rng.IntN(2))
			hop.Cross = crossed(rng, (0.01+0.79*rng.Float64())*load*c)
		}
		p.Hops = append(p.Hops, hop)
	}
	return p
}

// 100 to 800 of 1,000 Mbit/s are available.
func drawGigabit(rng *rand.Rand) loaded { return drawLoaded(rng, 1e9, 0.2, 0.9) }

// The same, with a receiver that is suspended.
func drawSuspended(rng *rand.Rand) loaded {
	p := drawGigabit(rng)
	p.Hops[len(p.Hops)-1].Suspension = &link.Suspension{
		Packets: []int{200, 1000}[rng.IntN(2)], Time: []time.Duration{1, 5, 10}[rng.IntN(3)] * time.Millisecond,
	}
	return p
}

// 100 Mbit/s to 10 Gbit/s, with cross traffic of at least half of it.
func drawCapacity(rng *rand.Rand) loaded {
	return drawLoaded(rng, 100e6*math.Pow(100, rng.Float64()), 0.5, 0.9)
}

// A token bucket with cross traffic of 10 to 90 %.
func drawBucket(rng *rand.Rand) loaded {
	p := drawLoaded(rng, 1e9, 0.01, 0.2)
	rate, size := 100e6+700e6*rng.Float64(), 1600*math.Pow(600, rng.Float64())
	h := &p.Hops[rng.IntN(len(p.Hops))]
	h.Rate = unit.Gbit
	h.Bucket = &link.Bucket{Rate: unit.Rate(rate), Size: unit.Bytes(size)}
	h.Cross = crossed(rng, (0.1+0.8*rng.Float64())*rate)
	p.found.TokenRate = rate
	return p
}

// The same with a known bucket size.
func drawKnownBucket(rng *rand.Rand) loaded {
	p := drawBucket(rng)
	for _, h := range p.Hops {
		if h.Bucket != nil {
			p.found.Bucket = float64(h.Bucket.Size)
		}
	}
	return p
}

// No parameter is known.
func drawUnknown(rng *rand.Rand) loaded {
	p := drawCapacity(rng)
	p.found = available.HoldTrains{}
	return p
}

var loadedPaths = []struct {
	name string
	draw func(*rand.Rand) loaded
}{
	{"100 to 800 of 1,000 Mbit/s", drawGigabit},
	{"receiver suspended", drawSuspended},
	{"100 Mbit/s to 10 Gbit/s", drawCapacity},
	{"token bucket", drawBucket},
	{"token bucket of known size", drawKnownBucket},
	{"capacity unknown", drawUnknown},
}

// measured is the result for one path.
type measured struct {
	result         available.Result
	truth, allowed float64
	bytes          unit.Bytes
	seconds        float64
	waited         time.Duration // maximum queue delay
	samples        []probe.Sample
}

func measure(p loaded, seed uint64) (m measured) {
	n := sim.New(p.Path, seed)
	n.Record()
	for len(m.samples) < 1000 {
		train, ok := p.found.Next(m.samples)
		if !ok {
			break
		}
		train.Parts[0].Pause += p.answer
		m.samples = append(m.samples, n.Send(train))
		m.bytes += train.Bytes()
	}
	m.result = p.found.Estimate(m.samples)
	m.truth = float64(n.Realised())
	c := math.Inf(1)
	for _, h := range p.Hops {
		c = min(c, float64(h.Rate))
	}
	m.allowed = max(0.08*m.truth, 0.02*c)
	lowest, highest := int64(math.MaxInt64), int64(math.MinInt64)
	for _, s := range m.samples {
		for _, a := range s.Arrived {
			owd := a.At - s.Sent[a.Number]
			lowest, highest = min(lowest, owd), max(highest, owd)
		}
		m.seconds = float64(s.Sent[len(s.Sent)-1]-m.samples[0].Sent[0]) / 1e9
	}
	m.waited = time.Duration(highest - lowest)
	return m
}

// On random paths the error of the available bandwidth, as realised during the probe, is
// within 8 % of it, or 2 % of the capacity, at p90.
func TestAvailable(t *testing.T) {
	t.Parallel()
	const paths = 30
	for _, g := range loadedPaths {
		rng := rand.New(rand.NewPCG(11, 12))
		var off, relative, wide, waited []float64
		covered, cannot, bytes, seconds := 0, 0, 0.0, 0.0
		for i := range paths {
			p := g.draw(rng)
			m := measure(p, uint64(i)+1)
			if m.bytes > 5_000_000 || m.seconds > 3 {
				t.Errorf("%s, path %d: %v in %.1f s", g.name, i, m.bytes, m.seconds)
			}
			bytes += float64(m.bytes) / 1e6 / paths
			seconds += m.seconds / paths
			waited = append(waited, m.waited.Seconds()*1e3)
			a := m.result.Available
			if !a.Known() {
				t.Logf("%s, path %d: %s", g.name, i, a.Reason)
				cannot++
				continue
			}
			off = append(off, math.Abs(a.Value-m.truth)/m.allowed)
			relative = append(relative, 100*math.Abs(a.Value/m.truth-1))
			wide = append(wide, 100*(a.High-a.Low)/m.truth)
			if a.Low <= m.truth && m.truth <= a.High {
				covered++
			}
		}
		for _, v := range [][]float64{off, relative, wide, waited} {
			slices.Sort(v)
		}
		n := len(off)
		t.Logf("%s: error %.1f %% at the median, %.1f at p90 (%.2f of the tolerance); %d %% covered, %.1f %% wide; %d without a result; %.1f MB, %.2f s; queue delay %.1f ms at p90, %.1f at most",
			g.name, relative[n/2], relative[n*9/10], off[n*9/10], 100*covered/n, wide[n/2], cannot, bytes, seconds, waited[len(waited)*9/10], waited[len(waited)-1])
		if off[n*9/10] > 1 || cannot > paths/20 {
			t.Error("want p90 within the tolerance")
		}
	}
}
