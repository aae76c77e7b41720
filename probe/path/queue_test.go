package path_test

import (
	"math"
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/limiter"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/unit"
)

// Effect of a complete measurement on other traffic: behind slow shapers, whose queue its
// trains fill, the queue delay is above 10 ms for less than 1 % of the time, there is no
// loss, and the result is correct. A larger bucket hides the rate of the shaper until a
// train is too long: then it is 25 ms, once.
func TestQueueDelay(t *testing.T) {
	for _, bucket := range []link.Bucket{
		{Rate: 50 * unit.Mbit, Size: 2_000},
		{Rate: 50 * unit.Mbit, Size: 20_000},
		{Rate: 50 * unit.Mbit, Size: 200_000},
		{Rate: 100 * unit.Mbit, Size: 50_000},
		{Rate: 200 * unit.Mbit, Size: 100_000},
	} {
		spec := link.Spec{Rate: unit.Gbit, Delay: 5 * time.Millisecond, Queue: link.Amount{Time: 50 * time.Millisecond}, Bucket: &bucket}
		n := sim.New(sim.Path{Hops: []link.Spec{spec}, Noise: 500 * time.Nanosecond}, 1)
		m := path.Method{Parts: path.AllParts}
		var samples []probe.Sample
		waits, took := 0.0, 0.0 // ms
		for {
			train, ok := m.Next(samples)
			if !ok {
				break
			}
			train.Parts[0].Pause += 10 * time.Millisecond // a round trip until the receiver's answer arrives
			s := n.Send(train)
			samples = append(samples, s)
			if len(s.Arrived) == 0 {
				t.Fatalf("%+v: no packet of %s arrives", bucket, s.Purpose)
			}
			lowest, highest := math.Inf(1), 0.0
			for _, a := range s.Arrived {
				d := float64(a.At-s.Sent[a.Number]) / 1e6
				lowest, highest = math.Min(lowest, d), math.Max(highest, d)
			}
			// A queue of 12 ms is above 10 ms for 2 ms, as it drains.
			waits += math.Max(0, highest-lowest-10)
			took += float64(s.Arrived[len(s.Arrived)-1].At-s.Sent[0])/1e6 + 10
		}
		a := m.Estimate(samples)
		rate := float64(bucket.Rate)
		t.Logf("%+v: %d trains, %s, %.0f ms, of which %.2f %% above 10 ms; %+v", bucket, len(samples), a.Bytes, took, 100*waits/took, a.Available)
		maxWait := took / 100
		if bucket.Size > 100_000 {
			maxWait = 25
		}
		if waits > maxWait || a.Lost > 0 {
			t.Errorf("%+v: queue delay above 10 ms for %.0f of %.0f ms, %.2f %% lost", bucket, waits, took, 100*a.Lost)
		}
		if r := a.TokenRate; math.Abs(r.Rate.Value/rate-1) > 0.01 || math.Abs(r.Bucket.Value-float64(bucket.Size)) > 1600 {
			t.Errorf("%+v: token rate %+v, bucket %+v", bucket, r.Rate, r.Bucket)
		}
		if a.Limiter.Class != limiter.TBF {
			t.Errorf("%+v: %+v", bucket, a.Limiter)
		}
		if v := a.Available.Available; math.Abs(v.Value/rate-1) > 0.05 {
			t.Errorf("%+v: available %+v", bucket, v)
		}
	}
}
