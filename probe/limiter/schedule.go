package limiter

import (
	"math"
	"slices"

	"headgate.dev/headgate/probe"
)

// sleepPattern are the sleeping periods of an end that one train shows.
type sleepPattern struct {
	v        *trainView
	at       Place
	sleeping []float64 // ns
	active   []float64
	packets  []float64 // in one active period
	grain    float64   // ns: resolution of the measured periods
	clump    bool      // a clump of packets follows each period
}

// Constants chosen by Headgate. A processor that stalls once or twice in a run, for 1 to
// 11 ms (measured on hosts), is not a schedule.
const (
	minSleeps = 5
	// alike is the maximum relative difference between the quartiles of periods. With a
	// larger difference there must be manySleeps that are at least muchSleep of the time
	// (the seed's G2 sleeps for 1 ms or 5 ms).
	alike, manySleeps, muchSleep = 0.4, 8, 0.05
	// fewSleeps suffice if they are regular.
	fewSleeps    = 3
	regularSleep = 0.1
	// sameSleep and samePackets are the maximum relative differences between two sleeps
	// of a schedule. minSleep is the fraction of a sleep that remains visible while a
	// receiver takes full-size packets (measured: 0.85). minAlike is the minimum fraction
	// of the sleeps that are alike: the host itself sometimes stalls.
	sameSleep, samePackets, minSleep, minAlike = 0.03, 0.05, 0.7, 0.6
	// caughtUp is the maximum fraction of a silence that remains as delay when the next
	// one begins, if only the receiver was late.
	caughtUp = 0.3
)

// senderSleeps returns the sleeping periods of the sender in a train.
func (v *trainView) senderSleeps() sleepPattern {
	s := sleepPattern{v: v, at: Sender, grain: usual(v.sent, v.asked)}
	between := v.unsent()
	for i, b := range between {
		s.sleeping = append(s.sleeping, b.length())
		if i > 0 {
			before := between[i-1]
			s.active = append(s.active, b.from-before.to)
			s.packets = append(s.packets, float64(b.after-before.after))
		}
	}
	return s
}

// receiverSleeps returns the sleeping periods of the receiver in a train: sent packets arrive
// late, and in a clump.
func (v *trainView) receiverSleeps(between []silence) sleepPattern {
	s := sleepPattern{v: v, at: Receiver, grain: usual(v.at, v.asked)}
	for i, b := range between {
		s.sleeping = append(s.sleeping, b.length())
		if i > 0 {
			before := between[i-1]
			s.active = append(s.active, b.from-before.to)
			s.packets = append(s.packets, float64(b.after-before.after))
		}
	}
	return s
}

// scheduled reports whether the periods are from a schedule, and not from a processor
// that stalls occasionally: silences that recur after about the same time, or that are a
// considerable fraction of the time.
func (s *sleepPattern) scheduled() bool {
	n := len(s.sleeping)
	if n < fewSleeps {
		return false
	}
	var periods []float64
	asleep, all := 0.0, 0.0
	for i, a := range s.active {
		periods = append(periods, a+s.sleeping[i+1])
		asleep, all = asleep+s.sleeping[i+1], all+a+s.sleeping[i+1]
	}
	if n < minSleeps {
		mean, sd := spread(periods)
		length, off := spread(s.sleeping)
		return sd < regularSleep*mean && off < regularSleep*length+s.grain
	}
	if closeTo(s.sleeping, regularSleep) > minAlike && closeTo(s.packets, samePackets) > minAlike {
		return true
	}
	low, high := quantile(periods, 0.25), quantile(periods, 0.75)
	return high-low < alike*median(periods) || n >= manySleeps && asleep > muchSleep*all && high < 4*low
}

// explains reports whether the silences of another train are from this schedule: the
// number of packets between them is the same, even if these are larger, and the silences
// are as long except for the time to take the larger packets.
func (s *sleepPattern) explains(other *sleepPattern) bool {
	if len(s.packets) == 0 || len(other.packets) == 0 {
		return false
	}
	length := median(other.sleeping) / median(s.sleeping)
	return length > minSleep && length < 1+sameSleep &&
		math.Abs(median(other.packets)/median(s.packets)-1) < samePackets
}

// closeTo returns the fraction of the values that are near their median.
func closeTo(values []float64, off float64) float64 {
	m, n := median(values), 0.0
	for _, v := range values {
		if math.Abs(v-m) <= off*m {
			n++
		}
	}
	return n / math.Max(float64(len(values)), 1)
}

// catchesUp reports whether the delay of the train, at the begin of a silence, is back at
// its value at the begin of the previous silence. Then only the receiver was late.
func (v *trainView) catchesUp(between []silence) bool {
	if len(between) == 0 {
		return true
	}
	var left []float64
	for i, b := range between {
		if i > 0 {
			left = append(left, math.Abs(v.delay(b.after)-v.delay(between[i-1].after))/b.length())
		}
	}
	return median(left) < caughtUp
}

// schedule returns the parameters of the schedule. Each is the median (4.4.2). Its
// interval is that of a mean of so many values, and at least the time between two
// packets. Small packets do not show N: a busy end sends as many full-size packets as it
// can, at the rate line.
func (s *sleepPattern) schedule(at Place, line float64) Schedule {
	out := Schedule{At: at, Seen: len(s.sleeping)}
	// A sleep began up to one gap after its last packet.
	shift := 0.0
	if s.at == Sender {
		shift = s.grain / 2
	}
	out.Sleeping = typical(s.sleeping, -shift, shift)
	if len(s.active) == 0 {
		no := probe.NoEstimate("fewer than two sleeping periods were observed")
		out.Active, out.Packets, out.Rate = no, no, no
		return out
	}
	out.Active = typical(s.active, shift, shift)
	frame := s.v.frame
	if s.v.full || out.At == Receiver {
		// For a receiver the packets are counted, whatever their size.
		out.Packets = counted(s.packets)
	} else if line > 0 {
		// The packets that a busy sender would have sent.
		const bits = full * 8.0
		out.Packets = scale(out.Active, line/bits/1e9)
	} else {
		out.Packets = probe.NoEstimate("no train back to back shows the sending rate while the end is active")
	}
	if !s.v.full {
		frame = full
	}
	if !out.Packets.Known() {
		out.Rate = out.Packets
		return out
	}
	period := out.Active.Value + out.Sleeping.Value
	out.Rate = scale(out.Packets, frame*8e9/period) // equation 4.1
	st := s.v.stolen
	taken := float64(st.Sender)
	if s.at == Receiver {
		taken = float64(st.Receiver)
	}
	slept := 0.0
	for _, t := range s.sleeping {
		slept += t
	}
	out.Stolen = taken > slept/2
	return out
}

// full is the size of a full frame in bytes.
const full = 1500 + probe.Overhead

// middle returns the median of some values, and the 90 % interval of the median of many.
func middle(values []float64) (m, low, high float64) {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	n := float64(len(sorted))
	half := z90 * math.Sqrt(n) / 2
	low = sorted[int(math.Max(math.Floor(n/2-half), 0))]
	high = sorted[int(math.Min(math.Ceil(n/2+half), n-1))]
	return median(sorted), low, high
}

// typical returns a time that is measured with the resolution grain and by two clocks.
func typical(values []float64, shift, grain float64) probe.Estimate {
	m, low, high := middle(values)
	off := math.Hypot(math.Hypot(grain, stampError/2), clockPace*m)
	return probe.Estimate{
		Value: m + shift, Low: math.Max(m+shift-math.Hypot(m-low, off), 0), High: m + shift + math.Hypot(high-m, off),
	}
}

// counted returns a whole number.
func counted(values []float64) probe.Estimate {
	m, low, high := middle(values)
	return probe.Estimate{Value: m, Low: low - 0.5, High: high + 0.5}
}

func scale(e probe.Estimate, by float64) probe.Estimate {
	e.Value, e.Low, e.High = e.Value*by, e.Low*by, e.High*by
	return e
}
