package capacity

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"headgate/probe"
	"headgate/unit"
)

// Constants of NarrowLinkCapacity, from the seed (2.5.4).
const (
	pairs    = 1000 // L_c
	seedSize = 500
	pairGap  = 20 * time.Millisecond
	// binWidth is that of its histograms' (2.5.2).
	binWidth = 10e6
)

// Seed is the estimation seed's NarrowLinkCapacity (2.5.4): modes of the dispersion
// rates of packet pairs, and a binary search among them by pairs that are sent
// slower.
type Seed struct {
	// Length is how many packets a "pair" has: 2, or 3 to 5 where a pair's rate
	// cannot be held (the seed's implementation remark).
	Length int
	// Least is how many dispersions make a mode; 0 is 1 % of them. The seed does not
	// say, and takes what stands out of its figures.
	Least int
	// Gap is the silence between pairs; 0 is the seed's 20 ms.
	Gap time.Duration
}

// send is L_c pairs at a rate; 0 is back to back.
func (m Seed) send(rate float64) probe.Train {
	t := probe.Train{Purpose: "capacity/seed"}
	for range pairs {
		t.Parts = append(t.Parts, probe.Part{Count: max(m.Length, 2), Size: seedSize, Rate: unit.Rate(rate), Pause: cmp.Or(m.Gap, pairGap)})
	}
	return t
}

// rates are the dispersion rates of all pairs.
func rates(s *probe.Sample) (out []float64) {
	for _, p := range s.Split() {
		out = append(out, p.DispersionRates()...)
	}
	return out
}

func (m Seed) modes(s *probe.Sample) []probe.Mode {
	r := rates(s)
	least := m.Least
	if least == 0 {
		least = len(r) / 100
	}
	return probe.NewHistogram(r, binWidth).Modes(r, least)
}

// search is where the binary search of step 3 stands.
type search struct {
	modes    []probe.Mode
	from, to int // the modes that are left
	at       int // the one that is tried
	next     float64
	done     bool
}

// replay goes through what was sent so far.
func (m Seed) replay(samples []probe.Sample) (search, error) {
	if len(samples) == 0 {
		return search{}, nil
	}
	s := search{modes: m.modes(&samples[0])}
	if len(s.modes) == 0 {
		return s, errors.New("the pairs' dispersion rates have no mode")
	}
	s.to = len(s.modes) - 1
	rest := samples[1:]
	for s.from < s.to {
		s.at = (s.from + s.to) / 2
		// Condition 1 holds for the first mode untested: what was sent slower than C
		// arrives as it was sent, so a rate between two modes at or below C is a mode.
		if s.at > 0 {
			rate := (s.modes[s.at-1].At + s.modes[s.at].At) / 2
			if len(rest) == 0 {
				s.next = rate
				return s, nil
			}
			between := m.between(&rest[0], s.modes[s.at-1], s.modes[s.at])
			rest = rest[1:]
			if !between {
				s.to = s.at - 1
				continue
			}
		}
		// Condition 2: and a rate above C is not.
		rate := (s.modes[s.at].At + s.modes[s.at+1].At) / 2
		if len(rest) == 0 {
			s.next = rate
			return s, nil
		}
		between := m.between(&rest[0], s.modes[s.at], s.modes[s.at+1])
		rest = rest[1:]
		if !between {
			s.done = true
			return s, nil
		}
		s.from = s.at + 1
	}
	s.at, s.done = s.from, true
	return s, nil
}

// between tells whether there is a mode between two modes: the remark's form of
// both conditions, which needs no exact rate.
func (m Seed) between(s *probe.Sample, a, b probe.Mode) bool {
	return slices.ContainsFunc(m.modes(s), func(c probe.Mode) bool { return c.From >= a.To && c.To <= b.From })
}

// Next is what to send after what was sent; ok is false when the answer is there.
func (m Seed) Next(samples []probe.Sample) (t probe.Train, ok bool) {
	s, err := m.replay(samples)
	if err != nil || s.done {
		return probe.Train{}, false
	}
	return m.send(s.next), true
}

// Estimate is the mode that was found, in bit/s of layer 2.
func (m Seed) Estimate(samples []probe.Sample) (float64, error) {
	s, err := m.replay(samples)
	switch {
	case err != nil:
		return 0, err
	case !s.done:
		return 0, errors.New("NarrowLinkCapacity was not sent to its end")
	}
	return s.modes[s.at].At, nil
}
