package capacity

import (
	"math"

	"headgate.dev/headgate/probe"
)

// result is the result of bursts of packets of one size.
type result struct {
	mode
	values       []value // the gaps that the mode is computed from
	from         int     // index of the first packet in them
	receiverIdle bool    // the first gaps of bursts are too short
	k            int     // packets in each run
	all          []burst
	frame        float64 // bytes
	burst        int     // packets in the longest burst
	usable       int     // packets that pass before a limiter delays them
	// limit is the number of bytes that pass before a limiter delays packets, bucket the
	// number that passes at once. 0 means that no limiter was found.
	limit, bucket float64
	// kept is set if packets of another size gave a less exact result.
	kept bool
	// other is the gap of packets of another size, scaled to this size, if they arrived
	// slower without a limiter.
	other float64
	// low and high are the 90 % interval of the modes of resamples.
	low, high float64
}

// perByte returns the time of one byte.
func (f result) perByte() float64 { return f.gap / f.frame }

// took returns the time from the first to the last packet of a run, in ns.
func (f result) took() float64 { return f.gap * float64(f.k-1) }

// evaluate evaluates all samples. It returns the result of the packet size with the smallest
// error, unless small packets found a limiter that large ones reach first, or large
// packets are slower.
func evaluate(samples []probe.Sample) (f result) {
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
		g := evaluateSize(of[size], float64(size+probe.Overhead))
		if g.gap == 0 {
			continue
		}
		if f.gap > 0 {
			if !f.worseThan(g) {
				f.kept = true
				if f.limit == 0 && g.count >= minValues && g.perByte() > (1+changes)*f.perByte() {
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

// worseThan reports whether the result for another size is better.
func (f result) worseThan(g result) bool {
	if g.burst == 2 {
		return true // pairs are sent only where nothing longer passes
	}
	if f.limit > 0 && g.frame*float64(g.usable) > f.limit {
		return false
	}
	same := g.perByte() < f.perByte()+modeSigmas*math.Hypot(f.error/f.frame, g.error/g.frame)
	return same && g.error/g.gap < f.error/f.gap
}

// gaps returns the sorted gaps of all runs of k packets within [from, to). The weight of
// a run decreases with its delay: cross traffic before or behind the narrow link delayed
// it.
func gaps(all []burst, from, to, k int) (out []value) {
	for ; from+k <= to; from += k - 1 {
		for _, r := range runs(all, from, k) {
			scale := math.Max(lateNoise*timestampError, latePart*r.gap*float64(k-1))
			out = append(out, value{r.gap, 1 / (1 + math.Pow(r.delay/scale, 4))})
		}
	}
	return sorted(out)
}

// modeOf returns the mode of runs of k packets, in a window of twice the timestamp error
// of a run.
func modeOf(values []value, k int) mode {
	n := float64(k)
	wide := math.Max(2*timestampError*math.Sqrt(12/(n*(n*n-1))), minWide*values[len(values)/2].gap)
	m := densest(values, wide)
	// A few values may agree by chance.
	m.error = math.Max(m.error, wide/4/math.Sqrt(m.count)) * (1 + 4/m.count)
	return m
}

// evaluateSize finds how many packets of a burst pass before a limiter delays them, and the run
// length with the sharpest mode among those.
func evaluateSize(all []burst, frame float64) (f result) {
	n := longest(all)
	f.frame, f.burst, f.all = frame, n, all
	if n == 2 {
		return f.pairs(all)
	}
	f.receiverIdle = receiverIdle(all)
	head := f.head(all)
	if f.usable == 0 {
		return f
	}
	// Timestamps are in order. Those of the first packets of a burst therefore push each
	// other back if the packets are closer than the timestamp error.
	if head.gap < 4*timestampError {
		f.from = min(int(math.Ceil(2*timestampError/math.Max(head.gap, 1))), f.usable/3)
	}
	if f.receiverIdle {
		f.from = max(f.from, min(2, f.usable-4), 1)
	}
	for k := 2; k <= f.usable-f.from; k = longer(k) {
		v := gaps(all, f.from, f.usable, k)
		if len(v) < minValues {
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

// head extends runs from the first packet of a burst for as long as they agree with
// shorter runs. If a limiter is the reason why they no longer do, head sets limit and
// bucket.
func (f *result) head(all []burst) (head mode) {
	from := 0
	if f.receiverIdle {
		from = 1
	}
	for k := 2; from+k <= f.burst; k = longer(k) {
		v := gaps(all, from, from+k, k)
		if len(v) < minValues {
			break
		}
		m := modeOf(v, k)
		slower := m.gap > head.gap+modeSigmas*math.Hypot(m.error, head.error)
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

func frames(f *result, n float64) float64 { return n * f.frame }

// pairs evaluates packet pairs. Their gap is as small as the timestamp error, and
// timestamps are in order, so that only the median of all gaps is correct.
func (f result) pairs(all []burst) result {
	f.values, f.k = gaps(all, 0, 2, 2), 2
	if len(f.values) < minValues {
		return f
	}
	for i, v := range f.values {
		f.values[i].weight = math.Sqrt(math.Sqrt(v.weight))
	}
	f.mode, f.usable = middle(f.values), 2
	return f
}

// receiverIdle reports whether the first gap of bursts is shorter than the second: a receiver
// that was idle is late with the first packet.
func receiverIdle(all []burst) bool {
	a, b := runs(all, 0, 2), runs(all, 1, 2)
	if len(a) < minValues || len(b) < minValues {
		return false
	}
	first, wide := typical(a)
	second, wider := typical(b)
	off := modeSigmas * math.Hypot(wide, wider) / math.Sqrt(float64(min(len(a), len(b))))
	return first < second-off && first < maxCold*second && first > minCold*second
}

func longer(k int) int { return max(k+1, k*5/4) }
