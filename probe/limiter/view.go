package limiter

import (
	"math"
	"slices"

	"headgate.dev/headgate/probe"
)

// trainView is one part of a sample without duplicates, without packets that were never sent,
// and without a clock that runs backwards.
type trainView struct {
	asked float64   // ns from packet to packet; 0 is back to back
	frame float64   // bytes
	full  bool      // packets are large enough to measure a limiter in bytes
	sent  []float64 // ns of the sender's clock, of each packet
	n     []int     // numbers of the packets that arrived, in that order
	at    []float64 // ns of the receiver's clock, for each of n

	overflow bool // the receiver's socket dropped packets: the loss is not the path's
	stepped  bool // the receiver's clock was set back: the rest is missing
	cut      bool // it was not sent completely

	stolen probe.StealTime // of the whole sample
}

const (
	// minTrain is the minimum number of packets of a train.
	minTrain = 20
	// backwards is the difference between timestamps and the order of arrival that shows
	// that the clock was set: kernel timestamps are within 1 us (measured).
	backwards = 1e6 // ns
)

// read cleans samples. A part that directly follows another is not used alone, because
// the other part affects it; short bursts are far enough apart. Times are relative to the
// first of all, so that float64 holds them exactly. Packets of at least full layer 2 bytes measure a limiter.
func read(samples []probe.Sample, full int) (trains, short []trainView) {
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
			v.full = v.frame >= float64(full)
			switch {
			case len(v.sent) >= minTrain && len(samples[i].Parts) == 1:
				trains = append(trains, v)
			case len(v.sent) > 1 && len(v.sent) < minTrain && v.asked == 0:
				short = append(short, v)
			}
		}
	}
	return trains, short
}

func split(s *probe.Sample, sent0, at0 int64) []trainView {
	views := make([]trainView, len(s.Parts))
	var part []int // part of each packet that was sent
	begin := make([]int, len(s.Parts))
	for i, p := range s.Parts {
		views[i] = trainView{asked: p.Gap(), frame: float64(p.Frame()), stolen: s.StealTime, overflow: s.Overflow > 0}
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
			// The later timestamps are from another clock setting.
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

// delay returns the one-way delay of arrival j, plus the constant difference of the
// clocks.
func (v *trainView) delay(j int) float64 { return v.at[j] - v.sent[v.n[j]] }

// fullFrame is the least layer 2 size of packets that measure a limiter in bytes, unless the method has another.
const fullFrame = 1000

// lost returns the fraction of the packets that never arrived.
func (v *trainView) lost() float64 { return 1 - float64(len(v.n))/float64(len(v.sent)) }

// rate returns the rate of packets in took ns, in bit/s.
func (v *trainView) rate(packets, took float64) float64 {
	if took <= 0 {
		return math.Inf(1)
	}
	return packets * v.frame * 8e9 / took
}

// offered returns the sending rate, without the times in which the sender stalled.
func (v *trainView) offered() float64 {
	last := len(v.sent) - 1
	took := v.sent[last] - v.sent[0]
	for _, s := range v.unsent() {
		took -= s.length()
	}
	return v.rate(float64(last), took)
}

// stretch returns the time of arrival of a train divided by its sending time. It uses the
// median delays of the first and the last quarter, which loss and a stalled processor
// hardly affect.
func (v *trainView) stretch() float64 {
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

// quantile returns a quantile of values in any order; 0 if there are none.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Clone(values)
	slices.Sort(s)
	return s[min(int(q*float64(len(s))), len(s)-1)]
}

func median(values []float64) float64 { return quantile(values, 0.5) }

// spread returns the mean and the standard deviation.
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
