package capacity

import (
	"math"

	"headgate/probe"
)

// found is what bursts of packets of one size show.
type found struct {
	mode
	values []value // that the mode is of
	from   int     // the place of the first packet that is in them
	cold   bool    // bursts' first gaps are too short
	k      int     // packets in each of their runs
	all    []burst
	frame  float64 // bytes
	burst  int     // packets in the longest burst
	usable int     // packets that pass before a limit
	// limit is how many bytes pass before a limit, and bucket how many pass it at
	// once; 0: none was met.
	limit, bucket float64
	// kept: packets of another size showed less.
	kept bool
	// other is the gap of packets of another size, as if they were of this one, if no
	// limit says why they came slower.
	other float64
	// low and high hold 90 % of the modes that resamples have.
	low, high float64
}

// perByte is the time of a byte.
func (f found) perByte() float64 { return f.gap / f.frame }

// took is from the first packet of a run to its last, in ns.
func (f found) took() float64 { return f.gap * float64(f.k-1) }

// look reads all samples: the most exact of the sizes, unless small packets met a
// limit before large ones could show anything else, or large ones are slower.
func look(samples []probe.Sample) (f found) {
	of := map[int][]burst{}
	var sizes []int
	var zero *origin
	for i := range samples {
		s := &samples[i]
		if len(s.Parts) == 0 || len(s.Arrived) == 0 || len(s.Sent) == 0 {
			continue
		}
		if zero == nil {
			zero = &origin{s.Sent[0], s.Arrived[0].At}
		}
		size := s.Parts[len(s.Parts)-1].Size
		if of[size] == nil {
			sizes = append(sizes, size)
		}
		of[size] = append(of[size], bursts(s, *zero)...)
	}
	for _, size := range sizes {
		g := lookAt(of[size], float64(size+probe.Overhead))
		if g.gap == 0 {
			continue
		}
		if f.gap > 0 {
			if !f.yieldsTo(g) {
				f.kept = true
				if f.limit == 0 && g.count >= least && g.perByte() > (1+changes)*f.perByte() {
					f.other = g.perByte() * f.frame
				}
				continue
			}
			if f.limit > 0 {
				g.limit, g.bucket = f.limit, f.bucket
			}
		}
		f = g
	}
	if f.gap > 0 {
		f.low, f.high = interval(f.values, f.wide)
	}
	return f
}

// yieldsTo tells whether another size's answer is the better one.
func (f found) yieldsTo(g found) bool {
	if g.burst == 2 {
		return true // pairs are sent where nothing else fits
	}
	if f.limit > 0 && g.frame*float64(g.usable) > f.limit {
		return false
	}
	same := g.perByte() < f.perByte()+sure*math.Hypot(f.error/f.frame, g.error/g.frame)
	return same && g.error/g.gap < f.error/f.gap
}

// gaps are those of all runs of k packets within a range of places, sorted. The less
// a run was delayed the more it weighs: what others' packets did to it, before the
// narrow link or behind, delayed it.
func gaps(all []burst, from, to, k int) (out []value) {
	for ; from+k <= to; from += k - 1 {
		for _, r := range runs(all, from, k) {
			scale := math.Max(lateNoise*noise, latePart*r.gap*float64(k-1))
			out = append(out, value{r.gap, 1 / (1 + math.Pow(r.late/scale, 4))})
		}
	}
	return sorted(out)
}

// modeOf is the mode of runs of k packets, in a window of two of the errors that
// stamps make in one.
func modeOf(values []value, k int) mode {
	n := float64(k)
	wide := math.Max(2*noise*math.Sqrt(12/(n*(n*n-1))), leastWide*values[len(values)/2].gap)
	m := densest(values, wide)
	// A few values may agree by chance.
	m.error = math.Max(m.error, wide/4/math.Sqrt(m.count)) * (1 + 4/m.count)
	return m
}

// lookAt finds how many packets of a burst pass before a limit, and what length of
// runs among those has the sharpest mode.
func lookAt(all []burst, frame float64) (f found) {
	n := longest(all)
	f.frame, f.burst, f.all = frame, n, all
	if n == 2 {
		return f.pairs(all)
	}
	f.cold = cold(all)
	head := f.head(all)
	if f.usable == 0 {
		return f
	}
	// Stamps keep their order, so that those of a burst's first packets, if these are
	// closer than stamps are exact, push each other back.
	if head.gap < 4*noise {
		f.from = min(int(math.Ceil(2*noise/math.Max(head.gap, 1))), f.usable/3)
	}
	if f.cold {
		f.from = max(f.from, min(2, f.usable-4), 1)
	}
	for k := 2; k <= f.usable-f.from; k = longer(k) {
		v := gaps(all, f.from, f.usable, k)
		if len(v) < least {
			break
		}
		m := modeOf(v, k)
		worse := m.error >= f.error && (f.wide <= 0.3*f.gap || m.wide >= f.wide)
		if f.gap > 0 && (m.count < 5 || f.count >= 5 && worse) {
			continue
		}
		f.mode, f.values, f.k = m, v, k
	}
	return f
}

// head grows runs from a burst's first packet on for as long as they agree with
// shorter ones, and finds the limit if one is why they no longer do.
func (f *found) head(all []burst) (head mode) {
	from := 0
	if f.cold {
		from = 1
	}
	for k := 2; from+k <= f.burst; k = longer(k) {
		v := gaps(all, from, from+k, k)
		if len(v) < least {
			break
		}
		m := modeOf(v, k)
		slower := m.gap > head.gap+sure*math.Hypot(m.error, head.error)
		if f.usable > 0 && slower && limited(all, from, f.usable, f.burst) {
			f.limit, f.bucket = frames(f, float64(f.usable)), frames(f, bucket(all, f.usable, f.burst))
			return head
		}
		if f.usable == 0 || !slower && m.error < head.error {
			head = m
		}
		f.usable = from + k
	}
	if b := headStart(all, head, f.usable); b > 0 {
		f.usable = int(b)
		f.limit, f.bucket = frames(f, b), frames(f, b)
	}
	return head
}

func frames(f *found, n float64) float64 { return n * f.frame }

// pairs are so close that stamps' errors are as large as their gap; as these keep
// their order, only the middle of all gaps is right.
func (f found) pairs(all []burst) found {
	f.values, f.k = gaps(all, 0, 2, 2), 2
	if len(f.values) < least {
		return f
	}
	for i, v := range f.values {
		f.values[i].weight = math.Sqrt(math.Sqrt(v.weight))
	}
	f.mode, f.usable = middle(f.values), 2
	return f
}

// cold tells whether the first gap of bursts is shorter than the second: a receiver
// that slept is late with the first packet.
func cold(all []burst) bool {
	a, b := runs(all, 0, 2), runs(all, 1, 2)
	if len(a) < least || len(b) < least {
		return false
	}
	first, wide := typical(a)
	second, wider := typical(b)
	off := sure * math.Hypot(wide, wider) / math.Sqrt(float64(min(len(a), len(b))))
	return first < second-off && first < coldLeast*second && first > coldMost*second
}

func longer(k int) int { return max(k+1, k*5/4) }
