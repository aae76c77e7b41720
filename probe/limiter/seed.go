package limiter

import (
	"math"
	"slices"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// Constants of chapter 4 of the estimation seed.
const (
	// sleepsFrom is the begin of the second peak area of the sender's intervals: a
	// sleeping period is longer than 0.5 ms, and interrupt coalescing shorter than 0.05
	// ms (4.4.2).
	sleepsFrom = 0.5e6 // ns
	// seedBin: iperf prints one rate per second (4.5.1).
	seedBin = time.Second
)

// Constants that the text leaves open.
const (
	// seedPeak is the bin width of a histogram, and seedFraction the fraction of the large
	// intervals that makes a peak.
	seedPeak     = 0.25e6 // ns
	seedFraction = 0.1
	// seedLower is the minimum of P relative to R. seedSame is the relative difference up
	// to which the large intervals of the receiver and of the sender are the same.
	seedLower = 1.2
	seedSame  = 0.2
	seedCount = 20_000
)

// Seed is the procedure of the estimation seed (4.3 to 4.5): one long train at the
// highest rate, the intervals between its packets at either end, and the rate as iperf
// shows it.
type Seed struct {
	// Count and Rate are those of the train; 0 is 20,000 packets back to back.
	Count int
	Rate  unit.Rate
	// Bin is the averaging period of a rate; 0 is 1 s, as in iperf.
	Bin time.Duration
}

// SeedResult is a row of tables 4.2 to 4.4.
type SeedResult struct {
	Class Class `json:"class"`
	// Active is A and Sleeping is S in ns, Packets is N, and Sending is r of equation 4.1
	// in bit/s; 0 if the sender does not sleep.
	Active   float64 `json:"active_ns,omitempty"`
	Sleeping float64 `json:"sleeping_ns,omitempty"`
	Packets  float64 `json:"packets,omitempty"`
	Sending  float64 `json:"sending,omitempty"`
	// Interval is T in ns and Delta is in packets, from the large intervals of the
	// receiver.
	Interval float64 `json:"interval_ns,omitempty"`
	Delta    float64 `json:"delta,omitempty"`
	// Peak is P and Token is R, in bit/s.
	Peak  float64 `json:"peak,omitempty"`
	Token float64 `json:"token,omitempty"`
	// TokenGrants are the seconds after the fall to R with a higher rate (4.5.2).
	TokenGrants []float64 `json:"gifts,omitempty"`
}

// Next returns the only train.
func (m Seed) Next(samples []probe.Sample) (t probe.Train, ok bool) {
	count := m.Count
	if count == 0 {
		count = seedCount
	}
	return probe.Uniform("limiter/seed", count, mtu, m.Rate), len(samples) == 0
}

// Estimate evaluates the train; ok is false if too few packets arrived.
func (m Seed) Estimate(samples []probe.Sample) (r SeedResult, ok bool) {
	trains, _ := read(samples, fullFrame)
	if len(trains) == 0 || len(trains[0].at) < minTrain {
		return r, false
	}
	v := &trains[0]
	sender, receiver := large(v.sent), large(v.at)
	if sender.known() {
		r.Sleeping, r.Active, r.Packets = sender.interval, sender.between, sender.packets
		r.Sending = r.Packets * v.frame * 8e9 / (r.Active + r.Sleeping)
	}
	if receiver.known() {
		// Both 15 ms with 6.5 packets and 30 ms with 13 match the pattern: the small one
		// counts.
		r.Interval, r.Delta = receiver.smallest, receiver.delta
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

// intervals are the large intervals between packets: those of the second peak area.
type intervals struct {
	interval         float64 // median of the peaks
	between, packets float64 // medians of the time and the packets between two intervals
	smallest, delta  float64 // the lowest peak, and the mean number of packets before it
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
	if len(values) < minTicks {
		return l
	}
	var peaks []float64
	modes := probe.NewHistogram(values, seedPeak).Modes(values, int(seedFraction*float64(len(values))))
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
			l.delta += packets[i+1]
			n++
		}
	}
	if n > 0 {
		l.delta /= n
	}
	return l
}

// rates finds (P, R, b): a high rate at the beginning and a lower one later.
func (m Seed) rates(v *trainView, r *SeedResult) {
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
			r.TokenGrants = append(r.TokenGrants, float64(i)*bin/1e9)
		}
	}
}
