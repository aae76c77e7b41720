package compare

import "math"

// windows counts, for some k, how many packets of the faster path arrived during k
// packets of the slower one: counts[i][d] windows of ks[i] packets had d.
type windows struct {
	ks     []int
	counts [][]float64
	total  []float64
}

// lengths returns the k that are counted: from windows of shortest clock packets, which
// distinguish one from two, to windows of longest full-size frames.
func lengths(mean, full float64) (ks []int) {
	for k := 1.0; k*mean <= max(longest*full, 4*shortest); k = math.Ceil(k * 1.2) {
		if k*mean >= shortest {
			ks = append(ks, int(k))
		}
	}
	return ks
}

// tally counts the windows of some stretches.
func tally(from []stretch, ks []int) *windows {
	w := &windows{ks: ks, counts: make([][]float64, len(ks)), total: make([]float64, len(ks))}
	for _, st := range from {
		w.add(st)
	}
	return w
}

func (w *windows) add(st stretch) {
	for i, k := range w.ks {
		end := 0
		for begin := range st {
			for end < len(st) && st[end].number < st[begin].number+k {
				end++
			}
			if end == len(st) {
				break
			}
			if st[end].number > st[begin].number+k {
				continue // lost or reordered
			}
			d := st[end].clock - st[begin].clock
			for len(w.counts[i]) <= d {
				w.counts[i] = append(w.counts[i], 0)
			}
			w.counts[i][d]++
			w.total[i]++
		}
	}
}

// background returns the counts without a mode: smoothed.
func (w *windows) background(mean float64) [][]float64 {
	out := make([][]float64, len(w.ks))
	for i, k := range w.ks {
		width := max(2, smoothness*float64(k)*mean)
		kernel := make([]float64, int(3*width)+1)
		sum := 0.0
		for o := range kernel {
			kernel[o] = math.Exp(-0.5 * float64(o*o) / (width * width))
			sum += 2 * kernel[o]
		}
		sum -= kernel[0]
		b := make([]float64, len(w.counts[i])+1)
		for d, n := range w.counts[i] {
			if n == 0 {
				continue
			}
			for o := 1 - len(kernel); o < len(kernel); o++ {
				// Mirror what would fall below 0.
				if at := max(d+o, -d-o); at < len(b) {
					b[at] += n / w.total[i] * kernel[max(o, -o)] / sum
				}
			}
		}
		for d := range b {
			b[d] += 1e-6
		}
		out[i] = b
	}
	return out
}

// plus adds the counts of o, which has the same k.
func (w *windows) plus(o *windows) {
	for i := range w.ks {
		for len(w.counts[i]) < len(o.counts[i]) {
			w.counts[i] = append(w.counts[i], 0)
		}
		for d, n := range o.counts[i] {
			w.counts[i][d] += n
		}
		w.total[i] += o.total[i]
	}
}
