package compare

import (
	"cmp"
	"math"
	"slices"
)

// fit looks for the ratio at which windows of all lengths have a mode.
type fit struct {
	*windows
	back [][]float64
	mean float64
}

func newFit(w *windows, mean float64) *fit { return &fit{w, w.background(mean), mean} }

// evidence is what speaks for a ratio: by how much more likely the counts are if part
// of all windows are clean, which is to say that during k packets of the slower path k
// * gamma of the faster one's came, off by noise, and nobody else's were among them.
// The rest are as the background. Over all k it is summed by its logarithm: what the
// queues behind a narrow link do is strong at some k, the truth is there at all. A long
// window is clean only if the short ones in it are, so that without clean windows of
// the shortest k there is no evidence: it is a heap of queueing. Of 100 paths of figure
// 3.24 with 60 % on the fast one, 10 were off by a fifth without that, none is with it.
func (f *fit) evidence(gamma, noise float64) (all, raw float64) {
	seen := 0
	for i, k := range f.ks {
		if f.total[i] < least || noise > 0 && 2*noise > max(2, smoothness*float64(k)*f.mean) {
			continue
		}
		best := 0.0
		for _, part := range parts {
			best = max(best, f.gain(i, float64(k)*gamma, noise, part))
		}
		if seen++; best == 0 && seen <= surelyClean {
			return 0, 0
		}
		all += math.Log1p(best / enough)
		raw += best
	}
	off := math.Log(gamma/f.mean) / stray
	return all * math.Exp(-off*off/2), raw
}

// gain is what one k adds if such a part of its windows are clean.
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
		// Where among the clock's packets a window begins is left to chance.
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

// mode is a ratio and how much speaks for it.
type mode struct{ gamma, noise, evidence float64 }

// search tries ratios around the mean of all windows, and gives the best modes, the
// first first, that are apart from each other.
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

// refine looks around a mode for the likeliest ratio.
func (f *fit) refine(m mode) mode {
	most := 0.0
	at := m.gamma
	for g := at * (1 - 1.5*coarse); g <= at*(1+1.5*coarse); g *= 1 + fine {
		all, raw := f.evidence(g, m.noise)
		if m.noise > 0 {
			all *= soft
		}
		if raw > most {
			most = raw
			m.gamma, m.evidence = g, max(all, m.evidence)
		}
	}
	return m
}

// surelyClean are the shortest k of which a right ratio has clean windows.
const surelyClean = 3

// parts of all windows that are clean, as they are tried.
var parts = []float64{0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.75, 0.9, 0.97}

// noises of the receiver's order, in packets of the clock, as they are tried.
var noises = []float64{0, 2, 5}
