package path

import (
	"context"
	"slices"
	"time"

	"headgate/probe"
	"headgate/probe/available"
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

// Next is the train that comes after those that were sent, or ok is false if the
// answer is there, or the budget is not.
func (m Method) Next(samples []probe.Sample) (t probe.Train, ok bool) {
	r := m.read(samples)
	for _, next := range []func() (probe.Train, bool){r.nextCapacity, r.nextTokenRate, r.nextLimiter, r.nextAvailable} {
		if r.left == 0 {
			break
		}
		if t, ok = next(); ok && t.Bytes() <= r.left {
			return t, true
		}
	}
	return probe.Train{}, false
}

// Estimate is the answer that samples give.
func (m Method) Estimate(samples []probe.Sample) Answer {
	r := m.read(samples)
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
		c := r.capacity()
		a.Capacity = &c
	}
	if m.TokenRate && len(r.of("tokenrate")) > 0 {
		s := r.shaper()
		a.TokenRate = &s
	}
	if m.Limiter && !m.Seed && len(samples) > 0 {
		l := r.limiter()
		a.Limiter = &l
	}
	if own := r.of("available"); m.Available && len(own) > 0 {
		v := available.Result{}
		if m.Seed {
			v = r.pathload().Estimate(own)
		} else {
			v = r.oursAvailable().Estimate(own)
		}
		a.Available = &v
	}
	return a
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
