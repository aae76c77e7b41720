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

// instance is a row of tables 4.2 to 4.4.
type instance struct {
	name string
	sim.Path
	seed  limiter.Seed
	class limiter.Class
	// In Mbit/s, ms and packets; 0 means that the tables have no value.
	peak, token, period, delta float64
	gifts                      int
}

func hop(rate unit.Rate, b *link.Bucket) []link.Spec { return []link.Spec{{Rate: rate, Bucket: b}} }

// instances are the clouds of 2014. The simulation compresses tens of seconds by a factor
// of 40: a bucket of 12.5 MB, a gift every 0.5 s, and a rate every 25 ms.
func instances() []instance {
	const bin = 25 * time.Millisecond
	ec2 := func(name string, token unit.Rate) instance {
		low := max(600*unit.Mbit, token)
		b := &link.Bucket{Rate: token, Size: 12_500_000, Peak: unit.Gbit, PeakLow: low}
		return instance{name: name, Path: sim.Path{Hops: hop(unit.Gbit, b), Work: time.Microsecond}, class: limiter.TBF,
			seed: limiter.Seed{Count: 200_000, Rate: unit.Gbit, Bin: bin}, peak: 1000, token: float64(token / unit.Mbit)}
	}
	google := func(name string, token unit.Rate) instance {
		b := &link.Bucket{Rate: token, Size: 12_500_000, Gift: 10_000_000, GiftEvery: 500 * time.Millisecond}
		return instance{name: name, Path: sim.Path{Hops: hop(3200*unit.Mbit, b), Work: time.Microsecond}, class: limiter.TBF,
			seed: limiter.Seed{Count: 480_000, Rate: 3200 * unit.Mbit, Bin: bin}, peak: 3200, token: float64(token / unit.Mbit), gifts: 3}
	}
	azure := func(name string, packets int) instance {
		on := time.Duration(packets) * 12 * time.Microsecond
		return instance{name: name, class: limiter.Scheduling, period: 15, delta: float64(packets), Path: sim.Path{
			Hops: hop(unit.Gbit, nil), Work: 12 * time.Microsecond, Sleep: link.Active{On: on, Off: 15*time.Millisecond - on},
		}}
	}
	free := sim.Path{Hops: hop(10*unit.Gbit, nil), Work: 5 * time.Microsecond}
	return []instance{
		ec2("E1", 65*unit.Mbit), ec2("E2", 300*unit.Mbit), ec2("E3", 700*unit.Mbit),
		google("G1 out", 500*unit.Mbit), google("G1 in", 300*unit.Mbit),
		{name: "G2 and G3", Path: free, class: limiter.None},
		{name: "M1", class: limiter.Xen, period: 15, delta: 6.5, seed: limiter.Seed{Count: 800}, Path: sim.Path{
			Hops: []link.Spec{{Rate: unit.Gbit, Xen: &link.Xen{Interval: 15 * time.Millisecond, Tokens: 9841}, Queue: simtest.UnboundedQueue}},
			Work: 10 * time.Microsecond, Sleep: link.Active{On: 520 * time.Microsecond, Off: 119_480 * time.Microsecond},
		}},
		azure("M2", 130), azure("M3", 260),
	}
}

// Tables 4.2 to 4.4: by the seed's procedure each instance has the limiter, the rates and
// the pattern of the tables.
func TestSeedTables(t *testing.T) {
	for _, in := range instances() {
		in.Noise = 500 * time.Nanosecond
		s := sim.New(in.Path, 1)
		train, _ := in.seed.Next(nil)
		r, ok := in.seed.Estimate([]probe.Sample{s.Send(train)})
		if !ok || r.Class != in.class {
			t.Errorf("%s: detected %s: %+v", in.name, r.Class, r)
		}
		near := func(what string, got, want, off float64) {
			if want > 0 && math.Abs(got/want-1) > off {
				t.Errorf("%s: %s is %.4g, want %.4g", in.name, what, got, want)
			}
		}
		near("P", r.Peak/1e6, in.peak, 0.05)
		near("R", r.Token/1e6, in.token, 0.02)
		if in.class == limiter.Xen {
			near("T", r.Interval/1e6, in.period, 0.02)
			near("delta", r.Delta, in.delta, 0.05)
		} else {
			near("A + S", (r.Active+r.Sleeping)/1e6, in.period, 0.02)
			near("N", r.Packets, in.delta, 0.02)
		}
		if len(r.TokenGrants) < in.gifts {
			t.Errorf("%s: gifts at %v", in.name, r.TokenGrants)
		}
		t.Logf("%-9s %s: P %.0f R %.0f Mbit/s, gifts at %.2v; A %.2f S %.2f ms N %.0f; T %.2f ms delta %.2f", in.name, r.Class, r.Peak/1e6, r.Token/1e6, r.TokenGrants, r.Active/1e6, r.Sleeping/1e6, r.Packets, r.Interval/1e6, r.Delta)
	}
}

// Detector finds the patterns of table 4.3 within 5 %, and for the others what the budget
// can show: 5 MB do not empty the buckets of EC2 and Google.
func TestOursTables(t *testing.T) {
	for _, in := range instances() {
		in.Noise = 500 * time.Nanosecond
		p := limited{Path: in.Path}
		samples, _ := runLimited(t, &p, 1, limiter.Detector{})
		r := limiter.Detector{}.Estimate(samples)
		switch in.class {
		case limiter.Xen:
			if r.Ticks == nil || math.Abs(r.Ticks.Interval.Value/15e6-1) > 0.05 || math.Abs(r.Ticks.Packets.Value/in.delta-1) > 0.05 {
				t.Errorf("%s: %+v", in.name, r)
			}
		case limiter.Scheduling:
			if len(r.Schedules) == 0 || math.Abs((r.Schedules[0].Active.Value+r.Schedules[0].Sleeping.Value)/15e6-1) > 0.05 || math.Abs(r.Schedules[0].Packets.Value/in.delta-1) > 0.05 {
				t.Errorf("%s: %+v", in.name, r)
			}
		case limiter.TBF:
			if r.Class != limiter.None || r.Joint == nil {
				t.Errorf("%s: %+v", in.name, r)
			}
		}
		t.Logf("%s: %s, %.2f (%s: %s)", in.name, r.Class, r.Confidence, r.RunnerUp, r.Why)
	}
}
