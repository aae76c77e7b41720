package path

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"headgate/probe"
	"headgate/probe/capacity"
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

// Budget is what one direction spends at the most unless it is told otherwise.
const Budget unit.Bytes = 10_000_000

// seedLength of the seed's pairs (2.5.4): no sender of ours holds the rate of two
// packets of 500 bytes above 333 Mbit/s.
const seedLength = 3

// Answer is what one direction of a path gives. Rates are bit/s of layer 2; those of
// IP packets as large as the path takes are LayerThree of them.
type Answer struct {
	Capacity  *probe.Estimate   `json:"capacity,omitempty"`
	TokenRate *tokenrate.Result `json:"token_rate,omitempty"`
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
	left := cmp.Or(m.Budget, Budget)
	for i := range samples {
		left -= min(left, samples[i].Bytes())
	}
	for _, next := range []func([]probe.Sample) (probe.Train, bool){m.nextCapacity, m.nextTokenRate} {
		if t, ok = next(samples); ok {
			return t, t.Bytes() <= left
		}
	}
	return probe.Train{}, false
}

func (m Method) nextCapacity(samples []probe.Sample) (probe.Train, bool) {
	if m.Known > 0 {
		return probe.Train{}, false
	}
	own := of(samples, "capacity")
	if m.Seed {
		return capacity.Seed{Length: seedLength}.Next(own)
	}
	return capacity.Ours{}.Next(own)
}

func (m Method) nextTokenRate(samples []probe.Sample) (probe.Train, bool) {
	if !m.TokenRate && !m.Limiter && !m.Available {
		return probe.Train{}, false
	}
	own := of(samples, "tokenrate")
	if m.Seed {
		return tokenrate.Seed{Capacity: m.capacity(samples).Value}.Next(own)
	}
	return tokenrate.Ours{Capacity: m.bound(samples)}.Next(own)
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
		return capacity.Ours{}.Estimate(own).Capacity
	}
	c, err := capacity.Seed{Length: seedLength}.Estimate(own)
	if err != nil {
		return probe.CannotTell(err.Error())
	}
	return probe.Estimate{Value: c, Low: c, High: c}
}

// bound is the capacity for what only wants to know whether a rate is below it.
func (m Method) bound(samples []probe.Sample) float64 {
	if c := m.capacity(samples); c.Known() && !c.AtLeast {
		return c.Value
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
		r := m.tokenRate(own, samples)
		a.TokenRate = &r
	}
	return a
}

func (m Method) tokenRate(own, samples []probe.Sample) tokenrate.Result {
	if !m.Seed {
		return tokenrate.Ours{Capacity: m.bound(samples)}.Estimate(own)
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
