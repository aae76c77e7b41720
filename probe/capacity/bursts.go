package capacity

import (
	"math"
	"slices"

	"headgate.dev/headgate/probe"
)

// burst is the send and arrival times, in ns, of packets that were sent back to back. The
// arrival time of a lost or reordered packet is NaN.
type burst struct{ sent, came []float64 }

// origin is the zero point of the times, so that a float64 holds them exactly to 1 ns:
// the first packet of the first sample, at each end's clock.
type origin struct{ sent, came int64 }

// bursts returns the bursts of a sample, without the warm-up packets before each.
func bursts(s *probe.Sample, zero origin) (out []burst) {
	var owner, place []int // burst and index of each packet
	for _, p := range s.Parts {
		b := -1
		if number := len(owner); p.Count > 1 && number+p.Count <= len(s.Sent) {
			b = len(out)
			out = append(out, burst{make([]float64, p.Count), make([]float64, p.Count)})
			for i := range p.Count {
				out[b].sent[i] = float64(s.Sent[number+i] - zero.sent)
				out[b].came[i] = math.NaN()
			}
		}
		for i := range p.Count {
			owner, place = append(owner, b), append(place, i)
		}
	}
	latest := -1
	for _, a := range s.Arrived {
		if a.Number <= latest || a.Number >= len(owner) {
			continue
		}
		latest = a.Number
		if b := owner[latest]; b >= 0 {
			out[b].came[place[latest]] = float64(a.At - zero.came)
		}
	}
	return out
}

// run is a sequence of consecutive packets of one burst.
type run struct {
	// gap is the time between packets: the slope of a regression line through all.
	gap float64
	// delay is the mean delay above that of the least delayed runs.
	delay float64
	at    float64 // send time of the first packet
}

// run returns the run of k packets that begins at index from; ok is false if not all of
// them arrived.
func (b burst) run(from, k int) (r run, ok bool) {
	if from+k > len(b.came) {
		return run{}, false
	}
	middle, n := float64(k-1)/2, float64(k)
	sum, moment := 0.0, 0.0
	for i := range k {
		t := b.came[from+i]
		sum += t - b.sent[from+i]
		moment += t * (float64(i) - middle)
	}
	r = run{gap: moment * 12 / (n * (n*n - 1)), delay: sum / n, at: b.sent[from]}
	return r, !math.IsNaN(sum)
}

// runs returns the run of k packets at index from of each burst.
func runs(all []burst, from, k int) (out []run) {
	for _, b := range all {
		if r, ok := b.run(from, k); ok {
			out = append(out, r)
		}
	}
	lateness(out)
	return out
}

// lateness subtracts from the delay of each run the least delay of a run at about that
// time. The two clocks run at different rates, so that the least delay is a line over
// time: the edge of the lower hull of all delays that is below their middle. An edge that
// is steeper than maxSkew is from a clock that was set; then the minimum of all delays
// is subtracted.
func lateness(out []run) {
	if len(out) == 0 {
		return
	}
	var hull []run
	lowest, middle := math.Inf(1), 0.0
	for _, r := range out {
		lowest = math.Min(lowest, r.delay)
		middle += r.at / float64(len(out))
		for n := len(hull); n >= 2; n = len(hull) {
			a, b := hull[n-2], hull[n-1]
			if (b.delay-a.delay)*(r.at-a.at) < (r.delay-a.delay)*(b.at-a.at) {
				break
			}
			hull = hull[:n-1]
		}
		hull = append(hull, r)
	}
	base, slope := run{delay: lowest}, 0.0
	for j := 1; j < len(hull); j++ {
		if a, b := hull[j-1], hull[j]; b.at >= middle {
			if s := (b.delay - a.delay) / (b.at - a.at); math.Abs(s) <= maxSkew {
				base, slope = a, s
			}
			break
		}
	}
	for i := range out {
		out[i].delay = math.Max(out[i].delay-base.delay-slope*(out[i].at-base.at), 0)
	}
}

// typical returns the median gap of all runs, and half the width of the middle two
// thirds.
func typical(all []run) (middle, wide float64) {
	gaps := make([]float64, len(all))
	for i, r := range all {
		gaps[i] = r.gap
	}
	slices.Sort(gaps)
	at := func(q float64) float64 { return gaps[int(q*float64(len(gaps)-1))] }
	return at(0.5), (at(0.84) - at(0.16)) / 2
}

// longest returns the number of packets of the longest burst.
func longest(all []burst) (n int) {
	for _, b := range all {
		n = max(n, len(b.came))
	}
	return n
}
