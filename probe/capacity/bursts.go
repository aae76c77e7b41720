package capacity

import (
	"math"
	"slices"

	"headgate/probe"
)

// burst is packets that left back to back: when each was sent and came, in ns, and
// NaN for one that did not come, or not in its turn.
type burst struct{ sent, came []float64 }

// origin is what times are counted from, so that a float holds them to the ns: the
// first sample's first packet, by either end's clock.
type origin struct{ sent, came int64 }

// bursts are those of a sample, without the packets that go ahead of them.
func bursts(s *probe.Sample, zero origin) (out []burst) {
	var owner, place []int // of each packet
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

// run is some packets in a row of one burst.
type run struct {
	// gap is the time from one packet to the next, by a straight line through all.
	gap float64
	// late is how much later they came, in the mean, than those that waited least.
	late float64
	at   float64 // when the first was sent
}

// run is k packets from one place on; ok is false if not all of them came.
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
	r = run{gap: moment * 12 / (n * (n*n - 1)), late: sum / n, at: b.sent[from]}
	return r, !math.IsNaN(sum)
}

// runs are all bursts' k packets from one place on.
func runs(all []burst, from, k int) (out []run) {
	for _, b := range all {
		if r, ok := b.run(from, k); ok {
			out = append(out, r)
		}
	}
	lateness(out)
	return out
}

// lateness takes from each run's delay the least that a run had about then. The two
// clocks' paces differ, so that the least is a line: of the lower hull of all delays
// the edge below their middle. One that is steeper than clocks are off is a clock
// that was set, and then the least of all has to do.
func lateness(out []run) {
	if len(out) == 0 {
		return
	}
	var hull []run
	least, middle := math.Inf(1), 0.0
	for _, r := range out {
		least = math.Min(least, r.late)
		middle += r.at / float64(len(out))
		for n := len(hull); n >= 2; n = len(hull) {
			a, b := hull[n-2], hull[n-1]
			if (b.late-a.late)*(r.at-a.at) < (r.late-a.late)*(b.at-a.at) {
				break
			}
			hull = hull[:n-1]
		}
		hull = append(hull, r)
	}
	base, slope := run{late: least}, 0.0
	for j := 1; j < len(hull); j++ {
		if a, b := hull[j-1], hull[j]; b.at >= middle {
			if s := (b.late - a.late) / (b.at - a.at); math.Abs(s) <= mostSkew {
				base, slope = a, s
			}
			break
		}
	}
	for i := range out {
		out[i].late = math.Max(out[i].late-base.late-slope*(out[i].at-base.at), 0)
	}
}

// typical is the middle of all runs' gaps, and how far about two thirds are from it.
func typical(all []run) (middle, wide float64) {
	gaps := make([]float64, len(all))
	for i, r := range all {
		gaps[i] = r.gap
	}
	slices.Sort(gaps)
	at := func(q float64) float64 { return gaps[int(q*float64(len(gaps)-1))] }
	return at(0.5), (at(0.84) - at(0.16)) / 2
}

// longest is how many packets the longest burst has.
func longest(all []burst) (n int) {
	for _, b := range all {
		n = max(n, len(b.came))
	}
	return n
}
