package limiter_test

import (
	"math"
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/limiter"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/probe/sim/simtest"
	"headgate.dev/headgate/unit"
)

// watch lets Watch send over one path, and over another one from the time change on, in
// seconds.
func watch(t *testing.T, m limiter.Watch, first, then sim.Path, change float64) (samples []probe.Sample) {
	t.Helper()
	n, shift := sim.New(first, 1), int64(0)
	changed := false
	for range 2000 {
		train, ok := m.Next(samples)
		if !ok {
			return samples
		}
		if len(samples) > 0 && !changed {
			last := samples[len(samples)-1].Sent
			if now := last[len(last)-1]; float64(now-samples[0].Sent[0])/1e9 > change {
				n, shift, changed = sim.New(then, 2), now, true
			}
		}
		s := n.Send(train)
		for i := range s.Sent {
			s.Sent[i] += shift
		}
		for i := range s.Arrived {
			s.Arrived[i].At += shift
		}
		samples = append(samples, s)
	}
	t.Fatal("the method does not terminate")
	return nil
}

func gifted(rate unit.Rate, size, gift unit.Bytes) sim.Path {
	b := &link.Bucket{Rate: rate, Size: size}
	if gift > 0 {
		b.Gift, b.GiftEvery = gift, 20*time.Second
	}
	return sim.Path{Work: time.Microsecond, Noise: 700 * time.Nanosecond, Skew: 2e-5,
		Hops: []link.Spec{{Rate: 3200 * unit.Mbit, Bucket: b, Delay: 5 * time.Millisecond, Queue: simtest.UnboundedQueue}}}
}

// The gift of section 4.5.2, every 20 s, is found within 100 MB and 65 s, and none where
// there is none: also behind a bucket of 1 MB, which only the last packets of a searching
// train empty.
func TestWatchFindsGifts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rate         unit.Rate
		bucket, gift unit.Bytes
	}{
		{500, 200_000, 0}, {500, 200_000, 300_000}, {100, 1_000_000, 600_000}, {200, 1_000_000, 2_000_000},
	} {
		m := limiter.Watch{}
		p := gifted(c.rate*unit.Mbit, c.bucket, c.gift)
		w := m.Estimate(watch(t, m, p, p, math.Inf(1)))
		t.Logf("%+v: %.0f s, %v, %d levels, %+v", c, w.Took, w.Bytes, len(w.Levels), w.TokenGrants)
		if w.Bytes > 100_000_000 || w.Cannot != "" || len(w.Changes) > 0 {
			t.Errorf("%+v", w)
		}
		if c.gift == 0 {
			if w.TokenGrants != nil {
				t.Errorf("%+v: found a gift where there is none: %+v", c, w.TokenGrants)
			}
			continue
		}
		if g := w.TokenGrants; g == nil || len(g.At) != 3 || g.Every.Low > 20 || g.Every.High < 20 || math.Abs(g.Every.Value-20) > 1 || math.Abs(g.Size.Value/float64(c.gift)-1) > 0.05 {
			t.Errorf("%+v: %+v", c, g)
		}
	}
}

// A rate that changes half way is found, with the second of the change, within 30 MB and
// 30 s.
func TestWatchFindsChanges(t *testing.T) {
	t.Parallel()
	m := limiter.Watch{Budget: 30_000_000, Time: 30 * time.Second}
	w := m.Estimate(watch(t, m, gifted(500*unit.Mbit, 100_000, 0), gifted(200*unit.Mbit, 100_000, 0), 14))
	t.Logf("%.0f s, %v: %+v, gifts %+v", w.Took, w.Bytes, w.Changes, w.TokenGrants)
	if len(w.Changes) != 1 || w.TokenGrants != nil || w.Bytes > m.Budget {
		t.Fatalf("%+v", w)
	}
	c := w.Changes[0]
	if c.After > 15.5 || c.At < 14 || math.Abs(c.From/500e6-1) > 0.01 || math.Abs(c.To/200e6-1) > 0.01 {
		t.Errorf("%+v", c)
	}
}
