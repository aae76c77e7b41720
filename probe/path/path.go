package path

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"headgate/probe"
	"headgate/probe/available"
	"headgate/probe/capacity"
	"headgate/probe/limiter"
	"headgate/probe/tokenrate"
	"headgate/unit"
)

// Wanted are the parts of an answer.
type Wanted struct {
	Capacity, TokenRate, Limiter, Available bool
}

// Everything is all parts.
var Everything = Wanted{true, true, true, true}

// Method measures what is wanted in one direction.
type Method struct {
	Wanted
	// Known is the capacity in bit/s of layer 2, if the user knows it: then it is not
	// measured.
	Known unit.Rate
	// Seed: the estimation seed's methods, where it has one, in place of ours.
	Seed bool
	// Budget bounds what all trains send together, in bytes of layer 2; 0 is Budget.
	Budget unit.Bytes
}

// seedLength of the seed's pairs (2.5.4): no sender of ours holds the rate of two
// packets of 500 bytes above 333 Mbit/s.
const seedLength = 3

// Answer is what one direction of a path gives. Rates are bit/s of layer 2; those of
// IP packets as large as the path takes are LayerThree of them.
type Answer struct {
	Capacity  *probe.Estimate   `json:"capacity,omitempty"`
	TokenRate *tokenrate.Result `json:"token_rate,omitempty"`
	Limiter   *limiter.Result   `json:"limiter,omitempty"`
	Available *available.Result `json:"available,omitempty"`
	// Packet is the largest IP packet, in bytes, and LayerThree its part of a frame.
	Packet     int     `json:"packet"`
	LayerThree float64 `json:"layer_3"`
	// Lost is the part of all packets that did not come.
	Lost float64 `json:"lost"`
	// Flaws are what went wrong at either end, once each.
	Flaws []string `json:"flaws,omitempty"`
	// Bytes of layer 2 that were sent for it, and within how many seconds.
	Bytes   unit.Bytes `json:"bytes"`
	Seconds float64    `json:"seconds"`
}

// of are the samples for a part.
func of(samples []probe.Sample, part string) (out []probe.Sample) {
	for i := range samples {
		if strings.HasPrefix(samples[i].Purpose, part+"/") {
			out = append(out, samples[i])
		}
	}
	return out
}

// Next is the train that comes after those that were sent, or ok is false if the
// answer is there, or the budget is not.
func (m Method) Next(samples []probe.Sample) (t probe.Train, ok bool) {
	left := m.budget()
	for i := range samples {
		left -= min(left, samples[i].Bytes())
	}
	for _, next := range []func([]probe.Sample, unit.Bytes) (probe.Train, bool){m.nextCapacity, m.nextTokenRate, m.nextLimiter, m.nextAvailable} {
		if left == 0 {
			break
		}
		if t, ok = next(samples, left); ok && t.Bytes() <= left {
			return t, true
		}
	}
	return probe.Train{}, false
}

func (m Method) nextCapacity(samples []probe.Sample, _ unit.Bytes) (probe.Train, bool) {
	if m.Known > 0 {
		return probe.Train{}, false
	}
	own := of(samples, "capacity")
	if m.Seed {
		return capacity.Seed{Length: seedLength}.Next(own)
	}
	return m.oursCapacity().Next(own)
}

func (m Method) oursCapacity() capacity.Ours {
	s := m.shares()
	return capacity.Ours{Budget: s.capacity, Time: s.capacityTime}
}

func (m Method) nextTokenRate(samples []probe.Sample, left unit.Bytes) (probe.Train, bool) {
	if !m.TokenRate && !m.Available {
		return probe.Train{}, false
	}
	own := of(samples, "tokenrate")
	if m.Seed {
		return tokenrate.Seed{Capacity: m.capacity(samples).Value}.Next(own)
	}
	t, ok := m.oursTokenRate(samples, left).Next(own)
	// Who gives more than usual wants a larger bucket emptied.
	if !ok && m.Budget > Budget {
		return tokenrate.Drain{Capacity: m.bound(samples), Left: left}.Next(own)
	}
	return t, ok
}

// oursTokenRate may spend what is left, and what its own trains spent.
func (m Method) oursTokenRate(samples []probe.Sample, left unit.Bytes) tokenrate.Ours {
	return tokenrate.Ours{Capacity: m.bound(samples), Budget: min(left+bytesOf(samples, "tokenrate"), m.shares().tokenRate)}
}

// bytesOf are what a part's own trains spent.
func bytesOf(samples []probe.Sample, part string) (b unit.Bytes) {
	for _, s := range of(samples, part) {
		b += s.Bytes()
	}
	return b
}

func (m Method) nextLimiter(samples []probe.Sample, left unit.Bytes) (probe.Train, bool) {
	if !m.Limiter || m.Seed {
		return probe.Train{}, false
	}
	// All trains show something of it, and so it counts them all.
	o := m.oursLimiter(samples)
	for i := range samples {
		o.Budget += samples[i].Bytes()
	}
	share := m.shares().limiter
	o.Budget += min(left, share-min(bytesOf(samples, "limiter"), share))
	return o.Next(samples)
}

func (m Method) nextAvailable(samples []probe.Sample, left unit.Bytes) (probe.Train, bool) {
	if !m.Available || m.Seed {
		return probe.Train{}, false
	}
	o := m.oursAvailable(samples)
	o.Budget = min(left+bytesOf(samples, "available"), m.shares().available)
	return o.Next(of(samples, "available"))
}

// oursAvailable knows what the methods before found.
func (m Method) oursAvailable(samples []probe.Sample) (o available.Ours) {
	if c := m.capacity(samples); c.Known() {
		o.Capacity = c.Value
	}
	if own := of(samples, "tokenrate"); len(own) > 0 {
		r := m.shaper(own, samples)
		if r.Rate.Known() {
			o.TokenRate = r.Rate.Value
		}
		if r.Bucket.Known() {
			o.Bucket = r.Bucket.Value
		}
	}
	return o
}

// capacity is what is known or was measured.
func (m Method) capacity(samples []probe.Sample) probe.Estimate {
	if m.Known > 0 {
		c := float64(m.Known)
		return probe.Estimate{Value: c, Low: c, High: c}
	}
	own := of(samples, "capacity")
	if len(own) == 0 {
		return probe.CannotTell("nothing was sent")
	}
	if !m.Seed {
		return m.oursCapacity().Estimate(own).Capacity
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
func (m Method) bound(samples []probe.Sample) float64 {
	if c := m.capacity(samples); c.Known() && !c.AtLeast {
		return (c.Low + c.Value) / 2
	}
	return math.Inf(1)
}

// Estimate is the answer that samples give.
func (m Method) Estimate(samples []probe.Sample) Answer {
	a := Answer{}
	sent, lost := 0, 0
	for i := range samples {
		s := &samples[i]
		a.Bytes += s.Bytes()
		sent, lost = sent+s.Count(), lost+s.Lost()
		for _, p := range s.Parts {
			a.Packet = max(a.Packet, p.Size)
		}
		for _, f := range s.Flaws {
			if !slices.Contains(a.Flaws, f) {
				a.Flaws = append(a.Flaws, f)
			}
		}
	}
	if sent > 0 {
		a.Lost = float64(lost) / float64(sent)
		a.LayerThree = float64(a.Packet) / float64(a.Packet+probe.Overhead)
	}
	if m.Capacity || m.Known == 0 {
		c := m.capacity(samples)
		a.Capacity = &c
	}
	if own := of(samples, "tokenrate"); m.TokenRate && len(own) > 0 {
		r := m.shaper(own, samples)
		a.TokenRate = &r
	}
	if m.Limiter && !m.Seed && len(samples) > 0 {
		r := m.oursLimiter(samples).Estimate(samples)
		a.Limiter = &r
	}
	if own := of(samples, "available"); m.Available && len(own) > 0 {
		r := m.oursAvailable(samples).Estimate(own)
		a.Available = &r
	}
	return a
}

// shaper is the token rate and the bucket, or what stands in their place where the
// limiter is none that holds packets back one by one.
func (m Method) shaper(own, samples []probe.Sample) tokenrate.Result {
	r := m.tokenRate(own, samples)
	if m.Seed {
		return r
	}
	switch l := m.oursLimiter(samples).Estimate(samples); {
	case l.Class == limiter.Xen && l.Ticks != nil:
		return tokenrate.Result{Rate: l.Ticks.Rate, Bucket: l.Ticks.Tokens}
	case l.Class == limiter.Policer && l.Bucket != nil:
		return tokenrate.Result{Rate: l.Bucket.Rate, Bucket: l.Bucket.Size}
	}
	return r
}

func (m Method) oursLimiter(samples []probe.Sample) limiter.Ours {
	o := limiter.Ours{}
	if c := m.bound(samples); !math.IsInf(c, 1) {
		o.Capacity = c
	}
	return o
}

func (m Method) tokenRate(own, samples []probe.Sample) tokenrate.Result {
	if !m.Seed {
		return m.oursTokenRate(samples, 0).Estimate(own)
	}
	rate, err := tokenrate.Seed{Capacity: m.capacity(samples).Value}.Estimate(own)
	no := probe.CannotTell("the seed's method does not ask")
	if err != nil {
		return tokenrate.Result{Rate: probe.CannotTell(err.Error()), Bucket: no}
	}
	return tokenrate.Result{Rate: probe.Estimate{Value: rate, Low: rate, High: rate}, Bucket: no}
}

// Send sends one train, and waits for what comes of it.
type Send func(context.Context, probe.Train) (probe.Sample, error)

// Run sends what a method asks for until it has enough, or limit is over. seen is
// told of each sample. With an error the samples are those until then.
func Run(ctx context.Context, next func([]probe.Sample) (probe.Train, bool), send Send, limit time.Duration, seen func(*probe.Sample)) (samples []probe.Sample, err error) {
	for begun := time.Now(); time.Since(begun) < limit; {
		t, ok := next(samples)
		if !ok {
			break
		}
		s, err := send(ctx, t)
		if err != nil {
			return samples, err
		}
		samples = append(samples, s)
		seen(&s)
	}
	return samples, nil
}
