package path

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/capacity"
	"headgate.dev/headgate/probe/limiter"
	"headgate.dev/headgate/probe/tokenrate"
	"headgate.dev/headgate/unit"
)

// Constants of the trains that confirm, chosen by Headgate.
//
// What the methods found is held against trains of another kind before it counts as known. A train back to back shows nothing of a bucket that is larger than the
// queue before it: the queue drops what the bucket would pass. A train at 7/8 of the capacity shows it. The rate at which a train ends is that of the
// first limit that it met, and a train held a little above that rate, for longer, meets the next one (equation 2.3: the least of several).
const (
	purposeDrain = "confirm/drain"
	purposeHold  = "confirm/hold"
	// drainPart is the rate of a drain train as a part of the capacity (the seed's, 2.6). belowSent: what arrives at more than this part of the rate at which it
	// was sent was not limited.
	drainPart, belowSent = 7. / 8, 0.97
	// holdPart is the rate of a held train relative to the rate that it confirms: it arrives clearly slower than it was sent, and makes a queue of 9 ms at most.
	holdPart = 1.07
	// drainShare is the part of the bytes that a drain train may have: the rest confirms what it shows.
	drainShare = 0.6
	// fastHead is the rate of the head of a held train, relative to the rate that it confirms, where a slower one needs more than half of the bytes to empty a bucket,
	// and headShare the part of them that it may have.
	fastHead, headShare = 5, 0.65
	// heldShare is the part of the bytes that the held part may have: if it shows another rate, the rest confirms that one.
	heldShare = 0.4
	// holdTime and drainTime bound the time of a train, minHeld its packets. Where minHeld packets take longer, slowHeld are sent, so little above the rate that the
	// queue which they make is no longer (slowQueue).
	holdTime, drainTime = 130 * time.Millisecond, 250 * time.Millisecond
	minHeld, slowHeld   = 60, 40
	slowQueue           = 9 * time.Millisecond
	// sharedTime is that of a drain train beside others' traffic: if they use half of the link, the queue grows by 11 ms. A shaper that others use is not held: with
	// half of its rate in use a queue of 70 ms would grow.
	sharedTime = 30 * time.Millisecond
	// mostConfirm is how many trains confirm at most.
	mostConfirm = 4
	// mostFilled is how many of them may find more in the bucket than its bound.
	mostFilled = 2
	// unevenPackets is how far packets that pass a policer deviate from their rate at most, in packets: others' traffic takes tokens.
	unevenPackets = 5
	// policedQueue is how long packets that pass a slow policer wait at most, in packet times at its rate.
	policedQueue = 1.5
	// fallsBy is the relative fall of the rate within a train that shows a limit which falls with time, stepsBy that from a sixth of it to the next, and minSixth
	// the packets of a sixth.
	fallsBy, stepsBy, minSixth = 0.008, 0.0007, 20
	// policedError is the error of the rate at which a policer lets packets pass, whose bucket has an unknown part of a packet at either end: of 1,200 drawn paths 3 of
	// 15 wrong rates were 0.4 to 0.6 % too high.
	policedError = 0.008
	// stampTime is a time between packets, in ns, that timestamps hardly show: twice their error.
	stampTime = 2000
	// sharedStamp is how much longer, in ns, a packet may take for others' traffic that timestamps do not show: rates of 2.7 and 3 Gbit/s were 2.4 and 3.2 % too low.
	sharedStamp = 100
	// sameRate is the relative difference up to which two rates are the same.
	sameRate = 0.01
	// refill is the least time between two trains in which a bucket fills again, and mostRefill the most that counts. Beyond it, the longest of the latest pauses
	// counts: over 20 ms of round-trip time the ends talk for 60 ms and more between two trains, and with 30 ms no train emptied a policer of 30 Mbit/s and 200 kB.
	refill, mostRefill, latestPauses = 30 * time.Millisecond, time.Second, 3
)

const fullPacket = 1500

// notFull is why nothing is known of a bucket.
const notFull = "the trains that showed the token rate began with a bucket that was not full"

// claim is the token rate, with what confirms it.
type claim struct {
	tokenrate.Result
	confirmed bool
	falls     string  // how the rate fell during a train
	shown     float64 // the lowest rate at which a train was limited, in bit/s; 0 if none was
	// drained reports that a drain train was sent.
	drained bool
	// filled counts trains that found more in the bucket than its bound.
	filled int
	trains int
	// slower is the lowest rate at which a held part arrived below the rate that it was to confirm, 0 if none did.
	slower float64
	// taken is the highest rate that the policer may have if others' traffic took tokens, 0 if none did.
	taken float64
}

// isRate reports whether there is a rate, and not only a bound.
func isRate(r tokenrate.Result) bool { return r.Rate.Known() && !r.Rate.AtLeast }

// readClaim holds the token rate against the trains that confirm.
func (r *evaluation) readClaim() claim {
	c := claim{Result: r.shaper()}
	if r.ours() && !isRate(c.Result) && !c.Rate.AtLeast {
		c.Result = r.longer(c.Result)
	}
	c.show()
	for _, s := range r.of("confirm") {
		c.trains++
		whole := s
		hold := strings.HasPrefix(s.Purpose, purposeHold)
		if !hold {
			c.drained = true
		} else if parts := s.Split(); len(parts) > 1 {
			s = parts[len(parts)-1]
		}
		if len(s.Arrived) < minHeld/2 {
			continue
		}
		e := tokenrate.Estimate(&s, r.bound())
		if lost := float64(s.Lost()) / float64(s.Count()); hold && c.Policed && lost > r.loss()+1-belowSent {
			if e.Shared() || e.Rate.AtLeast || uneven(&s) {
				continue // others' traffic takes tokens, and their number is not known
			}
			if c.Rate.Value >= capacity.SlowLink || queued(&s) <= policedQueue*packetTime(c.Rate.Value) { // else a short queue drops
				e = policed(&s, r.loss())
			}
		}
		if rate := s.ArrivalRate(); hold && isRate(c.Result) && rate < c.Rate.Value*(1-sameRate) && (c.slower == 0 || rate < c.slower) {
			c.slower = rate
		}
		c.take(&s, &whole, e, hold)
		c.show()
	}
	return c
}

// longer returns what trains for the limiter show of the token rate, which are longer than those for the token rate, if these found no limit.
func (r *evaluation) longer(found tokenrate.Result) tokenrate.Result {
	for _, s := range r.of("limiter") {
		if s.Purpose == limiter.PurposeLight || len(s.Parts) != 1 || s.Parts[0].Size != r.packet() || found.Joint != nil && s.Bytes() <= found.Joint.Bytes {
			continue
		}
		if e := tokenrate.Estimate(&s, r.bound()); isRate(e) && e.Knee() && !e.Shared() {
			e.Bucket = e.Bucket.Floor(notFull)
			found = e
		}
	}
	return found
}

// readAnswer returns the token rate as far as it is known.
func (r *evaluation) readAnswer() claim {
	c := r.claim()
	if r.Nominal > 0 { // trains of the rate of a network's links, whose results its controller holds against each other
		return c
	}
	if !c.confirmed {
		c.falls = r.falls()
	}
	switch {
	case c.falls != "":
		c.Result = tokenrate.Result{Rate: probe.NoEstimate(c.falls), Bucket: probe.NoEstimate(c.falls)}
	case isRate(c.Result) && !c.confirmed && !c.Shared() && !c.Policed && c.slower > 0 && !r.slow() && r.limiter().Class != limiter.Policer && r.busy():
		// Others' traffic may be what slowed the trains that were to confirm it.
		c.Rate.Low = math.Min(c.Rate.Low, c.slower*(1-sameRate))
	case isRate(c.Result) && !c.confirmed && !c.Shared() && c.trains > 0:
		c.Rate, c.Bucket = probe.NoEstimate("a longer train did not arrive at the token rate that shorter ones showed"), probe.NoEstimate("the token rate is not known")
	case isRate(c.Result) && !c.confirmed && c.Shared() && packetTime(c.Rate.Value) < stampTime:
		unknownRate(&c.Result, "packets arrive too fast for their times to tell others' traffic")
	case isRate(c.Result) && !c.confirmed && r.slow():
		unknownRate(&c.Result, "others' traffic may be what slowed the few packets that a slow link allows")
	case isRate(c.Result) && r.limiter().Class == limiter.Policer && !c.confirmed && (c.trains > 0 || c.Rate.Value < capacity.SlowLink): // others' traffic takes tokens
		unknownRate(&c.Result, "packets are lost as in a policer, and no train was long enough to tell that from others' traffic")
	}
	if isRate(c.Result) && !c.confirmed && c.Shared() {
		c.Rate.High = math.Max(c.Rate.High, c.Rate.Value*(1+sharedStamp/packetTime(c.Rate.Value)))
	}
	if isRate(c.Result) && c.Policed {
		c.Rate.Low = math.Min(c.Rate.Low, c.Rate.Value*(1-policedError))
	}
	return c
}

// show notes the rate of a limit.
func (c *claim) show() {
	if isRate(c.Result) && (c.shown == 0 || c.Rate.Value < c.shown) {
		c.shown = c.Rate.Value
	}
}

// falls says how the rate fell during a train, if it did.
func (r *evaluation) falls() string {
	for _, s := range slices.Concat(r.of("tokenrate"), r.of("limiter"), r.of("confirm")) {
		if parts := s.Split(); len(parts) > 0 && s.Parts[0].Size == r.packet() {
			if from, to, falls := falling(&parts[len(parts)-1]); falls {
				return fmt.Sprintf("the rate fell from %s to %s while a train arrived: the limit is lower, and takes longer to show", probe.FormatRate(from), probe.FormatRate(to))
			}
		}
	}
	return ""
}

// loss is the part of packets that the path loses of a train which no limiter drops.
func (r *evaluation) loss() float64 {
	for _, s := range r.of("limiter") {
		if s.Purpose == limiter.PurposeLight && len(s.Arrived) > 0 {
			return float64(s.Lost()) / float64(s.Count())
		}
	}
	return 0
}

// policed returns the rate of a policer from a train that was sent a little faster: that at which packets passed, after the tokens of its head. It holds back
// nothing, so that their times are those at which they were sent.
func policed(s *probe.Sample, loss float64) tokenrate.Result {
	n := s.Count()
	first, last, passed := n, 0, 0
	for _, a := range s.Arrived {
		if a.Number >= n/5 && a.Number < n {
			first, last, passed = min(first, a.Number), max(last, a.Number), passed+1
		}
	}
	took := 0.
	if first < last {
		took = float64(s.Sent[last] - s.Sent[first])
	}
	if passed < minHeld/2 || took <= 0 || float64(passed)/(1-loss) > belowSent*float64(last-first+1) {
		return tokenrate.Result{Rate: probe.NoEstimate("the train found no limit"), Joint: &tokenrate.Joint{Rate: s.SendingRate(), Bytes: s.Bytes(), Took: seconds(s)}}
	}
	rate := float64((passed-1)*s.Parts[0].Frame()) * 8e9 / took / (1 - loss)
	off := 2/float64(passed) + 2*math.Sqrt(loss/float64(passed)) // tokens of two packets at either end, and what the path loses by chance
	return tokenrate.Result{Rate: probe.Estimate{Value: rate, Low: rate * (1 - off), High: rate * (1 + off)}, Policed: true}
}

// falling returns the rates at the begin and at the end of a train, and whether each sixth of it arrived more slowly than the one before: chance does that once in
// 720 trains. A bucket that a train empties makes one step.
func falling(s *probe.Sample) (from, to float64, falls bool) {
	const parts = 6
	n := len(s.Arrived)
	if n < parts*minSixth {
		return 0, 0, false
	}
	falls = true
	for i := range parts {
		p := *s
		p.Arrived = s.Arrived[i*n/parts : (i+1)*n/parts]
		switch rate := p.ArrivalRate(); {
		case i == 0:
			from, to = rate, rate
		default:
			falls, to = falls && rate < to*(1-stepsBy), rate
		}
	}
	return from, to, falls && to < from*(1-fallsBy)
}

// hold confirms the rate for the bytes of a train.
func (c *claim) hold(s *probe.Sample) {
	c.confirmed = true
	c.Held, c.HeldSeconds = c.Held+s.Bytes(), c.HeldSeconds+seconds(s)
}

// queued returns by how much the delay of a packet exceeds that of another one of its train at most, in ns.
func queued(s *probe.Sample) float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for _, a := range s.Arrived {
		if a.Number < len(s.Sent) {
			d := float64(a.At - s.Sent[a.Number])
			low, high = math.Min(low, d), math.Max(high, d)
		}
	}
	return high - low
}

// uneven reports whether the packets of a train, after its head, arrived at a rate that varies.
func uneven(s *probe.Sample) bool {
	tail := *s
	tail.Arrived = s.Arrived[len(s.Arrived)/5:]
	rate, low, high := tail.ArrivalRate(), math.Inf(1), math.Inf(-1)
	for i, a := range tail.Arrived {
		over := float64(i) - rate*float64(a.At-tail.Arrived[0].At)/8e9/float64(s.Parts[0].Frame())
		low, high = math.Min(low, over), math.Max(high, over)
	}
	return high-low > unevenPackets
}

// take takes what a train shows. s is the last part of the whole train.
func (c *claim) take(s, whole *probe.Sample, e tokenrate.Result, hold bool) {
	if isRate(e) && e.Policed && isRate(c.Result) {
		if e.Rate.Value < c.Rate.Value*(1-sameRate) { // others' traffic takes tokens, more of them the slower the train is, or this is another policer
			c.taken = math.Max(c.taken, c.Rate.High)
		}
		e.Rate.High = math.Max(e.Rate.High, c.taken)
	}
	same := func(rate float64) bool { return isRate(c.Result) && math.Abs(rate/c.Rate.Value-1) <= sameRate }
	switch before := c.Rate; {
	case hold && same(s.ArrivalRate()) && s.ArrivalRate() < belowSent*float64(s.Parts[0].Rate):
		// It arrived at the rate although it was to be faster: more packets wait, are lost in a short queue, or are not sent, as a limiter of the sender's own host
		// blocks it.
		c.hold(s)
	case isRate(e) && e.Rate.Value > belowSent*s.SendingRate(): // others' traffic, at the rate of a link
	case isRate(e) && same(e.Rate.Value):
		c.hold(s)
		if e.Rate.High-e.Rate.Low < before.High-before.Low {
			c.Rate = e.Rate
		}
	case isRate(e) && !hold && !e.Knee(): // others' traffic slowed all of it
	case isRate(e):
		// Another limit, or one that the methods did not see. Its bucket was not full.
		bucket := probe.NoEstimate(notFull)
		if !hold {
			bucket = e.Bucket.Floor(notFull)
		}
		c.Result, c.confirmed, c.slower = tokenrate.Result{Rate: e.Rate, Bucket: bucket, Policed: e.Policed}, false, 0
	case e.Joint != nil && isRate(c.Result) && e.Joint.Rate > before.High*(1+sameRate) && hold && c.Bucket.Known() && c.Bucket.AtLeast && c.filled < mostFilled:
		// The bucket holds more than its bound, and had filled again: the next train finds it nearly empty.
		c.filled++
		if n := len(whole.Sent); n > 0 {
			more := float64(whole.Bytes()) - c.Rate.Value/8e9*float64(whole.Sent[n-1]-whole.Sent[0])
			c.Bucket.Value, c.Bucket.Low = math.Max(c.Bucket.Value, more), math.Max(c.Bucket.Low, more)
		}
	case e.Joint != nil && isRate(c.Result) && e.Joint.Rate > before.High*(1+sameRate):
		// It passed faster than the limit.
		c.Result, c.confirmed = e, false
	case e.Joint != nil && !isRate(c.Result) && !c.Rate.AtLeast && (c.Joint == nil || e.Joint.Bytes > c.Joint.Bytes):
		c.Joint = e.Joint
	}
}

// seconds is how long a train took to arrive.
func seconds(s *probe.Sample) float64 {
	if n := len(s.Arrived); n > 1 {
		return float64(s.Arrived[n-1].At-s.Arrived[0].At) / 1e9
	}
	return 0
}

// pause is for how long nothing is sent before the next train, from the pauses before.
func (r *evaluation) pause() time.Duration {
	longest := refill
	for i := max(1, len(r.samples)-latestPauses); i < len(r.samples); i++ {
		if before, after := r.samples[i-1].Sent, r.samples[i].Sent; len(before) > 0 && len(after) > 0 {
			longest = max(longest, time.Duration(after[0]-before[len(before)-1]))
		}
	}
	return min(longest, mostRefill)
}

// idle is how long small packets alone were sent since the last train for a limiter.
func (r *evaluation) idle() (d time.Duration) {
	for _, s := range slices.Backward(r.samples) {
		if s.Purpose != limiter.PurposeLight {
			break
		}
		if n := len(s.Sent); n > 0 {
			d += time.Duration(s.Sent[n-1] - s.Sent[0])
		}
	}
	return d
}

// crossed reports whether packets that are sent slowly found others' on their way, if that is known.
func (r *evaluation) crossed() (found, known bool) {
	varies, known := jitter(r.samples)
	return varies >= packetTime(r.bound())/2, known
}

// quiet reports whether packets that are sent slowly found no others' on their way.
func (r *evaluation) quiet() bool {
	found, known := r.crossed()
	return known && !found
}

// busy reports whether they found some.
func (r *evaluation) busy() bool {
	found, known := r.crossed()
	return known && found
}

// emptying returns the rate of a head that empties a bucket, which is part times that of the limiter at most, and its bytes, which are most at most.
func (r *evaluation) emptying(filled, rate, part, most float64) (fast, bytes float64) {
	fast = math.Max(math.Min(part*rate, drainPart*r.bound()), holdPart*rate)
	return fast, math.Min(filled/(1-rate/fast), most)
}

// nextConfirm returns the next train that confirms or refutes the token rate.
func (r *evaluation) nextConfirm() (t probe.Train, ok bool) {
	if !r.ours() || !r.TokenRate && !r.Limiter && !r.Available {
		return t, false
	}
	frame := r.packet() + probe.Overhead
	share := r.shares().confirm
	share -= min(share, r.spent("confirm"))
	share = min(share, r.left)
	c := r.claim()
	if c.trains >= mostConfirm || share < unit.Bytes(minHeld*frame) {
		return t, false
	}
	packets := func(bytes float64) int { return int(bytes) / frame }
	switch {
	case isRate(c.Result) && !c.confirmed && !c.Shared() && (r.limiter().Class != limiter.Xen || r.slow()):
		// It begins with what empties the bucket that filled since the last train.
		rate := c.Rate.Value
		filled := rate / 8 * (r.pause() + r.idle()).Seconds()
		if b := c.Bucket; b.Known() {
			most := math.Max(1.05*b.Value, b.High)
			if b.AtLeast {
				most = math.Max(2*b.Value, 1.05*c.Full()) // a train that began after a silence emptied it
			}
			filled = math.Max(math.Min(filled, most), 0)
		}
		fast, bytes := r.emptying(filled, rate, 2*holdPart, float64(share)/2)
		if bytes == float64(share)/2 {
			fast, bytes = r.emptying(filled, rate, fastHead, headShare*float64(share)) // fewer bytes empty it, and make a longer queue
		}
		if c.Policed && bytes == headShare*float64(share) { // a policer that drops nothing of the train has a larger bucket
			fast, bytes = r.emptying(filled, rate, fastHead, float64(share)-float64((minHeld+2)*frame))
		}
		head := packets(bytes) + 2
		part, held, most := holdPart, packets(holdPart*rate/8*holdTime.Seconds()), packets(float64(share))-head
		switch {
		case held >= minHeld:
			held = min(held, most, max(packets(heldShare*float64(share)), slowHeld))
		case !c.Policed || r.quiet(): // so few packets do not tell a policer from others' traffic
			held, part = slowHeld, math.Min(part, 1+slowQueue.Seconds()*rate/8/float64(slowHeld*frame))
		}
		if held < slowHeld || held > most {
			return t, false
		}
		return probe.Train{Purpose: purposeHold, Parts: []probe.Part{
			{Count: head, Size: r.packet(), Rate: unit.Rate(fast)},
			{Count: held, Size: r.packet(), Rate: unit.Rate(part * rate)},
		}}, true
	case !isRate(c.Result) && !c.drained && !r.slow() && !math.IsInf(r.bound(), 1):
		rate := drainPart * r.bound()
		lasts := drainTime
		if c.Joint == nil || c.Joint.Rate < belowSent*r.bound() {
			lasts = sharedTime // a queue grows beside others' traffic
		}
		count := packets(math.Min(rate/8*lasts.Seconds(), drainShare*float64(share)))
		return probe.Uniform(purposeDrain, count, r.packet(), unit.Rate(rate)), count >= minHeld
	}
	return t, false
}
