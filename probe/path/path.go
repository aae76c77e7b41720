package path

import (
	"cmp"
	"context"
	"slices"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/available"
	"headgate.dev/headgate/probe/credits"
	"headgate.dev/headgate/probe/limiter"
	"headgate.dev/headgate/probe/tokenrate"
	"headgate.dev/headgate/unit"
)

// Parts selects the parts of an answer.
type Parts struct {
	Capacity, TokenRate, Limiter, Available bool
	// Credits are measured by Drain, after all trains of Next.
	Credits bool
}

// AllParts selects all parts.
var AllParts = Parts{Capacity: true, TokenRate: true, Limiter: true, Available: true}

// PartsOf returns the parts of a measure: "path" is all of them but the burst credits, and "capacity", "tokenrate", "limiter",
// "available" and "credits" are one each.
func PartsOf(measure string) (p Parts, ok bool) {
	switch measure {
	case "path":
		return AllParts, true
	case "capacity":
		return Parts{Capacity: true}, true
	case "tokenrate":
		return Parts{TokenRate: true}, true
	case "limiter":
		return Parts{Limiter: true}, true
	case "available":
		return Parts{Available: true}, true
	case "credits":
		return Parts{Credits: true}, true
	}
	return Parts{}, false
}

// Method measures the wanted parts in one direction.
type Method struct {
	Parts
	// KnownCapacity is the capacity in bit/s of layer 2, if the user knows it. The capacity is
	// then not measured.
	KnownCapacity unit.Rate
	// Nominal is the rate in bit/s of layer 2 that the path is said to have, 0 if that is not known. Whether it has less is asked with trains that are not
	// faster: hosts receive these one by one, where those of the capacity of a fast line arrive in batches, which hide a limiter.
	Nominal unit.Rate
	// Seed selects the methods of the estimation seed, where it has one.
	Seed bool
	// Budget bounds the layer 2 bytes of all trains; 0 is the constant Budget.
	Budget unit.Bytes
}

// ours reports whether trains of all rates are sent and held against each other: not by the seed's methods, and not at the rate of a network's links, whose
// controller does that with the results.
func (m Method) ours() bool { return !m.Seed && m.Nominal == 0 }

// seedLength is the train length for the packet pairs of the estimation seed (2.5.4).
// Headgate's senders cannot keep the rate of two packets of 500 bytes above 333 Mbit/s.
const seedLength = 3

// Answer is the result for one direction of a path. Rates are bit/s of layer 2.
// Multiplied by LayerThree they are rates of IP packets of the maximum size.
type Answer struct {
	Capacity  *probe.Estimate   `json:"capacity,omitempty"`
	TokenRate *tokenrate.Result `json:"token_rate,omitempty"`
	Limiter   *limiter.Result   `json:"limiter,omitempty"`
	Available *available.Result `json:"available,omitempty"`
	Credits   *credits.Result   `json:"credits,omitempty"`
	// Packet is the largest IP packet in bytes, LayerThree its fraction of a frame.
	Packet     int     `json:"packet"`
	LayerThree float64 `json:"layer_3"`
	// Lost is the fraction of all packets that were lost.
	Lost float64 `json:"lost"`
	// Flaws are the distinct faults at either end.
	Flaws []string `json:"flaws,omitempty"`
	// Bytes is the layer 2 bytes that were sent, with those of trains that were sent again, Seconds the duration.
	Bytes   unit.Bytes `json:"bytes"`
	Seconds float64    `json:"seconds"`

	packets, missing int // of which Lost is the fraction
}

// HasBucket reports whether a token bucket was found on the path: a shaper or a policer.
func (a Answer) HasBucket() bool {
	return a.Limiter != nil && a.Limiter.Bucket != nil && (a.Limiter.Class == limiter.TBF || a.Limiter.Class == limiter.Policer)
}

// Next returns the next train for the samples so far. ok is false if the result is
// complete or the budget is spent.
func (m Method) Next(samples []probe.Sample) (t probe.Train, ok bool) {
	r := m.read(samples)
	for _, next := range []func() (probe.Train, bool){r.nextCapacity, r.nextTokenRate, r.nextLimiter, r.nextConfirm, r.nextAvailable} {
		if r.left == 0 {
			break
		}
		if t, ok = next(); ok && t.Bytes() <= r.left {
			return t, true
		}
	}
	t, ok = r.nextPass(samples)
	return t, ok && t.Bytes() <= r.left+r.kept
}

// Estimate returns the answer for the samples.
func (m Method) Estimate(samples []probe.Sample) Answer {
	r := m.read(samples)
	a := Answer{}
	if r.slow() { // a long transfer has full packets
		a.Packet = fullPacket
	}
	for i := range samples {
		a.count(&samples[i])
	}
	if m.Capacity || m.KnownCapacity == 0 {
		c := r.capacity()
		a.Capacity = &c
	}
	if m.TokenRate && len(r.of("tokenrate")) > 0 {
		s := r.answer().Result
		a.TokenRate = &s
	}
	if m.Limiter && !m.Seed && len(r.samples) > 0 {
		l := r.limiter()
		a.Limiter = &l
	}
	if own := r.of("available"); m.Available && (len(own) > 0 || !m.Seed && len(r.samples) > 0 && (r.unheld() != "" || len(r.passing) > 0)) {
		v := available.Result{}
		switch {
		case m.Seed:
			v = r.pathload().Estimate(own)
		case len(own) == 0:
			v.Available = probe.NoEstimate(cmp.Or(r.unheld(), "nothing of the budget was left to hold the tight link busy"))
		default:
			v = r.oursAvailable().Estimate(own)
		}
		if late := reordered(own); m.ours() && late > mostReordered {
			v.Available = probe.NoEstimate(overtaken(late))
		}
		a.Available = &v
	}
	if m.ours() {
		seen := r.observed()
		a.reconcile(seen)
		a.hold(r.samples)
		most, _ := a.most(seen.shown)
		b := r.bounds(a.Capacity, most)
		a.weigh(b)
		a.bound(b)
	} else {
		a.hold(r.samples)
	}
	if m.Credits && len(r.of("credits")) > 0 {
		m.replayCredits(&a, samples)
	}
	return a
}

// count adds what a sample says about bytes, packets and the ends.
func (a *Answer) count(s *probe.Sample) {
	a.Bytes += s.Bytes() + s.Again
	a.packets, a.missing = a.packets+s.Count(), a.missing+s.Lost()
	for _, p := range s.Parts {
		a.Packet = max(a.Packet, p.Size)
	}
	for _, f := range s.Flaws {
		if !slices.Contains(a.Flaws, f) {
			a.Flaws = append(a.Flaws, f)
		}
	}
	a.Lost = float64(a.missing) / float64(a.packets)
	a.LayerThree = float64(a.Packet) / float64(a.Packet+probe.Overhead)
}

// nearlyCapacity is the part of the capacity above which a train met no limiter.
const nearlyCapacity = 0.85

// hold says for how many bytes trains passed at what the answer has as the available bandwidth, and as a bound of the token rate.
func (a *Answer) hold(samples []probe.Sample) {
	longest := func(rate float64) (b unit.Bytes) {
		for i := range samples {
			if s := &samples[i]; len(s.Arrived) >= minHeld && s.ArrivalRate() >= rate {
				b = max(b, arrived(s))
			}
		}
		return b
	}
	if v := a.Available; v != nil && v.Available.Known() {
		if v.Held = longest(v.Available.Low); v.Held == 0 && len(samples) > 0 {
			v.Available = probe.NoEstimate("no train passed as fast as the model of the queue says")
		}
	}
	if r := a.TokenRate; r != nil && r.Rate.Known() && r.Rate.AtLeast {
		if r.Held = longest(r.Rate.Value * (1 - sameRate)); r.Held == 0 && len(samples) > 0 {
			unknownRate(r, "no train arrived at the rate that a part of one showed: others' traffic slowed them")
		}
	}
	if l, c := a.Limiter, a.Capacity; l != nil && l.Class == limiter.None && c != nil && c.Known() {
		l.Held = longest(nearlyCapacity * c.Low)
	}
}

// Send sends one train and returns its sample.
type Send func(context.Context, probe.Train) (probe.Sample, error)

// Run sends the trains that next returns until next has enough or limit is over. seen is
// called for each sample. Beside an error, samples has those before it.
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
