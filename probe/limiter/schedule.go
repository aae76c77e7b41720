package limiter

import (
	"math"
	"slices"

	"headgate/probe"
)

// sleeps are an end's sleeping periods as one train shows them.
type sleeps struct {
	v        *view
	at       Place
	sleeping []float64 // ns
	active   []float64
	packets  []float64 // in an active period
	grain    float64   // ns: how exactly they are seen
	clump    bool      // packets came in one after each
}

// Constants, ours. A processor that stands still once or twice in a run, for 1 to
// 11 ms (measured on hosts), is not a schedule.
const (
	leastSleeps = 5
	// alike are periods whose quartiles differ by less than this part of them; else there
	// must be manySleeps that are muchSleep of all time (the seed's G2 sleeps 1 ms or 5).
	alike, manySleeps, muchSleep = 0.4, 8, 0.05
	// fewSleeps are enough if they are regular.
	fewSleeps    = 3
	regularSleep = 0.1
	// sameSleep and samePackets are by how much two sleeps of a schedule differ; leastSleep
	// is what remains of one while a receiver takes full packets (measured: 0.85); mostOf
	// them are alike, although the host itself stood still now and then.
	sameSleep, samePackets, leastSleep, mostOf = 0.03, 0.05, 0.7, 0.6
	// caughtUp is what remains of a silence as delay when the next one begins, if the
	// packets were only taken late.
	caughtUp = 0.3
)

// asleep is the sender's sleep in a train.
func (v *view) asleep() sleeps {
	s := sleeps{v: v, at: Sender, grain: usual(v.sent, v.asked)}
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

// suspended is the receiver's sleep in a train: what had been sent comes late, and in
// a clump.
func (v *view) suspended(between []silence) sleeps {
	s := sleeps{v: v, at: Receiver, grain: usual(v.at, v.asked)}
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

// scheduled tells whether it is a schedule, and not a processor that stood still now
// and then: silences that come again after about the same time, or so many that they
// are a part of all time.
func (s *sleeps) scheduled() bool {
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
	if n < leastSleeps {
		mean, sd := spread(periods)
		length, off := spread(s.sleeping)
		return sd < regularSleep*mean && off < regularSleep*length+s.grain
	}
	if closeTo(s.sleeping, regularSleep) > mostOf && closeTo(s.packets, samePackets) > mostOf {
		return true
	}
	low, high := quantile(periods, 0.25), quantile(periods, 0.75)
	return high-low < alike*median(periods) || n >= manySleeps && asleep > muchSleep*all && high < 4*low
}

// explains tells whether silences in another train are of this schedule: with as many
// packets between them, although these may be larger, and as long but for the time in
// which these are taken.
func (s *sleeps) explains(other *sleeps) bool {
	if len(s.packets) == 0 || len(other.packets) == 0 {
		return false
	}
	length := median(other.sleeping) / median(s.sleeping)
	return length > leastSleep && length < 1+sameSleep &&
		math.Abs(median(other.packets)/median(s.packets)-1) < samePackets
}

// closeTo is the part of values that are near their median.
func closeTo(values []float64, off float64) float64 {
	m, n := median(values), 0.0
	for _, v := range values {
		if math.Abs(v-m) <= off*m {
			n++
		}
	}
	return n / math.Max(float64(len(values)), 1)
}

// catchesUp tells whether the train's delay is back, as a silence begins, where it was
// when the one before did: then nothing but the taking was late.
func (v *view) catchesUp(between []silence) bool {
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

// schedule are its parameters. Each is the median (4.4.2), whose interval is that of
// a mean of so many, and no less than the time between two packets allows.
// Small packets show no N: a busy end sends as many full ones as it can, at line.
func (s *sleeps) schedule(at Place, line float64) Schedule {
	out := Schedule{At: at, Seen: len(s.sleeping)}
	// The last packet before a sleep came up to a gap before it began.
	shift := 0.0
	if s.at == Sender {
		shift = s.grain / 2
	}
	out.Sleeping = typical(s.sleeping, -shift, shift)
	if len(s.active) == 0 {
		no := probe.CannotTell("fewer than two sleeping periods were seen")
		out.Active, out.Packets, out.Rate = no, no, no
		return out
	}
	out.Active = typical(s.active, shift, shift)
	frame := s.v.frame
	if s.v.full() || out.At == Receiver {
		// A receiver's are counted, however large.
		out.Packets = counted(s.packets)
	} else if line > 0 {
		// What a busy sender would have sent meanwhile.
		const bits = full * 8.0
		out.Packets = scale(out.Active, line/bits/1e9)
	} else {
		out.Packets = probe.CannotTell("no train back to back shows how fast it sends while it runs")
	}
	if !s.v.full() {
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

// full is a full frame's bytes.
const full = 1500 + probe.Overhead

// middle is the median of some values, and between which of them the median of many
// would be in 90 % of cases.
func middle(values []float64) (m, low, high float64) {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	n := float64(len(sorted))
	half := z90 * math.Sqrt(n) / 2
	low = sorted[int(math.Max(math.Floor(n/2-half), 0))]
	high = sorted[int(math.Min(math.Ceil(n/2+half), n-1))]
	return median(sorted), low, high
}

// typical is a time, which is seen with a grain and by two clocks.
func typical(values []float64, shift, grain float64) probe.Estimate {
	m, low, high := middle(values)
	off := math.Hypot(math.Hypot(grain, stampError/2), clockPace*m)
	return probe.Estimate{
		Value: m + shift, Low: math.Max(m+shift-math.Hypot(m-low, off), 0), High: m + shift + math.Hypot(high-m, off),
	}
}

// counted is a whole number.
func counted(values []float64) probe.Estimate {
	m, low, high := middle(values)
	return probe.Estimate{Value: m, Low: low - 0.5, High: high + 0.5}
}

func scale(e probe.Estimate, by float64) probe.Estimate {
	e.Value, e.Low, e.High = e.Value*by, e.Low*by, e.High*by
	return e
}
