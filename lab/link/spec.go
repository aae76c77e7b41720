package link

import (
	"fmt"
	"time"

	"headgate.dev/headgate/unit"
)

// Spec specifies one direction of a link. The zero Spec passes everything immediately.
type Spec struct {
	// Rate of the serialiser in layer-2 bits per second; 0 is unlimited.
	Rate unit.Rate `json:",omitempty"`
	// Delay is the time from the end of the serialiser to the receiver.
	Delay time.Duration `json:",omitempty"`
	// Jitter varies the delay of each segment.
	Jitter Jitter `json:",omitzero"`
	// Loss is drawn for each segment after the serialiser.
	Loss Loss `json:",omitzero"`
	// Queue is the queue limit; the zero Amount is DefaultQueue.
	Queue Amount `json:",omitzero"`
	// RED drops or marks early; the most specific profile applies.
	RED *RED `json:",omitempty"`
	// CoDel drops or marks at the head of the queue.
	CoDel *CoDel `json:",omitempty"`
	// Mark sets CE on each segment that arrives at a queue of at least this length (a step, as for
	// DCTCP). Segments of senders without ECN pass unmarked.
	Mark Amount `json:",omitzero"`
	// At most one limiter.
	Bucket *Bucket `json:",omitempty"`
	Xen    *Xen    `json:",omitempty"`
	// Active models a sender that is scheduled intermittently.
	Active *Active `json:",omitempty"`
	// Suspension models a receiver that is scheduled intermittently.
	Suspension *Suspension `json:",omitempty"`
	Cross      []Cross     `json:",omitempty"`
}

// Amount is a queue length in one of three units.
type Amount struct {
	Bytes unit.Bytes `json:",omitempty"`
	// Segments is a number of segments of any size.
	Segments int `json:",omitempty"`
	// Time is the number of bytes that the direction's slowest rate sends in it.
	Time time.Duration `json:",omitempty"`
}

// Jitter is a random variation of the delay.
type Jitter struct {
	// Amount is the half-width of a uniform distribution around 0, or the standard deviation of a
	// normal one (truncated at three of them, and at a delay of 0).
	Amount time.Duration `json:",omitempty"`
	Normal bool          `json:",omitempty"`
	// Reorder lets segments overtake each other; otherwise each waits for those before it.
	Reorder bool `json:",omitempty"`
}

// Loss of segments. With Probability alone, losses are independent. Otherwise a chain of a good and a
// bad state makes one step for each segment, and Good and Bad are the loss probabilities of the
// states.
type Loss struct {
	Probability float64 `json:",omitempty"`
	// ToBad and ToGood are the transition probabilities (netem's p and r).
	ToBad, ToGood float64 `json:",omitempty"`
	// Good and Bad are the loss probabilities (netem's 1-k and 1-h).
	Good, Bad float64 `json:",omitempty"`
}

// TwoStates reports whether the loss is that of Gilbert and Elliott.
func (l Loss) TwoStates() bool { return l.ToBad > 0 }

// Mean returns the long-term fraction of segments that is lost.
func (l Loss) Mean() float64 {
	if !l.TwoStates() {
		return l.Probability
	}
	bad := l.ToBad / (l.ToBad + l.ToGood)
	return bad*l.Bad + (1-bad)*l.Good
}

// RED is random early detection on the average queue length.
type RED struct {
	// Min, Max and Probability are the profile of packets without a class.
	Profile
	// Weight of a new value in the average; 0 is DefaultWeight.
	Weight float64 `json:",omitempty"`
	// ECN marks segments of ECN-capable senders instead of dropping them, also above Max (as sch_red
	// without harddrop).
	ECN bool `json:",omitempty"`
	// Classes have their own profiles on the one queue and its average.
	Classes []REDClass `json:",omitempty"`
}

// Profile determines the treatment of an arrival by the average. Between Min and Max it is dropped
// with a probability that rises from 0 to Probability. Below Min all pass, above Max none. Min and Max
// are both bytes, both times, or both segments.
type Profile struct {
	Min, Max    Amount
	Probability float64
}

// REDClass is the profile of some code points.
type REDClass struct {
	DSCP []uint8
	Profile
}

// Bucket is a token bucket: (P, R, b) of the estimation dissertation, section 4.2.2.
type Bucket struct {
	// Rate is the token rate, in layer-2 bits per second.
	Rate unit.Rate
	// Size is the bucket size; the bucket is full at the start.
	Size unit.Bytes
	// Peak is the maximum rate at which tokens are spent; 0 is the serialiser's rate.
	Peak unit.Rate `json:",omitempty"`
	// PeakLow, if not 0, is the peak rate of an empty bucket. The peak rate falls to it linearly with
	// the fill level: the slow decay of section 4.5.1.
	PeakLow unit.Rate `json:",omitempty"`
	// Gift is an additional amount of tokens every GiftEvery (section 4.5.2: every 20 s), which is
	// spent when the bucket is empty. An unspent gift is not added to the next.
	Gift      unit.Bytes    `json:",omitempty"`
	GiftEvery time.Duration `json:",omitempty"`
	// Police drops segments without tokens instead of queueing them.
	Police bool `json:",omitempty"`
}

// Xen is a limiter that adds Tokens every Interval: (T, delta) of the estimation dissertation, section 4.2.2.
// It keeps at most one frame of unspent tokens, so that a delta of 6.5 frames sends 6 and 7
// alternately.
type Xen struct {
	Interval time.Duration
	Tokens   unit.Bytes
}

// Active is a sender that alternately runs for On and sleeps for Off. Packets of its sleep leave in
// one burst when it wakes (section 4.4).
type Active struct{ On, Off time.Duration }

// Suspension is a receiver that takes Packets segments and then none for Time: (N0, T0) of section
// 5.3. Delivery is delayed, so that even the kernel's timestamps are late.
type Suspension struct {
	Packets int
	Time    time.Duration
}

// Cross is virtual cross traffic on the link.
type Cross struct {
	// Load is its mean offered rate in layer-2 bits per second.
	Load unit.Rate
	// Model is the distribution of packet intervals; "" is Poisson.
	Model Model `json:",omitempty"`
	// Shape of Pareto; 0 is DefaultShape.
	Shape float64 `json:",omitempty"`
	// Sizes are drawn with equal probability, in layer-2 bytes; none is full frames.
	Sizes []int `json:",omitempty"`
	DSCP  uint8 `json:",omitempty"`
	// Start and Stop limit it in time, since the start of the link; Stop 0 is never.
	Start time.Duration `json:",omitempty"`
	Stop  time.Duration `json:",omitempty"`
}

// Model of cross traffic.
type Model string

// The models: exponential, Pareto and constant intervals.
const (
	Poisson  Model = "poisson"
	Pareto   Model = "pareto"
	Constant Model = "constant"
)

// Constants from the papers.
const (
	// DefaultWeight is w_q of Floyd and Jacobson, section 6.
	DefaultWeight = 0.002
	// DefaultShape is alpha of the Pareto cross traffic with which tools for path measurement are
	// evaluated (Jain and Dovrolis, pathload, section VI): finite mean, infinite variance.
	DefaultShape = 1.9
)

// Constants chosen by this project.
const (
	// DefaultQueue is the queue limit of a direction that specifies none.
	DefaultQueue = 50 * time.Millisecond
	// FullFrame is 1,500 bytes and an Ethernet header.
	FullFrame = 1514
	// LargestFrame has two VLAN tags.
	LargestFrame = FullFrame + 8
	// minQueue is the minimum of a queue limit in time: a slow link must hold a TCP connection's
	// initial window of ten frames.
	minQueue = 10 * FullFrame
)

// Slowest returns the lowest of the direction's long-term rates; 0 is unlimited.
func (s *Spec) Slowest() unit.Rate {
	r := s.Rate
	lower := func(v unit.Rate) {
		if v > 0 && (r == 0 || v < r) {
			r = v
		}
	}
	if s.Bucket != nil {
		lower(s.Bucket.Rate)
	}
	if s.Xen != nil {
		lower(s.Xen.Rate())
	}
	return r
}

// Rate returns the limiter's long-term rate.
func (x *Xen) Rate() unit.Rate {
	return unit.Rate(float64(x.Tokens) * 8 / x.Interval.Seconds())
}

// Problem is an error in a Spec: Key is as in YAML ("red.min").
type Problem struct{ Key, What string }

// Limits of accepted values.
const (
	minRate     = unit.Kbit // one frame in 12 s
	maxDelay    = 10 * time.Second
	maxQueue    = 1 << 31
	maxSegments = 1 << 20
)

// Problems returns all errors of s, each with its key.
func (s *Spec) Problems() (out []Problem) {
	add := func(key, format string, a ...any) {
		out = append(out, Problem{key, fmt.Sprintf(format, a...)})
	}
	rate := func(key string, r unit.Rate, needed bool) {
		if r == 0 && !needed {
			return
		}
		if r < minRate || r > unit.MaxRate {
			add(key, "%v is not between %v and %v", r, minRate, unit.MaxRate)
		}
	}
	length := func(key string, d, lowest time.Duration) {
		if d < lowest || d > maxDelay {
			add(key, "%v is not between %v and %v", d, lowest, maxDelay)
		}
	}
	chance := func(key string, p float64) {
		if !(p >= 0 && p <= 1) {
			add(key, "%v is not between 0%% and 100%%", p)
		}
	}
	limited := s.Rate > 0 || s.Bucket != nil || s.Xen != nil
	amount := func(key string, a Amount) {
		n := 0
		for _, given := range []bool{a.Bytes > 0, a.Segments != 0, a.Time != 0} {
			if given {
				n++
			}
		}
		switch {
		case n == 0:
		case n > 1:
			add(key, "more than one unit is set: choose bytes, segments or time")
		case !limited:
			add(key, "a queue needs a rate or a limiter: add one, or leave the queue out")
		case a.Bytes > 0 && a.Bytes < 1600:
			add(key, "%v does not hold one frame: use at least 1600B", a.Bytes)
		case a.Segments < 0 || a.Segments > maxSegments:
			add(key, "%d segments are not between 1 and %d", a.Segments, maxSegments)
		case a.Time < 0 || a.Time > maxDelay:
			add(key, "%v is not between 0 and %v", a.Time, maxDelay)
		case a.bytes(s.Slowest()) > maxQueue:
			add(key, "%.0f bytes are more than 2GiB", a.bytes(s.Slowest()))
		}
	}
	rate("rate", s.Rate, false)
	length("delay", s.Delay, 0)
	length("jitter", s.Jitter.Amount, 0)
	if s.Jitter.Amount > s.Delay {
		add("jitter", "%v is more than the delay of %v: a segment cannot arrive before it was sent", s.Jitter.Amount, s.Delay)
	}
	if s.Jitter.Amount == 0 && (s.Jitter.Reorder || s.Jitter.Normal) {
		add("jitter", "no amount: write for example jitter: 2ms")
	}
	chance("loss", s.Loss.Probability)
	chance("loss.to_bad", s.Loss.ToBad)
	chance("loss.to_good", s.Loss.ToGood)
	chance("loss.good", s.Loss.Good)
	chance("loss.bad", s.Loss.Bad)
	switch {
	case s.Loss.TwoStates() && s.Loss.Probability > 0:
		add("loss", "a probability and two states exclude each other: choose one")
	case s.Loss.TwoStates() && s.Loss.ToGood == 0:
		add("loss.to_good", "the link would never leave the bad state: write for example to_good: 10%%")
	case !s.Loss.TwoStates() && (s.Loss.ToGood > 0 || s.Loss.Good > 0 || s.Loss.Bad > 0):
		add("loss.to_bad", "the link would never enter the bad state: write for example to_bad: 1%%")
	}
	amount("queue", s.Queue)
	amount("mark", s.Mark)
	if s.RED != nil {
		s.redProblems(add, amount, chance)
	}
	if s.CoDel != nil && s.RED != nil {
		add("codel", "the direction also has red: choose one")
	}
	if c := s.CoDel; c != nil && c.target() >= c.interval() {
		add("codel.target", "%v is not below the interval of %v: write for example {target: 5ms, interval: 100ms}", c.target(), c.interval())
	}
	if s.Bucket != nil && s.Xen != nil {
		add("xen", "the direction also has a bucket: choose one limiter")
	}
	if b := s.Bucket; b != nil {
		rate("bucket.rate", b.Rate, true)
		rate("bucket.peak", b.Peak, false)
		rate("bucket.peak_low", b.PeakLow, false)
		if b.Size < 1600 || b.Size > maxQueue {
			add("bucket.size", "%v is not between 1600B and 2GiB: a bucket must hold one frame", b.Size)
		}
		if b.Peak > 0 && b.Peak < b.Rate {
			add("bucket.peak", "%v is less than the bucket's rate of %v", b.Peak, b.Rate)
		}
		if b.PeakLow > 0 && (b.Peak == 0 || b.PeakLow > b.Peak || b.PeakLow < b.Rate) {
			add("bucket.peak_low", "%v is not between the bucket's rate and its peak", b.PeakLow)
		}
		if (b.Gift > 0) != (b.GiftEvery > 0) {
			add("bucket.gift", "a gift has a size and an interval: write gift: {size: 10MB, every: 20s}")
		}
		if b.GiftEvery < 0 || b.Gift > maxQueue {
			add("bucket.gift", "%v every %v is not possible", b.Gift, b.GiftEvery)
		}
	}
	if x := s.Xen; x != nil {
		length("xen.interval", x.Interval, 10*time.Microsecond)
		if x.Tokens < 64 || x.Tokens > maxQueue {
			add("xen.tokens", "%v is not between 64B and 2GiB", x.Tokens)
		}
	}
	if a := s.Active; a != nil {
		length("active.on", a.On, 10*time.Microsecond)
		length("active.off", a.Off, 10*time.Microsecond)
	}
	if r := s.Suspension; r != nil {
		length("suspension.time", r.Time, time.Microsecond)
		if r.Packets < 1 || r.Packets > maxSegments {
			add("suspension.packets", "%d is not between 1 and %d", r.Packets, maxSegments)
		}
	}
	for i, c := range s.Cross {
		key := fmt.Sprintf("cross[%d]", i)
		rate(key+".load", c.Load, true)
		switch c.Model {
		case "", Poisson, Constant, Pareto:
		default:
			add(key+".model", "%q is not a model: write poisson, pareto or constant", c.Model)
		}
		if c.Shape != 0 && (c.Model != Pareto || !(c.Shape > 1)) {
			add(key+".shape", "%v is not a shape: use a number above 1, with model pareto", c.Shape)
		}
		for _, size := range c.Sizes {
			if size < 14 || size > LargestFrame {
				add(key+".sizes", "%d bytes are not a frame size: use 14 to %d", size, LargestFrame)
			}
		}
		if c.DSCP > 63 {
			add(key+".dscp", "%d is not a DSCP: use 0 to 63", c.DSCP)
		}
		if c.Start < 0 || c.Stop != 0 && c.Stop <= c.Start {
			add(key+".stop", "the stop at %v is not after the start at %v", c.Stop, c.Start)
		}
		if !limited {
			add(key, "cross traffic needs a rate or a limiter to compete for: give the direction a rate")
		}
	}
	return out
}

func (s *Spec) redProblems(add func(key, format string, a ...any), amount func(string, Amount), chance func(string, float64)) {
	segments := s.RED.Min.Segments > 0
	profile := func(key string, p Profile) {
		amount(key+".min", p.Min)
		amount(key+".max", p.Max)
		chance(key+".probability", p.Probability)
		switch {
		case p.Min == Amount{} || p.Max == Amount{} || p.Probability == 0:
			add(key, "min, max and probability are required: write for example {min: 30KB, max: 90KB, probability: 10%%}")
		case (p.Min.Segments > 0) != segments || (p.Max.Segments > 0) != segments:
			add(key+".min", "thresholds in segments cannot be mixed with others: use one unit")
		case p.Min.count(s.Slowest()) >= p.Max.count(s.Slowest()):
			add(key+".max", "max is not above min: increase max, or decrease min")
		}
	}
	profile("red", s.RED.Profile)
	if w := s.RED.Weight; !(w >= 0 && w <= 1) {
		add("red.weight", "%v is not between 0 and 1", w)
	}
	seen := map[uint8]bool{}
	for i, c := range s.RED.Classes {
		key := fmt.Sprintf("red.classes[%d]", i)
		profile(key, c.Profile)
		if len(c.DSCP) == 0 {
			add(key+".dscp", "no code point: write for example dscp: [8]")
		}
		for _, d := range c.DSCP {
			if d > 63 {
				add(key+".dscp", "%d is not a DSCP: use 0 to 63", d)
			}
			if seen[d] {
				add(key+".dscp", "code point %d is already in a class", d)
			}
			seen[d] = true
		}
	}
}

// bytes returns the amount in bytes at a rate; not for segments.
func (a Amount) bytes(r unit.Rate) float64 {
	if a.Bytes > 0 {
		return float64(a.Bytes)
	}
	return float64(r) / 8 * a.Time.Seconds()
}

// count returns the amount in its own unit, segments or bytes.
func (a Amount) count(r unit.Rate) float64 {
	if a.Segments > 0 {
		return float64(a.Segments)
	}
	return a.bytes(r)
}
