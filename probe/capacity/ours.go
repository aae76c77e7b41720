package capacity

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"headgate/probe"
	"headgate/unit"
)

// Ours sends bursts, and reads the capacity from runs of packets that others' left
// alone.
type Ours struct {
	// Budget bounds what all trains send, in bytes of layer 2; 0 is 2 MB.
	Budget unit.Bytes
	// Time bounds how long that takes; 0 is a second.
	Time time.Duration
}

// Result is what a path's narrow link carries.
type Result struct {
	// Capacity is C, in bit/s of layer 2.
	Capacity probe.Estimate `json:"capacity"`
	// Limit, if a shaper or the like was met, is how many bytes of a burst passed
	// before it; 0: none was met.
	Limit unit.Bytes `json:"limit,omitempty"`
}

// train is bursts, each with small packets ahead that warm the receiver up.
func train(n, count, size int, pause time.Duration) (t probe.Train) {
	t.Purpose = "capacity/bursts"
	for b := range n {
		for i := range aheadCount {
			p := probe.Part{Count: 1, Size: aheadSize, Pause: aheadGap}
			if i == 0 {
				// Never in step with what else comes again and again: up to a half longer.
				_, golden := math.Modf(float64(b) * 0.618034)
				p.Pause = pause + time.Duration(golden*float64(pause)/2)
			}
			t.Parts = append(t.Parts, p)
		}
		t.Parts = append(t.Parts, probe.Part{Count: count, Size: size, Pause: aheadGap})
	}
	return t
}

// Next is the train that comes after those that were sent, or ok is false if there
// are enough.
func (m Ours) Next(samples []probe.Sample) (t probe.Train, ok bool) {
	budget := cmp.Or(m.Budget, oursBudget)
	left := cmp.Or(m.Time, oursTime).Seconds()
	for i := range samples {
		budget -= min(budget, samples[i].Bytes())
		if now := samples[i].Sent; len(now) > 0 && len(samples[0].Sent) > 0 {
			left = min(left, cmp.Or(m.Time, oursTime).Seconds()-float64(now[len(now)-1]-samples[0].Sent[0])/1e9)
		}
	}
	if len(samples) >= mostTrains {
		return probe.Train{}, false
	}
	if len(samples) == 0 {
		t = train(firstBursts, firstCount, small, firstPause)
		return t, t.Bytes() <= budget
	}
	f := look(samples)
	if f.gap == 0 && len(samples) < firstTries && len(samples[len(samples)-1].Arrived) > 0 {
		t = train(firstBursts, firstCount, small, firstPause)
		return t, t.Bytes() <= budget
	}
	if f.gap <= 0 || len(samples) > 1 && f.high-f.low < exact*f.gap {
		return probe.Train{}, false
	}
	count, size := f.shape(len(samples) == 1)
	bytes := float64(count * (size + probe.Overhead))
	took := bytes * f.perByte()
	// A bucket fills again at a tenth of the capacity, or what others leave of a fifth.
	pause := math.Max(float64(leastPause), 10*took)
	each := bytes + aheadCount*(aheadSize+probe.Overhead)
	lasts := (1.25*pause + aheadCount*float64(aheadGap) + took) / 1e9
	n := math.Max(20, math.Min(0.2/lasts, 300e3/each))
	n = math.Min(n, math.Min(float64(budget)/each, left/lasts))
	if n < 4 {
		return probe.Train{}, false
	}
	t = train(int(n), count, size, time.Duration(pause))
	return t, t.Bytes() <= budget
}

// shape is how many packets of what size the next bursts have. They should last long
// against the error of stamps, but pass before a limit, and be no longer than the
// runs that others' packets leave.
func (f found) shape(first bool) (count, size int) {
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
	case f.limit > 0 && f.limit*f.perByte() < 4*noise:
		return 2, max(aheadSize, min(full, int(0.9*f.bucket/2)-probe.Overhead))
	case f.kept || f.frame <= small+probe.Overhead && f.k <= f.usable/2:
		count = min(count, max(3, f.k*3/2))
	case bytes > 12*(full+probe.Overhead):
		return min(int(bytes/(full+probe.Overhead)), mostCount), full
	}
	return count, small
}

// Estimate is the capacity that all samples show.
func (m Ours) Estimate(samples []probe.Sample) (r Result) {
	f := look(samples)
	if f.values == nil {
		r.Capacity = probe.CannotTell(fmt.Sprintf("fewer than %d bursts arrived whole", least))
		return r
	}
	if f.took() < noise/2 {
		r.Capacity = probe.CannotTell("the packets of a burst were stamped at once")
		return r
	}
	r.Limit = unit.Bytes(f.limit)
	bits := f.frame * 8e9
	if a, b, ok := f.changed(); ok {
		r.Capacity = probe.CannotTell(fmt.Sprintf("some bursts came at %.0f Mbit/s, others at %.0f", bits/a/1e6, bits/b/1e6))
		return r
	}
	// What stamps are off by in the mean of all, more so where packets are so close that
	// they push each other's back; and what of others' packets reached into the mode.
	stamps := (off + pushed*math.Exp(-f.gap/noise)) / f.took()
	off := stamps*f.gap + beside*f.wide*(1-f.mode.share(f.values))
	r.Capacity = probe.Estimate{Value: bits / f.gap, Low: bits / (f.high + off), High: bits / (f.low - off)}
	if f.low <= off {
		r.Capacity = probe.Estimate{Value: r.Capacity.Low, Low: r.Capacity.Low, AtLeast: true}
	}
	return r
}
