package capacity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// Bursts sends bursts, and computes the capacity from runs of packets that cross traffic
// did not delay.
type Bursts struct {
	// Budget bounds the layer 2 bytes of all trains; 0 is 2 MB.
	Budget unit.Bytes
	// Time bounds the duration of all trains; 0 is 1 s.
	Time time.Duration
}

// Result is the result for a path's narrow link.
type Result struct {
	// Capacity is C, in bit/s of layer 2.
	Capacity probe.Estimate `json:"capacity"`
	// Limit is how many bytes of a burst passed before a shaper or other limiter delayed
	// them; 0 means that none was found.
	Limit unit.Bytes `json:"limit,omitempty"`
}

// train returns a train of bursts, each after small packets that warm the receiver up.
func train(n, count, size int, pause time.Duration) (t probe.Train) {
	t.Purpose = purposeBursts
	for b := range n {
		for i := range aheadCount {
			p := probe.Part{Count: 1, Size: aheadSize, Pause: aheadGap}
			if i == 0 {
				// Pauses vary by up to a half, so that bursts never synchronize with a
				// periodic process.
				_, golden := math.Modf(float64(b) * 0.618034)
				p.Pause = pause + time.Duration(golden*float64(pause)/2)
			}
			t.Parts = append(t.Parts, p)
		}
		t.Parts = append(t.Parts, probe.Part{Count: count, Size: size, Pause: aheadGap})
	}
	return t
}

// Next returns the next train for the samples so far. ok is false if they suffice.
func (m Bursts) Next(samples []probe.Sample) (t probe.Train, ok bool) {
	own := slices.DeleteFunc(slices.Clone(samples), func(s probe.Sample) bool { return s.Purpose == purposeScout })
	budget := cmp.Or(m.Budget, oursBudget)
	left := cmp.Or(m.Time, oursTime).Seconds()
	for i := range samples {
		budget -= min(budget, samples[i].Bytes())
	}
	for i := range own {
		if now := own[i].Sent; len(now) > 0 && len(own[0].Sent) > 0 {
			left = min(left, cmp.Or(m.Time, oursTime).Seconds()-float64(now[len(now)-1]-own[0].Sent[0])/1e9)
		}
	}
	if len(samples) >= maxTrains {
		return probe.Train{}, false
	}
	if len(samples) == 0 {
		t = scout()
		return t, t.Bytes() <= budget
	}
	f := evaluate(own)
	if rate := Scouted(samples); rate < SlowLink {
		if f.gap > 0 && f.high-f.low < narrowEnough*f.gap {
			return t, false
		}
		t = slowTrain(rate, left, budget)
		return t, len(t.Parts) >= minValues
	}
	if len(own) == 0 || f.gap == 0 && len(own) < firstTries && len(samples[len(samples)-1].Arrived) > 0 {
		t = train(firstBursts, firstCount, small, firstPause)
		return t, t.Bytes() <= budget
	}
	if f.gap <= 0 || len(own) > 1 && f.high-f.low < narrowEnough*f.gap {
		return probe.Train{}, false
	}
	count, size := f.shape(len(own) == 1)
	bytes := float64(count * (size + probe.Overhead))
	took := bytes * f.perByte()
	// A bucket refills at a tenth of the capacity, or at what cross traffic leaves of a
	// fifth.
	pause := math.Max(float64(minPause), 10*took)
	each := bytes + aheadCount*(aheadSize+probe.Overhead)
	if met := Met(samples); met < SlowLink {
		pause = math.Max(pause, 2*each*8e9/met)
	}
	lasts := (1.25*pause + aheadCount*float64(aheadGap) + took) / 1e9
	n := math.Max(20, math.Min(0.2/lasts, 300e3/each))
	n = math.Min(n, math.Min(float64(budget)/each, left/lasts))
	if n < 4 {
		return probe.Train{}, false
	}
	t = train(int(n), count, size, time.Duration(pause))
	return t, t.Bytes() <= budget
}

// shape returns the number and size of the packets of the next bursts. A burst should
// last long compared with the timestamp error, but pass before a limiter delays it, and
// be no longer than the runs that cross traffic leaves undisturbed.
func (f result) shape(first bool) (count, size int) {
	bytes := target / f.perByte()
	if first {
		bytes = math.Max(bytes, 4*(small+probe.Overhead))
	}
	if f.limit > 0 {
		bytes = math.Min(bytes, f.limit+f.frame)
	}
	count = max(3, min(int(bytes/(small+probe.Overhead)), firstCount))
	switch {
	case first:
	case f.limit > 0 && f.limit*f.perByte() < 4*timestampError:
		return 2, max(aheadSize, min(full, int(0.9*f.bucket/2)-probe.Overhead))
	case f.kept || f.frame <= small+probe.Overhead && f.k <= f.usable/2:
		count = min(count, max(3, f.k*3/2))
	case bytes > 12*(full+probe.Overhead):
		return min(int(bytes/(full+probe.Overhead)), maxCount), full
	}
	return count, small
}

// Estimate returns the capacity that the samples show.
func (m Bursts) Estimate(samples []probe.Sample) (r Result) {
	f := evaluate(samples)
	if f.values == nil {
		r.Capacity = probe.NoEstimate(fmt.Sprintf("fewer than %d bursts arrived complete", minValues))
		return r
	}
	if f.took() < timestampError/2 {
		r.Capacity = probe.NoEstimate("all packets of a burst have the same timestamp")
		return r
	}
	if Scouted(samples) < SlowLink && f.high-f.low > slowWide*f.gap {
		r.Capacity = probe.NoEstimate("others' traffic was between the packets of most bursts")
		return r
	}
	r.Limit = unit.Bytes(f.limit)
	bits := f.frame * 8e9
	if a, b, ok := f.changed(); ok {
		r.Capacity = probe.NoEstimate(fmt.Sprintf("some bursts arrived at %.0f Mbit/s, others at %.0f", bits/a/1e6, bits/b/1e6))
		return r
	}
	// The mean error of all timestamps, which is larger where packets are so close that
	// their timestamps push each other back; and the cross traffic that reached into the
	// mode.
	stamps := (meanTimestampError + pushed*math.Exp(-f.gap/timestampError)) / f.took()
	off := stamps*f.gap + crossTrafficShift*f.wide*(1-f.mode.share(f.values))
	r.Capacity = probe.Estimate{Value: bits / f.gap, Low: bits / (f.high + off), High: bits / (f.low - off)}
	r.Capacity.High = math.Max(r.Capacity.High, bits/f.fastest())
	if f.low <= off {
		r.Capacity = probe.Estimate{Value: r.Capacity.Low, Low: r.Capacity.Low, AtLeast: true}
	}
	return r
}
