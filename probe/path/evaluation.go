package path

import (
	"math"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/available"
	"headgate.dev/headgate/probe/capacity"
	"headgate.dev/headgate/probe/limiter"
	"headgate.dev/headgate/probe/tokenrate"
	"headgate.dev/headgate/unit"
)

// evaluation caches what the methods derive from the samples. Each part is computed once, on
// first use, because several parts need it and some evaluate thousands of resamples.
type evaluation struct {
	Method
	samples []probe.Sample // without those of nextPass
	passing []probe.Sample // those of nextPass
	left    unit.Bytes     // remainder of the budget, less kept
	kept    unit.Bytes     // what nextPass may have of it

	capacity func() probe.Estimate
	// narrow is about the rate of the narrow link, or twice that of a limiter which the trains for the capacity met.
	narrow    func() float64
	limiter   func() limiter.Result
	tokenRate func() tokenrate.Result
	claim     func() claim // for the next train
	answer    func() claim
}

func (m Method) read(samples []probe.Sample) *evaluation {
	r := &evaluation{Method: m, left: m.budget()}
	keeps := unit.Bytes(0)
	if r.Available && m.ours() {
		keeps = min(m.shares().pass, m.budget()/keptPart)
	}
	for i := range samples {
		b := samples[i].Bytes()
		r.left -= min(r.left, b)
		if samples[i].Purpose == purposePass {
			r.passing = append(r.passing, samples[i])
			keeps -= min(keeps, b)
		} else {
			r.samples = append(r.samples, samples[i])
		}
	}
	r.kept = min(r.left, keeps)
	r.left -= r.kept
	r.capacity, r.narrow = sync.OnceValue(r.readCapacity), sync.OnceValue(r.readNarrow)
	r.limiter = sync.OnceValue(func() limiter.Result { return r.oursLimiter().Estimate(r.samples) })
	r.tokenRate = sync.OnceValue(r.readTokenRate)
	r.claim, r.answer = sync.OnceValue(r.readClaim), sync.OnceValue(r.readAnswer)
	return r
}

// of returns the samples of a part's own trains.
func (r *evaluation) of(part string) (out []probe.Sample) {
	for i := range r.samples {
		if strings.HasPrefix(r.samples[i].Purpose, part+"/") {
			out = append(out, r.samples[i])
		}
	}
	return out
}

// spent returns the bytes of a part's own trains.
func (r *evaluation) spent(part string) (b unit.Bytes) {
	for _, s := range r.of(part) {
		b += s.Bytes()
	}
	return b
}

func (r *evaluation) nextCapacity() (probe.Train, bool) {
	if r.KnownCapacity > 0 {
		return probe.Train{}, false
	}
	own := r.of("capacity")
	if r.Seed {
		return capacity.NarrowLink{Length: seedLength}.Next(own)
	}
	return r.oursCapacity().Next(own)
}

func (r *evaluation) oursCapacity() capacity.Bursts {
	s := r.shares()
	return capacity.Bursts{Budget: s.capacity, Time: s.capacityTime}
}

// readCapacity returns the known or measured capacity.
func (r *evaluation) readCapacity() probe.Estimate {
	if r.KnownCapacity > 0 {
		c := float64(r.KnownCapacity)
		return probe.Estimate{Value: c, Low: c, High: c}
	}
	own := r.of("capacity")
	if len(own) == 0 {
		return probe.NoEstimate("no train was sent")
	}
	if !r.Seed {
		return r.oursCapacity().Estimate(own).Capacity
	}
	c, err := capacity.NarrowLink{Length: seedLength}.Estimate(own)
	if err != nil {
		return probe.NoEstimate(err.Error())
	}
	return probe.Estimate{Value: c, Low: c, High: c}
}

// bound returns a rate little below the capacity, for methods that only need to know
// whether a rate is below the capacity. It is the middle of the estimate and its lower
// bound. The lower bound itself would hide a shaper at nine tenths of the link; the
// estimate itself would let the link pass for a shaper.
func (r *evaluation) bound() float64 {
	if c := r.capacity(); c.Known() && !c.AtLeast {
		return (c.Low + c.Value) / 2
	}
	return math.Inf(1)
}

func (r *evaluation) nextTokenRate() (probe.Train, bool) {
	if !r.TokenRate && !r.Available && !(r.Limiter && r.slow()) { // of a slow link the limiter follows from these trains, which are gentle
		return probe.Train{}, false
	}
	own := r.of("tokenrate")
	if r.Seed {
		return tokenrate.NarrowTokenRate{Capacity: r.capacity().Value}.Next(own)
	}
	ours := r.oursTokenRate(r.left)
	t, ok := ours.Next(own)
	// A budget above the default is spent on emptying a larger bucket.
	if !ok && r.Budget > Budget {
		return tokenrate.Drain{Capacity: r.bound(), Rate: ours.Rate, Left: min(r.left, mostDrain)}.Next(own)
	}
	return t, ok
}

// mostDrain bounds a train that empties a bucket, which its receiver holds as a whole: one of burst credits is emptied by Drain.
const mostDrain unit.Bytes = 200_000_000

// Constants of slow links, chosen by Headgate.
const (
	// A packet of slowPacket ns makes queues of some packets no longer than 10 ms. With slowSize bytes a measurement has 400 kB at most.
	slowPacket          = 1.5e6
	leastSize, slowSize = 100, 400
	// slowTrain is the longest train for the token rate, slowTime the time of all trains for the available bandwidth.
	slowTrain, slowTime = 350 * time.Millisecond, time.Second
	// slowBytes bounds the bytes for the available bandwidth.
	slowBytes = 115_000
)

// slow reports whether a link of the path or a limiter is so slow that trains of full packets would delay others' traffic by more than 10 ms.
func (r *evaluation) slow() bool { return !r.Seed && r.narrow() < capacity.SlowLink }

func (r *evaluation) readNarrow() float64 {
	rate := capacity.Scouted(r.samples)
	if c := r.capacity(); c.Known() {
		rate = c.Value
	}
	return math.Min(rate, 2*capacity.Met(r.samples))
}

// packet returns the size of the IP packets of trains.
func (r *evaluation) packet() int {
	if !r.slow() {
		return fullPacket
	}
	return min(max(int(r.narrow()*slowPacket/8e9)-probe.Overhead, leastSize), slowSize)
}

// oursTokenRate may spend the remaining budget and what its own trains have spent
// already.
func (r *evaluation) oursTokenRate(left unit.Bytes) tokenrate.Ladder {
	m := tokenrate.Ladder{Capacity: r.bound(), Budget: min(left+r.spent("tokenrate"), r.shares().tokenRate)}
	if float64(r.Nominal) < m.Capacity {
		m.Rate = r.Nominal
	}
	if r.slow() && m.Rate == 0 {
		m.Packet, m.Rate, m.Longest = r.packet(), unit.Rate(drainPart*r.narrow()), slowTrain
	}
	return m
}

func (r *evaluation) readTokenRate() tokenrate.Result {
	own := r.of("tokenrate")
	if !r.Seed {
		return r.oursTokenRate(0).Estimate(own)
	}
	rate, err := tokenrate.NarrowTokenRate{Capacity: r.capacity().Value}.Estimate(own)
	no := probe.NoEstimate("NarrowTokenRate does not measure the bucket size")
	if err != nil {
		return tokenrate.Result{Rate: probe.NoEstimate(err.Error()), Bucket: no}
	}
	return tokenrate.Result{Rate: probe.Estimate{Value: rate, Low: rate, High: rate}, Bucket: no}
}

// sharpTicks is the part of a Xen-like limiter's rate by which its interval may be higher; else the trains that were sent for the token rate show more. Between
// two veth interfaces of 2 Gbit/s on a busy host, packets arrive in batches that pass for such a limiter, of 0 to 3.5 Gbit/s in one measurement.
const sharpTicks = 0.3

// shaper returns the token rate and the bucket size. For a limiter that does not delay
// single packets (Xen, a policer), it returns the parameters of that limiter.
func (r *evaluation) shaper() tokenrate.Result {
	if r.Seed {
		return r.tokenRate()
	}
	switch l := r.limiter(); {
	case l.Class == limiter.Xen && l.Ticks != nil && l.Ticks.Rate.High <= l.Ticks.Rate.Value*(1+sharpTicks):
		return tokenrate.Result{Rate: l.Ticks.Rate, Bucket: l.Ticks.Tokens}
	case l.Class == limiter.Policer && l.Bucket != nil:
		return tokenrate.Result{Rate: l.Bucket.Rate, Bucket: l.Bucket.Size, Policed: true}
	}
	return r.tokenRate()
}

func (r *evaluation) nextLimiter() (probe.Train, bool) {
	if !r.Limiter || r.Seed {
		return probe.Train{}, false
	}
	// All trains show something of the limiter, so the method counts the bytes of all.
	o := r.oursLimiter()
	for i := range r.samples {
		o.Budget += r.samples[i].Bytes()
	}
	share, spent := r.shares().limiter, r.spent("limiter")
	o.Budget += min(r.left, share-min(spent, share))
	return o.Next(r.samples)
}

func (r *evaluation) oursLimiter() (o limiter.Detector) {
	known := r.bound()
	if r.slow() {
		known, o.Packet, o.Gentle = math.Min(known, r.narrow()), r.packet(), true
	}
	if !math.IsInf(known, 1) {
		o.Capacity = known
	}
	return o
}

func (r *evaluation) nextAvailable() (probe.Train, bool) {
	if !r.Available {
		return probe.Train{}, false
	}
	if r.Seed {
		return r.pathload().Next(r.of("available"))
	}
	if r.unheld() != "" {
		return probe.Train{}, false
	}
	return r.oursAvailable().Next(r.of("available"))
}

// unheld returns why a queue cannot be held at the tight link, whose growth follows from the capacity or the token rate; "" if it can, or if the trains for the limiter
// are missing without which nextPass sends none.
func (r *evaluation) unheld() string {
	switch c := r.capacity(); {
	case r.Nominal > 0 || !r.Limiter || r.slow() || isRate(r.answer().Result) || c.Known() && !c.AtLeast:
		return ""
	case c.AtLeast:
		return "of the capacity only a bound is known"
	default:
		return "the capacity is not known: " + c.Reason
	}
}

// pathload is used together with the seed's methods. The seed's own method, PacketTick,
// needs two senders.
func (r *evaluation) pathload() available.Pathload {
	m := available.Pathload{Budget: r.left + r.spent("available")}
	if c := r.capacity(); c.Known() {
		m.Highest = c.Value
	}
	return m
}

// oursAvailable passes the results of the earlier methods.
func (r *evaluation) oursAvailable() (o available.HoldTrains) {
	o.Budget = min(r.left+r.spent("available"), r.shares().available)
	if c := r.capacity(); c.Known() {
		o.Capacity = c.Value
	}
	if r.slow() {
		o.Capacity, o.Packet, o.Gentle = r.narrow(), r.packet(), true
		o.Budget, o.Time = min(o.Budget, slowBytes), slowTime
	}
	if len(r.of("tokenrate")) > 0 {
		s := r.answer()
		if s.Rate.Known() {
			o.TokenRate = s.Rate.Value
		}
		if s.Bucket.Known() {
			o.Bucket = s.Bucket.Value
		}
	}
	return o
}
