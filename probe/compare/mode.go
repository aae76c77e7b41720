package compare

import (
	"cmp"
	"math"
	"slices"
)

// fit searches the ratio at which windows of all lengths have a mode.
type fit struct {
	*windows
	back [][]float64
	mean float64
}

func newFit(w *windows, mean float64) *fit { return &fit{w, w.background(mean), mean} }

// evidence returns the evidence for a ratio: the gain in log likelihood of the counts if
// a part of all windows is clean. During k packets of the slower path, a clean window has
// k * gamma packets of the faster one, plus noise, and no cross traffic. The other
// windows are distributed like the background. The logarithm of the gain is summed over
// all k: the effect of queues behind a narrow link is strong at some k, that of the true
// ratio is present at all. A long window is clean only if the short ones in it are.
// Without clean windows of the shortest k there is therefore no evidence, but a cluster
// due to queueing. Of 100 paths of figure 3.24 with 60 % of cross traffic on the fast
// one, 10 were off by a fifth without that rule, none with it.
func (f *fit) evidence(gamma, noise float64) (all, raw float64) {
	seen := 0
	for i, k := range f.ks {
		if f.total[i] < minWindows || noise > 0 && 2*noise > max(2, smoothness*float64(k)*f.mean) {
			continue
		}
		best := 0.0
		for _, part := range parts {
			best = max(best, f.gain(i, float64(k)*gamma, noise, part))
		}
		if seen++; best == 0 && seen <= requiredClean {
			return 0, 0
		}
		all += math.Log1p(best / enough)
		raw += best
	}
	off := math.Log(gamma/f.mean) / maxDeviation
	return all * math.Exp(-off*off/2), raw
}

// gain returns what one k adds to the evidence if the given part of its windows is clean.
func (f *fit) gain(i int, at, noise, part float64) float64 {
	counts, back := f.counts[i], f.back[i]
	rest := f.total[i]
	sum := 0.0
	add := func(d int, p float64) {
		if d < 0 || d >= len(counts) || counts[d] == 0 {
			return
		}
		rest -= counts[d]
		sum += counts[d] * math.Log(1-part+part*p/back[d])
	}
	low := int(math.Floor(at))
	if noise == 0 {
		// The start of a window between clock packets is random.
		part := at - float64(low)
		add(low, 1-part)
		add(low+1, part)
	} else {
		reach := int(3*noise) + 1
		for d := low - reach; d <= low+1+reach; d++ {
			off := (float64(d) - at) / noise
			add(d, math.Exp(-off*off/2)/(noise*math.Sqrt(2*math.Pi)))
		}
	}
	return sum + rest*math.Log(1-part)
}

// mode is a ratio with its evidence.
type mode struct{ gamma, noise, evidence float64 }

// search tries ratios around the mean of all windows. It returns the best modes that are
// apart from each other, the best one first.
func (f *fit) search() (modes []mode) {
	var tried []mode
	for _, n := range noises {
		for g := f.mean / reach; g <= f.mean*reach; g *= 1 + coarse {
			e, _ := f.evidence(g, n)
			if n > 0 {
				e *= soft
			}
			tried = append(tried, mode{g, n, e})
		}
	}
	slices.SortFunc(tried, func(a, b mode) int { return cmp.Compare(b.evidence, a.evidence) })
	for _, t := range tried {
		if len(modes) == candidates || len(modes) > 0 && t.evidence < modes[0].evidence/2 {
			break
		}
		if !slices.ContainsFunc(modes, func(m mode) bool { return math.Abs(math.Log(t.gamma/m.gamma)) < apart }) {
			modes = append(modes, f.refine(t))
		}
	}
	return modes
}

// refine searches the most likely ratio around a mode.
func (f *fit) refine(m mode) mode {
	best := 0.0
	at := m.gamma
	for g := at * (1 - 1.5*coarse); g <= at*(1+1.5*coarse); g *= 1 + fine {
		all, raw := f.evidence(g, m.noise)
		if m.noise > 0 {
			all *= soft
		}
		if raw > best {
			best = raw
			m.gamma, m.evidence = g, max(all, m.evidence)
		}
	}
	return m
}

// requiredClean is the number of shortest k at which the true ratio has clean windows.
const requiredClean = 3

// parts are the fractions of clean windows that are tried.
var parts = []float64{0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.75, 0.9, 0.97}

// noises are the values tried for the noise of the receiver's order, in packets of the
// clock.
var noises = []float64{0, 2, 5}
