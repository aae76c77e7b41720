package path_test

import (
	"math"
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe/limiter"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/probe/sim/simtest"
	"headgate.dev/headgate/unit"
)

// A link of 0.5 to 10 Mbit/s is measured within 3 s and 400 kB, without loss, and with queues of 10 ms at most.
func TestSlowLinks(t *testing.T) {
	for _, rate := range []unit.Rate{500 * unit.Kbit, unit.Mbit, 2 * unit.Mbit, 5 * unit.Mbit, 10 * unit.Mbit} {
		hop := link.Spec{Rate: rate, Delay: 10 * time.Millisecond, Queue: link.Amount{Time: 200 * time.Millisecond}}
		m := path.Method{Parts: path.AllParts}
		samples := simtest.Run(t, sim.Path{Hops: []link.Spec{hop}, Noise: 700}, 1, m.Next)
		took, queue := 0., 0.
		for i := range samples {
			s := &samples[i]
			least := math.Inf(1)
			for _, a := range s.Arrived {
				least = min(least, float64(a.At-s.Sent[a.Number]))
			}
			for _, a := range s.Arrived {
				queue = max(queue, float64(a.At-s.Sent[a.Number])-least)
			}
			took += float64(s.Sent[len(s.Sent)-1]-s.Sent[0])/1e9 + 0.02 // a round trip
		}
		a := m.Estimate(samples)
		t.Logf("%v: %s, %.2f s, a queue of %.1f ms: capacity %+v, available %+v", rate, a.Bytes, took, queue/1e6, *a.Capacity, a.Available.Available)
		if a.Bytes > 400_000 || took > 3 || queue > 10e6 || a.Lost > 0 {
			t.Errorf("%v: %s were sent in %.2f s, with a queue of %.1f ms, and %.1f %% were lost", rate, a.Bytes, took, queue/1e6, 100*a.Lost)
		}
		if !a.Capacity.Known() || math.Abs(a.Capacity.Value/float64(rate)-1) > 0.01 || !a.Available.Available.Known() || math.Abs(a.Available.Available.Value/float64(rate)-1) > 0.03 {
			t.Errorf("%v: capacity %+v, available %+v", rate, *a.Capacity, a.Available.Available)
		}
		if a.Limiter.Class != limiter.None {
			t.Errorf("%v: the limiter is %s: %s", rate, a.Limiter.Class, a.Limiter.Cannot)
		}
	}
}

// A shaper of 1 or 2 Mbit/s, on a slow link and on a fast one, is found within 4 s and 400 kB.
func TestSlowShapers(t *testing.T) {
	for _, c := range []struct {
		link, rate unit.Rate
		bucket     unit.Bytes
	}{{10 * unit.Mbit, 2 * unit.Mbit, 20_000}, {100 * unit.Mbit, unit.Mbit, 5000}, {4 * unit.Mbit, unit.Mbit, 10_000}} {
		hop := link.Spec{Rate: c.link, Delay: 10 * time.Millisecond, Queue: link.Amount{Time: 200 * time.Millisecond}, Bucket: &link.Bucket{Rate: c.rate, Size: c.bucket}}
		m := path.Method{Parts: path.AllParts}
		samples := simtest.Run(t, sim.Path{Hops: []link.Spec{hop}, Noise: 700}, 1, m.Next)
		took := 0.
		for i := range samples {
			took += float64(samples[i].Sent[len(samples[i].Sent)-1]-samples[i].Sent[0])/1e9 + 0.02
		}
		a := m.Estimate(samples)
		r := a.TokenRate.Rate
		t.Logf("%v of %v: %s, %.2f s, %.1f %% lost: token rate %+v, class %s", c.rate, c.link, a.Bytes, took, 100*a.Lost, r, a.Limiter.Class)
		if !r.Known() || r.AtLeast || math.Abs(r.Value/float64(c.rate)-1) > 0.01 || a.Limiter.Class != limiter.TBF {
			t.Errorf("%v of %v: token rate %+v, class %s %s", c.rate, c.link, r, a.Limiter.Class, a.Limiter.Cannot)
		}
		if a.Bytes > 400_000 || took > 4 {
			t.Errorf("%v of %v: %s were sent in %.2f s", c.rate, c.link, a.Bytes, took)
		}
	}
}
