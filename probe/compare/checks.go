package compare

import (
	"math"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// invalidReason returns the reason why samples cannot be evaluated, or "".
func invalidReason(samples []probe.JointSample) string {
	if len(samples) == 0 {
		return "no train was sent"
	}
	var came [2]int
	for i := range samples {
		s := &samples[i]
		if len(s.Trains) != 2 {
			return "exactly two senders are needed"
		}
		if s.Reordered {
			return reordered
		}
		for _, a := range s.Arrived {
			if a.From == 0 || a.From == 1 {
				came[a.From]++
			}
		}
	}
	if min(came[0], came[1]) < 2 {
		return silent
	}
	return ""
}

func blockBytes(samples []probe.JointSample) (b unit.Bytes) {
	for i := range samples {
		if samples[i].Purpose != blocksPurpose {
			continue
		}
		for _, p := range samples[i].Trains[0].Parts {
			b = max(b, unit.Bytes(p.Count*p.Frame()))
		}
	}
	return b
}

// change reports whether the ratio differs between the first and the last blocks of each
// joint: a bucket was emptied. It returns both groups.
func change(st []stretch) (early, late []stretch, changed bool) {
	for i, s := range st {
		// Numbers restart in each joint.
		switch n := place(st, i); {
		case n < 1.0/4:
			early = append(early, s)
		case n > 1.0/2:
			late = append(late, s)
		}
	}
	if len(early) < 2*minStretches || len(late) < 2*minStretches {
		return nil, nil, false
	}
	return early, late, differ(early, late)
}

// differ reports whether two sets of stretches have different mean ratios, by more than
// cross traffic causes by chance.
func differ(early, late []stretch) bool {
	a, b := slopes(early), slopes(late)
	by := math.Abs(a.mean - b.mean)
	return by > minChange && by > 5*math.Hypot(a.error, b.error)
}

// minChange is the minimum change of the logarithm of the ratio.
const minChange = 0.15

// place returns the position of a stretch in its joint, from 0 to 1.
func place(st []stretch, i int) float64 {
	from, to := i, i
	for from > 0 && st[from-1][0].number < st[from][0].number {
		from--
	}
	for to+1 < len(st) && st[to+1][0].number > st[to][0].number {
		to++
	}
	return (float64(i-from) + 0.5) / float64(to-from+1)
}

type average struct{ mean, error float64 }

// slopes returns the mean of the logarithms of the stretches' slopes, and its standard
// error.
func slopes(st []stretch) (a average) {
	sum, square, n := 0.0, 0.0, 0.0
	for i := range st {
		if v := math.Log(slope(st[i : i+1])); !math.IsInf(v, 0) && !math.IsNaN(v) {
			sum, square, n = sum+v, square+v*v, n+1
		}
	}
	if n < 2 {
		return average{0, math.Inf(1)}
	}
	a.mean = sum / n
	a.error = math.Sqrt(max(square/n-a.mean*a.mean, 0) / (n - 1))
	return a
}

// interleaved returns the fraction of the slower path's packets that have packets of the faster
// path on both sides. Without queueing that is all of them. Two receive queues with
// coalescing leave hardly any (figure 3.21): 0 to 3 % from 5 us on, where 60 simulated
// paths with the seed's cross traffic have 19 to 99 %.
func interleaved(st []stretch) float64 {
	single, all := 0, 0
	for _, s := range st {
		for i := 1; i+1 < len(s); i++ {
			all++
			if s[i].clock > s[i-1].clock && s[i+1].clock > s[i].clock {
				single++
			}
		}
	}
	return float64(single) / float64(max(all, 1))
}

// minInterleaved is the fraction below which the order is not that of the paths.
const minInterleaved = 0.08
