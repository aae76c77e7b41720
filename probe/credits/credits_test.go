package credits

import (
	"math"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/unit"
)

// path is a link with burst credits, and the silence in which the receiver reports each train.
type path struct {
	*sim.Network
	silence time.Duration
}

func newPath(spec link.Spec, silence time.Duration) path {
	return path{sim.New(sim.Path{Hops: []link.Spec{spec}, Noise: time.Microsecond, Skew: 2e-5}, 1), silence}
}

// measure runs a method over a path.
func (p path) measure(t *testing.T, m Method) (Result, []Passage) {
	t.Helper()
	var seen []Passage
	for {
		next, ok := m.Next(seen)
		if !ok {
			break
		}
		if len(seen) > 1000 {
			t.Fatal("the method does not end")
		}
		p.Idle(p.silence)
		s := p.Send(next)
		seen = append(seen, Read(&s, m.Capacity))
	}
	return m.Estimate(seen, probe.Estimate{Value: m.Capacity, Low: m.Capacity, High: m.Capacity}), seen
}

func credit(capacity, baseline unit.Rate, size unit.Bytes) link.Spec {
	return link.Spec{Rate: capacity, Delay: 5 * time.Millisecond, Queue: link.Amount{Time: 100 * time.Millisecond}, Bucket: &link.Bucket{Rate: baseline, Size: size}}
}

func near(t *testing.T, what string, is, want, off float64) {
	t.Helper()
	if math.Abs(is/want-1) > off {
		t.Errorf("%s: %.5g, want %.5g within %.1f %%", what, is, want, 100*off)
	}
}

// TestCredits empties buckets that no single train empties: the bytes that trains use are those of the bucket and what is added meanwhile.
func TestCredits(t *testing.T) {
	for _, c := range []struct {
		capacity, baseline unit.Rate
		size               unit.Bytes
		silence            time.Duration
	}{
		{unit.Gbit, 100 * unit.Mbit, 30_000_000, 10 * time.Millisecond},
		{unit.Gbit, 100 * unit.Mbit, 30_000_000, 100 * time.Millisecond},
		{unit.Gbit, 600 * unit.Mbit, 20_000_000, 30 * time.Millisecond},
		{100 * unit.Mbit, 20 * unit.Mbit, 2_000_000, 50 * time.Millisecond},
		{5 * unit.Gbit, 750 * unit.Mbit, 30_000_000, 20 * time.Millisecond},
	} {
		p := newPath(credit(c.capacity, c.baseline, c.size), c.silence)
		r, seen := p.measure(t, Method{Capacity: float64(c.capacity), Budget: 20 * c.size, Time: time.Minute})
		if !r.Baseline.Known() || !r.Bucket.Known() {
			t.Errorf("%v: %+v", c, r)
			continue
		}
		near(t, "baseline", r.Baseline.Value, float64(c.baseline), 0.005)
		near(t, "bucket", r.Bucket.Value, float64(c.size), 0.03)
		if r.Bucket.AtLeast || len(r.Found) != 2 {
			t.Errorf("%v: the bucket is only a bound: %+v after %d trains", c, r, len(seen))
		}
		near(t, "fills", r.Fills().Seconds(), float64(c.size)*8/float64(c.baseline), 0.05)
	}
}

// TestStalledSender reads a train whose sender stalled in its second half: no limiter slowed it.
func TestStalledSender(t *testing.T) {
	const stall = int64(15 * time.Millisecond)
	p := newPath(credit(unit.Gbit, 100*unit.Mbit, 30_000_000), 10*time.Millisecond)
	s := p.Send(probe.Uniform(drainPurpose, 1000, frame-probe.Overhead, 800*unit.Mbit))
	if Read(&s, 1e9).Limited {
		t.Fatal("limited without a stall")
	}
	for i := 700; i < 1000; i++ {
		s.Sent[i] += stall
		s.Arrived[i].At += stall
	}
	if p := Read(&s, 1e9); p.Limited {
		t.Errorf("limited: arrived at %.3g of %.3g bit/s", p.Rate, p.Offered)
	}
}

// TestCreditsBudget does not empty the bucket: the result says so, and no bound is false.
func TestCreditsBudget(t *testing.T) {
	p := newPath(credit(unit.Gbit, 100*unit.Mbit, 30_000_000), 10*time.Millisecond)
	m := Method{Capacity: 1e9, Budget: 10_000_000, Time: time.Minute}
	r, seen := p.measure(t, m)
	if r.Baseline.Known() || !strings.HasPrefix(r.Baseline.Reason, "no limiter below 848.8Mbit within ") || r.Passed < 9_000_000 || r.Passed > 10_000_000 {
		t.Errorf("%+v", r)
	}
	sent := unit.Bytes(0)
	for _, p := range seen {
		sent += p.Sent
	}
	if sent > m.Budget {
		t.Errorf("sent %v of %v", sent, m.Budget)
	}
	p = newPath(credit(unit.Gbit, 100*unit.Mbit, 30_000_000), 10*time.Millisecond)
	if r, _ := p.measure(t, Method{Capacity: 1e9, Budget: 1e9, Time: 100 * time.Millisecond}); r.Baseline.Known() || r.PassedSeconds > 0.15 {
		t.Errorf("100 ms: %+v", r)
	}
	p = newPath(link.Spec{Rate: unit.Gbit, Queue: link.Amount{Time: 100 * time.Millisecond}}, 10*time.Millisecond)
	if r, _ := p.measure(t, Method{Capacity: 1e9, Budget: 1e8, Time: time.Minute}); r.Baseline.Known() || r.Passed < 90_000_000 {
		t.Errorf("no limiter: %+v", r)
	}
}

// TestCreditsUsed finds less in a bucket that was used just before, which is a lower bound until two measurements find the same.
func TestCreditsUsed(t *testing.T) {
	const full = 30_000_000
	p := newPath(credit(unit.Gbit, 100*unit.Mbit, full), 10*time.Millisecond)
	once := Method{Capacity: 1e9, Budget: 60_000_000, Time: 2 * time.Second} // there is no time to fill it again
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var all Result
	for i, used := range []int{10_000_000, 0, 20_000_000, 0} {
		p.Idle(time.Minute)
		if used > 0 {
			p.Send(probe.Uniform("", used/frame, frame-probe.Overhead, 800*unit.Mbit))
		}
		r, _ := p.measure(t, once)
		if !r.Bucket.Known() || !r.Bucket.AtLeast || r.Bucket.Value > full*1.01 {
			t.Fatalf("measurement %d: %+v", i, r)
		}
		all = r.Add(all, day.Add(time.Duration(i)*time.Hour))
		if all.Bucket.AtLeast == (i == 3) {
			t.Errorf("after measurement %d: %+v", i, all.Bucket)
		}
	}
	near(t, "bucket", all.Bucket.Value, full, 0.02)
	if len(all.Found) != 4 || !all.Found[0].At.Equal(day) || !all.Found[3].At.Equal(day.Add(3*time.Hour)) {
		t.Errorf("found %+v", all.Found)
	}
	// A measurement that does not empty the bucket takes nothing back. One that passes more than the limiter allows does.
	short := Result{Baseline: probe.NoEstimate("no limiter"), Bucket: probe.NoEstimate("no limiter"), Passed: 5_000_000, PassedSeconds: 0.05}
	if r := short.Add(all, day); !r.Baseline.Known() || r.Bucket != all.Bucket {
		t.Errorf("after a short measurement: %+v", r)
	}
	long := short
	long.Passed, long.PassedSeconds = 90_000_000, 0.8
	if r := long.Add(all, day); r.Baseline.Known() {
		t.Errorf("after the limiter is gone: %+v", r)
	}
	// Another baseline is another limiter.
	other := Result{Baseline: probe.Estimate{Value: 2e8, Low: 2e8, High: 2e8}, Found: []Found{{Baseline: 2e8, Bytes: 1e6}}}
	other.Bucket = size(other.Found)
	if r := other.Add(all, day); len(r.Found) != 1 || r.Baseline.Value != 2e8 {
		t.Errorf("another limiter: %+v", r)
	}
}

// TestCreditsShared drains a bucket that others use as well: what is found is not above its size, and the baseline is never above the token rate.
func TestCreditsShared(t *testing.T) {
	const baseline, full = 300e6, 20e6
	told := 0
	for seed, load := range []unit.Rate{10e6, 30e6, 60e6, 100e6, 150e6, 250e6} {
		spec := credit(unit.Gbit, baseline, full)
		spec.Cross = []link.Cross{{Load: load, Model: link.Poisson, Sizes: []int{64, 576, 1514}}}
		p := path{sim.New(sim.Path{Hops: []link.Spec{spec}, Noise: time.Microsecond}, uint64(seed)), 20 * time.Millisecond}
		p.Idle(5 * time.Second)
		r, _ := p.measure(t, Method{Capacity: 1e9, Budget: 200e6, Time: 10 * time.Second})
		if r.Bucket.Known() && r.Bucket.Value > full*1.01 {
			t.Errorf("load %v: %+v", load, r)
		}
		if r.Baseline.Known() {
			told++
			if r.Baseline.Low > baseline*1.001 || r.Baseline.Value < (baseline-float64(load)*1.2)*0.9 {
				t.Errorf("load %v: %+v", load, r)
			}
		} else if strings.HasPrefix(r.Baseline.Reason, "no limiter") {
			t.Errorf("load %v: %+v", load, r)
		}
	}
	if told < 2 {
		t.Errorf("answers for %d of 6 loads", told)
	}
}
