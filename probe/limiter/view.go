package limiter

import (
	"math"
	"slices"

	"headgate/probe"
)

// view is one part of a sample, cleaned: no packet twice, none that was never sent,
// no clock that runs backwards.
type view struct {
	asked float64   // ns from packet to packet; 0 is back to back
	frame float64   // bytes
	sent  []float64 // ns of the sender's clock, of each packet
	n     []int     // of those that arrived, in that order
	at    []float64 // ns of the receiver's clock, alike

	overflow bool // the receiver dropped packets itself: what is lost says nothing
	stepped  bool // its clock was set back: the rest is missing
	cut      bool // it was not sent to its end

	stolen probe.Stolen // of the whole sample
}

const (
	// leastTrain packets make a train; fewer are a pair or a little more.
	leastTrain = 20
	// backwards is by how much stamps may disagree with the order of arrival before
	// the clock was set: kernel stamps are within 1 us (measured).
	backwards = 1e6 // ns
)

// read cleans samples. A part that follows another says nothing for itself: what it
// meets is the one before. Short bursts are far enough apart. Times are from the first of all on, so that they are small
// enough for float64.
func read(samples []probe.Sample) (trains, short []view) {
	sent0, at0 := int64(math.MaxInt64), int64(math.MaxInt64)
	for i := range samples {
		for _, t := range samples[i].Sent {
			sent0 = min(sent0, t)
		}
		for _, a := range samples[i].Arrived {
			at0 = min(at0, a.At)
		}
	}
	for i := range samples {
		for _, v := range split(&samples[i], sent0, at0) {
			switch {
			case len(v.sent) >= leastTrain && len(samples[i].Parts) == 1:
				trains = append(trains, v)
			case len(v.sent) > 1 && len(v.sent) < leastTrain && v.asked == 0:
				short = append(short, v)
			}
		}
	}
	return trains, short
}

func split(s *probe.Sample, sent0, at0 int64) []view {
	views := make([]view, len(s.Parts))
	var part []int // of each packet that was sent
	begin := make([]int, len(s.Parts))
	for i, p := range s.Parts {
		views[i] = view{asked: p.Gap(), frame: float64(p.Frame()), stolen: s.Stolen, overflow: s.Overflow > 0}
		begin[i] = len(part)
		last := 0.0
		for range min(p.Count, len(s.Sent)-len(part)) {
			last = max(last, float64(s.Sent[len(part)]-sent0))
			views[i].sent = append(views[i].sent, last)
			part = append(part, i)
		}
		views[i].cut = len(views[i].sent) < p.Count
	}
	seen := make([]bool, len(part))
	last := math.Inf(-1)
	for _, a := range s.Arrived {
		if a.Number < 0 || a.Number >= len(part) || seen[a.Number] {
			continue
		}
		at := float64(a.At - at0)
		v := &views[part[a.Number]]
		if at < last-backwards {
			// What comes after has another clock.
			for i := range views {
				views[i].stepped = true
			}
			break
		}
		seen[a.Number] = true
		last = max(last, at)
		v.n = append(v.n, a.Number-begin[part[a.Number]])
		v.at = append(v.at, last)
	}
	return views
}

// delay is the one-way delay of arrival j, but for what the clocks differ by.
func (v *view) delay(j int) float64 { return v.at[j] - v.sent[v.n[j]] }

// full tells whether packets are large enough to measure a limiter in bytes.
func (v *view) full() bool { return v.frame >= fullFrame }

const fullFrame = 1000

// lost is the part of what was sent that never came.
func (v *view) lost() float64 { return 1 - float64(len(v.n))/float64(len(v.sent)) }

// rate of so many packets in so many ns, in bit/s.
func (v *view) rate(packets, took float64) float64 {
	if took <= 0 {
		return math.Inf(1)
	}
	return packets * v.frame * 8e9 / took
}

// offered is what it was sent at, but for when its sender stood still.
func (v *view) offered() float64 {
	last := len(v.sent) - 1
	took := v.sent[last] - v.sent[0]
	for _, s := range v.unsent() {
		took -= s.length()
	}
	return v.rate(float64(last), took)
}

// stretch is how much longer it took to come than it had taken to send, by the
// medians of the delays of its first and its last quarter: neither what was lost nor
// a processor that stood still changes much of it.
func (v *view) stretch() float64 {
	quarter := max(len(v.at)/4, 1)
	var early, late, from, to []float64
	for j := range quarter {
		k := len(v.at) - quarter + j
		early, late = append(early, v.delay(j)), append(late, v.delay(k))
		from, to = append(from, v.sent[v.n[j]]), append(to, v.sent[v.n[k]])
	}
	sent := median(to) - median(from)
	if sent <= 0 {
		return math.Inf(1)
	}
	return 1 + (median(late)-median(early))/sent
}

func gaps(times []float64) []float64 {
	out := make([]float64, 0, len(times))
	for i := 1; i < len(times); i++ {
		out = append(out, times[i]-times[i-1])
	}
	return out
}

// quantile of values in any order; 0 of none.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Clone(values)
	slices.Sort(s)
	return s[min(int(q*float64(len(s))), len(s)-1)]
}

func median(values []float64) float64 { return quantile(values, 0.5) }

// spread is the mean and the standard deviation.
func spread(values []float64) (mean, sd float64) {
	for _, v := range values {
		mean += v
	}
	mean /= float64(len(values))
	for _, v := range values {
		sd += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(sd / math.Max(float64(len(values)-1), 1))
}
