package path

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/capacity"
	"headgate.dev/headgate/probe/limiter"
	"headgate.dev/headgate/probe/tokenrate"
)

const (
	// agree is the relative difference up to which two parts of an answer do not contradict each other.
	agree = 0.02
	// mostReordered is the part of packets that arrive out of order up to which delays show queues.
	mostReordered = 0.02
)

// reordered returns the part of the packets that arrived before others that were sent earlier.
func reordered(samples []probe.Sample) float64 {
	late, all := 0, 0
	for i := range samples {
		highest := -1
		for _, a := range samples[i].Arrived {
			if all++; a.Number < highest {
				late++
			}
			highest = max(highest, a.Number)
		}
	}
	return float64(late) / float64(max(all, 1))
}

// observed is what all trains of a measurement show, whatever they were for.
type observed struct {
	fastest float64 // the highest rate at which a train arrived, in bit/s
	shown   float64 // the lowest rate at which a train was limited, 0 if none was
	jitter  float64 // how much the delays of packets vary that are sent so slowly that they do not queue, in ns
	falls   string  // how the rate fell during a train
	burst   float64 // the median rate of short bursts, +Inf if their packets arrived at once
	late    float64 // the part of the packets that arrived before others that were sent earlier
	slow    bool    // a link or a limiter is slow
	// unlimited reports that the trains for the token rate met no limit.
	unlimited bool
	// unconfirmed is why the trains themselves, without the other parts of the answer, do not show the token rate.
	unconfirmed string
}

const (
	// minTrain is the least number of packets of a train whose rate the path carries.
	minTrain = 100
	// minLight is the least number of packets of a train that shows jitter.
	minLight = 50
	// Bursts that arrive burstFaster times as fast as long trains show a limiter although the capacity is not known.
	burstFaster = 3
	// Above fastStamps bursts last not much longer than the errors of their timestamps, which make them longer.
	fastStamps = 12e9
	// scheduleRate is the relative difference of a token rate and the rate of a schedule (equation 4.1) up to which the schedule explains it.
	scheduleRate = 0.15
	// leastSleep is the shortest sleep of an end, in times of full packets at the capacity: others' packets wait in between.
	leastSleep = 10
	// shownLater is the confidence in a limiter that only the confirmation met.
	shownLater = 0.8
	// unsure is the confidence in a limiter below which its rate is not known: of 200 drawn paths two had a rate of others' traffic with 0.52 and 0.54.
	unsure = 0.6
	// hidden is the confidence in "no limiter" if others' traffic may hide one, and in a schedule that may be others' traffic: of 65 such answers on 1,200 drawn paths
	// 22 were right.
	hidden = 0.35
	// Of 800 drawn paths whose trains contradicted each other there was a policer on 33 of 33 where it had surelyDrops before, and on 18 of 49 where it had less. Of
	// 1,200 there was a shaper on 70 of 81 where no train was surely limited (hardlyLimited), and on 29 of 33 others.
	surelyDrops, hardlyLimited = 0.95, 0.85
	// noneLasted is the confidence in "no limiter", which others' traffic may hide, if a long train had lastedWell of the capacity, and noneSlowed if it had less: of
	// such answers on 1,200 drawn paths 19 of 35 and 20 of 46 were right.
	lastedWell, noneLasted, noneSlowed = 0.6, 0.55, 0.4
	// Delays that vary by more than burstJitter packet times hide what short bursts show of the capacity, if trains arrived at less than 1/slowTrains of that.
	burstJitter, slowTrains = 20, 1.5
	// wideCapacity is the ratio of the ends of an interval from which on it says nothing.
	wideCapacity = 4
	// stampJitter is how much timestamps alone make delays vary, in ns.
	stampJitter = 3000
	// jitterWide is the relative error of a capacity beside such delays (10 Gbit/s, receiver in groups of 200 packets: 6 to 13 % too low).
	jitterWide = 0.12
)

// jitter returns how much the delays of packets vary, in ns, that are sent so slowly that they do not queue. It is not known if no such train was sent.
func jitter(samples []probe.Sample) (most float64, known bool) {
	for i := range samples {
		s := &samples[i]
		if s.Purpose != limiter.PurposeLight || len(s.Arrived) < minLight {
			continue
		}
		delays := make([]int64, len(s.Arrived))
		for j, a := range s.Arrived {
			delays[j] = a.At - s.Sent[a.Number]
		}
		slices.Sort(delays)
		tenth := len(delays) / 10
		known = true
		most = math.Max(most, float64(delays[len(delays)-1-tenth]-delays[tenth]))
	}
	return most, known
}

func (r *evaluation) observed() (o observed) {
	claimed := r.answer()
	o.falls, o.shown, o.unlimited, o.unconfirmed = claimed.falls, claimed.shown, claimed.Joint != nil, claimed.Rate.Reason
	o.late, o.slow = reordered(r.samples), r.slow()
	o.jitter, _ = jitter(r.samples)
	var bursts []float64
	for i := range r.samples {
		s := &r.samples[i]
		if strings.HasPrefix(s.Purpose, "capacity/") {
			for _, b := range s.Split() {
				if n := len(b.Arrived); n > 2 && n == b.Count() {
					bursts = append(bursts, cmp.Or(b.ArrivalRate(), math.Inf(1)))
				}
			}
		}
		if len(s.Parts) == 1 && len(s.Arrived) >= minTrain {
			o.fastest = math.Max(o.fastest, s.ArrivalRate())
		}
	}
	if slices.Sort(bursts); len(bursts) > 0 {
		o.burst = bursts[len(bursts)/2]
	}
	return o
}

// reconcile takes out what contradicts another part of the answer, or what cannot be: each becomes "cannot tell", with the reason.
func (a *Answer) reconcile(o observed) {
	a.checkCapacity(o)
	a.checkTokenRate(o)
	a.checkSchedule()
	if o.falls != "" {
		if l := a.Limiter; l != nil {
			*l = limiter.Result{Class: limiter.TBF, At: limiter.Path, Confidence: shownLater, RunnerUp: limiter.Policer, Doubts: append(l.Doubts, o.falls), Schedules: l.Schedules}
		}
		if v := a.Available; v != nil {
			v.Available = probe.NoEstimate(o.falls)
		}
	}
	a.matchLimiter(o)
	a.checkAvailable(o)
	a.boundAvailable(o.shown)
}

// packetTime returns the time of a full packet at a rate, in ns.
func packetTime(rate float64) float64 { return (fullPacket + probe.Overhead) * 8e9 / rate }

// checkCapacity holds the capacity, which is that of short bursts, against long trains and the delays of packets that do not queue.
func (a *Answer) checkCapacity(o observed) {
	c := a.Capacity
	if c == nil || !c.Known() {
		return
	}
	switch varies := o.jitter > burstJitter*packetTime(c.Value); {
	case !c.AtLeast && c.High > wideCapacity*c.Low && c.High <= fastStamps:
		*c = probe.NoEstimate(fmt.Sprintf("it may be anything from %s to %s", probe.FormatRate(c.Low), probe.FormatRate(c.High)))
	case !c.AtLeast && o.fastest > c.High*(1+agree):
		*c = probe.NoEstimate(fmt.Sprintf("a train arrived at %s, faster than the capacity that short bursts showed, %s: packets are delayed at random or in groups", probe.FormatRate(o.fastest), probe.FormatRate(c.Value)))
	case varies && c.Value > slowTrains*o.fastest:
		*c = probe.NoEstimate(fmt.Sprintf("the delay of packets varies by %v, which hides how fast short bursts arrive", time.Duration(o.jitter).Round(time.Microsecond)))
	case varies && !c.AtLeast:
		c.Low, c.High = math.Min(c.Low, c.Value*(1-jitterWide)), math.Max(c.High, c.Value*(1+jitterWide))
	}
	if !c.AtLeast && c.High > fastStamps {
		low, _ := c.Widened() // of 1,000 such bounds 995 hold, and of the ends of the intervals 950
		*c = probe.Estimate{Value: low, Low: low, AtLeast: true}
		if low <= 0 {
			*c = probe.NoEstimate("bursts last no longer than the errors of their timestamps")
		}
	}
}

// unknownRate takes out a token rate and its bucket.
func unknownRate(r *tokenrate.Result, why string) {
	r.Rate, r.Bucket = probe.NoEstimate(why), probe.NoEstimate(why)
}

// overtaken says which part of the packets arrived out of order.
func overtaken(late float64) string {
	return fmt.Sprintf("%.0f %% of the packets arrived before others that were sent earlier", 100*late)
}

// checkTokenRate holds the token rate against the capacity, and the bucket against nothing.
func (a *Answer) checkTokenRate(o observed) {
	c, r := a.Capacity, a.TokenRate
	if r == nil {
		return
	}
	switch {
	case c == nil || !r.Rate.Known():
	case r.Rate.AtLeast && o.late > mostReordered:
		unknownRate(r, overtaken(o.late))
	case !c.Known() && isRate(*r) && (r.Shared() || math.IsInf(o.burst, 1) || o.burst < burstFaster*r.Rate.Value || o.jitter > burstJitter*packetTime(r.Rate.Value)):
		unknownRate(r, unknownCapacity+c.Reason)
	case !c.Known() || c.AtLeast || r.Rate.Value <= c.High*(1+agree):
	case r.Rate.AtLeast:
		r.Rate = probe.Estimate{Value: c.Low, Low: c.Low, AtLeast: true}
	default:
		unknownRate(r, fmt.Sprintf("trains passed at %s, above the capacity that was found, %s: packets arrive in groups", probe.FormatRate(r.Rate.Value), probe.FormatRate(c.Value)))
	}
	if r.Bucket.Known() && r.Bucket.Value < 0 {
		r.Bucket = probe.NoEstimate("packets arrived later than the token rate explains: they are grouped, reordered or delayed")
	}
}

// checkSchedule holds the schedule of an end against the capacity and the token rate.
func (a *Answer) checkSchedule() {
	l, c, r := a.Limiter, a.Capacity, a.TokenRate
	if l == nil || l.Class != limiter.Scheduling || len(l.Schedules) == 0 {
		return
	}
	s := l.Schedules[len(l.Schedules)-1]
	if r != nil && isRate(*r) && s.Rate.Known() && math.Abs(r.Rate.Value/s.Rate.Value-1) < scheduleRate {
		unknownRate(r, "trains arrived as fast as the "+string(s.At)+" runs at intervals")
	}
	if c == nil || !c.Known() || s.Sleeping.Value >= leastSleep*packetTime(c.Value) {
		return
	}
	const apart = "packets are apart by no more than some packets of others take at the capacity"
	if r != nil && isRate(*r) {
		*l = limiter.Result{Cannot: apart, Doubts: l.Doubts}
	} else {
		*l = limiter.Result{Class: limiter.None, At: limiter.Path, Confidence: shownLater, RunnerUp: limiter.Scheduling, Doubts: l.Doubts,
			Why: apart}
	}
}

// unknownCapacity is why a rate is not taken for a limiter's.
const unknownCapacity = "the capacity is not known, so that it may be the rate of a link: "

// varies reports whether the delays of packets that do not queue behind each other vary, as beside others' traffic.
func (a *Answer) varies(o observed) bool {
	c := a.Capacity
	return c != nil && c.Known() && o.jitter >= math.Max(packetTime(c.Value)/2, stampJitter)
}

// matchLimiter makes the limiter that of the token rate, which was confirmed.
func (a *Answer) matchLimiter(o observed) {
	l, r := a.Limiter, a.TokenRate
	if l == nil || r == nil {
		return
	}
	said := l.Confidence
	if c := a.Capacity; l.Class == limiter.None && isRate(*r) && r.Held > 0 && c != nil && c.Known() && r.Rate.High < c.Low*(1-3*agree) && !a.varies(o) {
		// Trains of the confirmation showed what those of the method did not.
		*l = limiter.Result{Class: limiter.TBF, At: limiter.Path, Confidence: shownLater, RunnerUp: limiter.Policer, Why: "only trains that were sent to confirm the rate met the limiter", Doubts: l.Doubts,
			Schedules: l.Schedules, Bucket: &limiter.Bucket{Peak: *c, Rate: r.Rate, Size: r.Bucket}}
		if r.Policed {
			l.Class, l.RunnerUp = limiter.Policer, limiter.TBF
		}
	}
	switch {
	case l.Class != limiter.None:
	case isRate(*r):
		unknownRate(r, "no train confirmed a limit, and others' traffic may be what slowed those that met one")
		fallthrough
	case !r.Rate.Known() && !o.unlimited:
		l.Confidence = math.Min(l.Confidence, hidden) // no train passed without being slowed
	}
	if (l.Class == limiter.TBF || l.Class == limiter.Policer) && l.Confidence < unsure && isRate(*r) {
		unknownRate(r, "the trains hardly tell a limiter from others' traffic")
	}
	if l.Class == limiter.TBF && r.Rate.Known() && (r.Rate.AtLeast || r.Held == 0 && !r.Shared()) {
		l.Confidence = math.Min(l.Confidence, shownLater) // of a limit that others' traffic hides, or that no train confirmed
	}
	if l.Class == limiter.Scheduling && o.slow {
		l.Confidence = math.Min(l.Confidence, hidden) // a full packet of others takes as long as an end sleeps
	}
	if l.Class == limiter.Policer && (r.Held == 0 || r.Rate.Value < capacity.SlowLink) {
		l.Confidence = math.Min(l.Confidence, shownLater) // a short queue drops as a policer does
	}
	if l.Bucket == nil {
		return
	}
	b := l.Bucket
	switch differs := isRate(*r) && b.Rate.Known() && math.Abs(b.Rate.Value/r.Rate.Value-1) > agree; {
	case differs && a.varies(o):
		unknownRate(r, "trains arrived at several rates, and others' traffic may be what slowed some of them")
	case differs: // another limiter of the path
		b.Rate, b.Size = r.Rate, r.Bucket
		if l.Class == limiter.TBF && r.Policed {
			l.Class, l.RunnerUp = limiter.Policer, limiter.TBF
		}
		l.Confidence = math.Min(l.Confidence, shownLater)
	case b.Size.Known() && b.Size.Value < 0:
		b.Size = r.Bucket
	case r.Rate.Known() || !b.Rate.Known() || b.Rate.AtLeast:
	case o.unconfirmed == "": // another part of the answer contradicts it
		*l = limiter.Result{Cannot: "the trains contradict each other: " + r.Rate.Reason, Doubts: l.Doubts, Schedules: l.Schedules}
	default:
		contradict(l, said, r.Rate.Reason, o.unlimited)
	}
}

// contradict takes out what is not known of a token bucket that trains showed, and says how often there is one nevertheless. said is the confidence without the
// trains that contradict it.
func contradict(l *limiter.Result, said float64, why string, unlimited bool) {
	l.Bucket, l.Doubts = nil, append(l.Doubts, "the trains contradict each other: "+why)
	switch {
	case l.Class == limiter.Policer && said < surelyDrops:
		l.Confidence = hidden
	case unlimited:
		l.Confidence = hardlyLimited
	default:
		l.Confidence = shownLater
	}
}

// checkAvailable takes out an available bandwidth that follows from a capacity which is not known.
func (a *Answer) checkAvailable(o observed) {
	c, v := a.Capacity, a.Available
	if c == nil || v == nil || !v.Available.Known() {
		return
	}
	switch {
	case v.Available.AtLeast && a.varies(o):
		v.Available = probe.NoEstimate("budget was too small to empty the bucket beside others' traffic")
	case v.Available.Value <= 0:
		v.Available = probe.NoEstimate("others' traffic made the queue grow as fast as it can")
	}
	if a.TokenRate != nil && isRate(*a.TokenRate) {
		return
	}
	switch {
	case !c.Known():
		v.Available = probe.NoEstimate("the capacity is not known: " + c.Reason)
	case c.AtLeast: // how much a queue grew follows from the capacity
		v.Available = probe.NoEstimate("of the capacity only a bound is known")
	case o.slow && !o.unlimited:
		// Others' traffic hid whether a limiter slowed the few bytes that a slow link allows, and the trains vary too little in rate to show another tight link.
		v.Available.Low = 0
	}
}

// most returns the rate in bit/s that the path carries for long at most, and what that is. shown is the lowest rate at which a train was limited, 0 if none was.
func (a *Answer) most(shown float64) (most float64, what string) {
	most, what = math.Inf(1), "the capacity"
	if c := a.Capacity; c != nil && c.Known() && !c.AtLeast {
		most = c.High
	}
	if r := a.TokenRate; r != nil && isRate(*r) && r.Rate.High < most {
		return r.Rate.High, "the token rate"
	} else if shown > 0 && shown < most {
		return shown, "the rate of longer trains"
	}
	return most, what
}

// boundAvailable holds the available bandwidth to what the other parts allow, and to the rate at which trains were limited.
func (a *Answer) boundAvailable(shown float64) {
	if a.Available == nil || !a.Available.Available.Known() {
		return
	}
	v := &a.Available.Available
	most, what := a.most(shown)
	if v.Value <= most*(1+agree) {
		return
	}
	*v = probe.NoEstimate(fmt.Sprintf("trains passed at %s, above %s of %s: they were shorter than the bucket", probe.FormatRate(v.Value), what, probe.FormatRate(most)))
}
