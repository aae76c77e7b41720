package path

import (
	"math"
	"strings"
	"sync"

	"headgate/probe"
	"headgate/probe/available"
	"headgate/probe/capacity"
	"headgate/probe/limiter"
	"headgate/probe/tokenrate"
	"headgate/unit"
)

// reading is what samples say to a method: each part once, when it is first asked for,
// because others ask for it too, and some take thousands of samples again.
type reading struct {
	Method
	samples []probe.Sample
	left    unit.Bytes // of the budget

	capacity  func() probe.Estimate
	limiter   func() limiter.Result
	tokenRate func() tokenrate.Result
}

func (m Method) read(samples []probe.Sample) *reading {
	r := &reading{Method: m, samples: samples, left: m.budget()}
	for i := range samples {
		r.left -= min(r.left, samples[i].Bytes())
	}
	r.capacity = sync.OnceValue(r.readCapacity)
	r.limiter = sync.OnceValue(func() limiter.Result { return r.oursLimiter().Estimate(samples) })
	r.tokenRate = sync.OnceValue(r.readTokenRate)
	return r
}

// of are the samples for a part.
func (r *reading) of(part string) (out []probe.Sample) {
	for i := range r.samples {
		if strings.HasPrefix(r.samples[i].Purpose, part+"/") {
			out = append(out, r.samples[i])
		}
	}
	return out
}

// spent are what a part's own trains cost.
func (r *reading) spent(part string) (b unit.Bytes) {
	for _, s := range r.of(part) {
		b += s.Bytes()
	}
	return b
}

func (r *reading) nextCapacity() (probe.Train, bool) {
	if r.Known > 0 {
		return probe.Train{}, false
	}
	own := r.of("capacity")
	if r.Seed {
		return capacity.Seed{Length: seedLength}.Next(own)
	}
	return r.oursCapacity().Next(own)
}

func (r *reading) oursCapacity() capacity.Ours {
	s := r.shares()
	return capacity.Ours{Budget: s.capacity, Time: s.capacityTime}
}

// readCapacity is what is known or was measured.
func (r *reading) readCapacity() probe.Estimate {
	if r.Known > 0 {
		c := float64(r.Known)
		return probe.Estimate{Value: c, Low: c, High: c}
	}
	own := r.of("capacity")
	if len(own) == 0 {
		return probe.CannotTell("nothing was sent")
	}
	if !r.Seed {
		return r.oursCapacity().Estimate(own).Capacity
	}
	c, err := capacity.Seed{Length: seedLength}.Estimate(own)
	if err != nil {
		return probe.CannotTell(err.Error())
	}
	return probe.Estimate{Value: c, Low: c, High: c}
}

// bound is little less than the capacity, for what only wants to know whether a rate
// is below it: half of the way down to the least that it may be. Its least would hide a
// shaper at nine tenths of the link, and its value call the link a shaper.
func (r *reading) bound() float64 {
	if c := r.capacity(); c.Known() && !c.AtLeast {
		return (c.Low + c.Value) / 2
	}
	return math.Inf(1)
}

func (r *reading) nextTokenRate() (probe.Train, bool) {
	if !r.TokenRate && !r.Available {
		return probe.Train{}, false
	}
	own := r.of("tokenrate")
	if r.Seed {
		return tokenrate.Seed{Capacity: r.capacity().Value}.Next(own)
	}
	t, ok := r.oursTokenRate(r.left).Next(own)
	// Who gives more than usual wants a larger bucket emptied.
	if !ok && r.Budget > Budget {
		return tokenrate.Drain{Capacity: r.bound(), Left: r.left}.Next(own)
	}
	return t, ok
}

// oursTokenRate may spend what is left, and what its own trains spent.
func (r *reading) oursTokenRate(left unit.Bytes) tokenrate.Ours {
	return tokenrate.Ours{Capacity: r.bound(), Budget: min(left+r.spent("tokenrate"), r.shares().tokenRate)}
}

func (r *reading) readTokenRate() tokenrate.Result {
	own := r.of("tokenrate")
	if !r.Seed {
		return r.oursTokenRate(0).Estimate(own)
	}
	rate, err := tokenrate.Seed{Capacity: r.capacity().Value}.Estimate(own)
	no := probe.CannotTell("the seed's method does not ask")
	if err != nil {
		return tokenrate.Result{Rate: probe.CannotTell(err.Error()), Bucket: no}
	}
	return tokenrate.Result{Rate: probe.Estimate{Value: rate, Low: rate, High: rate}, Bucket: no}
}

// shaper is the token rate and the bucket, or what stands in their place where the
// limiter is none that holds packets back one by one.
func (r *reading) shaper() tokenrate.Result {
	if r.Seed {
		return r.tokenRate()
	}
	switch l := r.limiter(); {
	case l.Class == limiter.Xen && l.Ticks != nil:
		return tokenrate.Result{Rate: l.Ticks.Rate, Bucket: l.Ticks.Tokens}
	case l.Class == limiter.Policer && l.Bucket != nil:
		return tokenrate.Result{Rate: l.Bucket.Rate, Bucket: l.Bucket.Size}
	}
	return r.tokenRate()
}

func (r *reading) nextLimiter() (probe.Train, bool) {
	if !r.Limiter || r.Seed {
		return probe.Train{}, false
	}
	// All trains show something of it, and so it counts them all.
	o := r.oursLimiter()
	for i := range r.samples {
		o.Budget += r.samples[i].Bytes()
	}
	share, spent := r.shares().limiter, r.spent("limiter")
	o.Budget += min(r.left, share-min(spent, share))
	return o.Next(r.samples)
}

func (r *reading) oursLimiter() (o limiter.Ours) {
	if c := r.bound(); !math.IsInf(c, 1) {
		o.Capacity = c
	}
	return o
}

func (r *reading) nextAvailable() (probe.Train, bool) {
	if !r.Available {
		return probe.Train{}, false
	}
	if r.Seed {
		return r.pathload().Next(r.of("available"))
	}
	o := r.oursAvailable()
	o.Budget = min(r.left+r.spent("available"), r.shares().available)
	return o.Next(r.of("available"))
}

// pathload stands beside the seed's methods: its own, PacketTick, takes two senders.
func (r *reading) pathload() available.Pathload {
	m := available.Pathload{Budget: r.left + r.spent("available")}
	if c := r.capacity(); c.Known() {
		m.Highest = c.Value
	}
	return m
}

// oursAvailable knows what the methods before found.
func (r *reading) oursAvailable() (o available.Ours) {
	if c := r.capacity(); c.Known() {
		o.Capacity = c.Value
	}
	if len(r.of("tokenrate")) > 0 {
		s := r.shaper()
		if s.Rate.Known() {
			o.TokenRate = s.Rate.Value
		}
		if s.Bucket.Known() {
			o.Bucket = s.Bucket.Value
		}
	}
	return o
}
