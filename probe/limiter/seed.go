package limiter

import (
	"math"
	"slices"
	"time"

	"headgate/probe"
	"headgate/unit"
)

// Constants of the seed's chapter 4.
const (
	// sleepsFrom is where the second peak area of the sender's intervals begins: a
	// sleeping period is longer than 0.5 ms, and interrupt coalescing shorter than
	// 0.05 (4.4.2).
	sleepsFrom = 0.5e6 // ns
	// iperf says a rate a second (4.5.1).
	seedBin = time.Second
)

// Constants that the text leaves open.
const (
	// seedPeak is the width of a histogram's bin, and seedLeast the part of large
	// intervals that make a peak.
	seedPeak  = 0.25e6 // ns
	seedLeast = 0.1
	// seedLower is what P is above R at least, and seedSame by how much the receiver's
	// large intervals differ from the sender's when they are the same.
	seedLower = 1.2
	seedSame  = 0.2
	seedCount = 20_000
)

// Seed is the seed's procedure (4.3 to 4.5): one long train at the highest rate, the
// intervals between its packets at either end, and the rate as iperf shows it.
type Seed struct {
	// Count and Rate are the train's; 0 is 20,000 packets back to back.
	Count int
	Rate  unit.Rate
	// Bin is what a rate is taken over; 0 is the second of iperf.
	Bin time.Duration
}

// SeedResult is a row of tables 4.2 to 4.4.
type SeedResult struct {
	Class Class `json:"class"`
	// Active and Sleeping are A and S in ns, Packets N and Sending r of equation 4.1 in
	// bit/s; 0 if the sender does not sleep.
	Active   float64 `json:"active_ns,omitempty"`
	Sleeping float64 `json:"sleeping_ns,omitempty"`
	Packets  float64 `json:"packets,omitempty"`
	Sending  float64 `json:"sending,omitempty"`
	// Interval is T in ns and Delta in packets, of the receiver's large intervals.
	Interval float64 `json:"interval_ns,omitempty"`
	Delta    float64 `json:"delta,omitempty"`
	// Peak is P, and Token R, in bit/s.
	Peak  float64 `json:"peak,omitempty"`
	Token float64 `json:"token,omitempty"`
	// Gifts are the seconds after the fall to R in which more came (4.5.2).
	Gifts []float64 `json:"gifts,omitempty"`
}

// Next is the one train.
func (m Seed) Next(samples []probe.Sample) (t probe.Train, ok bool) {
	count := m.Count
	if count == 0 {
		count = seedCount
	}
	return probe.Uniform("limiter/seed", count, mtu, m.Rate), len(samples) == 0
}

// Estimate reads the train; ok is false if too little of it came.
func (m Seed) Estimate(samples []probe.Sample) (r SeedResult, ok bool) {
	trains, _ := read(samples)
	if len(trains) == 0 || len(trains[0].at) < leastTrain {
		return r, false
	}
	v := &trains[0]
	sender, receiver := large(v.sent), large(v.at)
	if sender.known() {
		r.Sleeping, r.Active, r.Packets = sender.interval, sender.between, sender.packets
		r.Sending = r.Packets * v.frame * 8e9 / (r.Active + r.Sleeping)
	}
	if receiver.known() {
		// Both 15 ms with 6.5 packets and 30 with 13 follow the pattern: the small one.
		r.Interval, r.Delta = receiver.smallest, receiver.least
	}
	m.rates(v, &r)
	switch {
	case receiver.known() && math.Abs(receiver.smallest/sender.smallest-1) > seedSame:
		r.Class = Xen
	case receiver.known():
		r.Class = Scheduling
	case r.Token > 0:
		r.Class = TBF
	default:
		r.Class = None
	}
	return r, true
}

// intervals are the large ones between packets: those of the second peak area.
type intervals struct {
	interval         float64 // median of the peaks
	between, packets float64 // medians of what lies between two of them
	smallest, least  float64 // the lowest peak, and mean packets before it
}

func (l intervals) known() bool { return l.interval > 0 }

func large(times []float64) (l intervals) {
	var values, between, packets []float64
	last := 0
	for i := 1; i < len(times); i++ {
		if d := times[i] - times[i-1]; d >= sleepsFrom {
			values = append(values, d)
			between = append(between, times[i-1]-times[last])
			packets = append(packets, float64(i-last))
			last = i
		}
	}
	if len(values) < leastTicks {
		return l
	}
	var peaks []float64
	modes := probe.NewHistogram(values, seedPeak).Modes(values, int(seedLeast*float64(len(values))))
	for _, m := range modes {
		peaks = append(peaks, m.At)
	}
	if len(peaks) == 0 {
		return l
	}
	l.interval, l.between, l.packets = median(peaks), median(between[1:]), median(packets[1:])
	l.smallest = peaks[0]
	n := 0.0
	for i, d := range values[1:] {
		if math.Abs(d-l.smallest) <= seedPeak {
			l.least += packets[i+1]
			n++
		}
	}
	if n > 0 {
		l.least /= n
	}
	return l
}

// rates reads (P, R, b)'s: a high rate at the beginning and a lower one later.
func (m Seed) rates(v *view, r *SeedResult) {
	bin := float64(m.Bin)
	if bin == 0 {
		bin = float64(seedBin)
	}
	rates := make([]float64, int((v.at[len(v.at)-1]-v.at[0])/bin)) // whole bins
	for _, at := range v.at {
		if i := int((at - v.at[0]) / bin); i < len(rates) {
			rates[i] += v.frame * 8e9 / bin
		}
	}
	if len(rates) < 4 {
		return
	}
	later := rates[len(rates)/2:]
	token := median(later)
	if rates[0] < seedLower*token {
		return
	}
	r.Peak, r.Token = slices.Max(rates), token
	fallen := false
	for i, rate := range rates {
		if rate < seedLower*token {
			fallen = true
		} else if fallen {
			r.Gifts = append(r.Gifts, float64(i)*bin/1e9)
		}
	}
}
