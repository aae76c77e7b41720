package capacity

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// Constants of NarrowLinkCapacity, from the estimation seed (2.5.4).
const (
	pairs    = 1000 // L_c
	seedSize = 500
	pairGap  = 20 * time.Millisecond
	// binWidth is the bin width of its histograms (2.5.2).
	binWidth = 10e6
)

// NarrowLink is the estimation seed's NarrowLinkCapacity (2.5.4): it finds the modes of the
// dispersion rates of packet pairs, and does a binary search among them with pairs that
// are sent at lower rates.
type NarrowLink struct {
	// Length is the number of packets in a "pair": 2, or 3 to 5 where the rate of a pair
	// cannot be held (the implementation remark of the seed).
	Length int
	// MinMode is the minimum number of dispersions of a mode; 0 is 1 % of them. The seed
	// gives no number; its figures show the modes that stand out.
	MinMode int
	// Gap is the silence between pairs; 0 is the seed's 20 ms.
	Gap time.Duration
}

// send returns a train of L_c pairs at a rate; 0 is back to back.
func (m NarrowLink) send(rate float64) probe.Train {
	t := probe.Train{Purpose: "capacity/seed"}
	for range pairs {
		t.Parts = append(t.Parts, probe.Part{Count: max(m.Length, 2), Size: seedSize, Rate: unit.Rate(rate), Pause: cmp.Or(m.Gap, pairGap)})
	}
	return t
}

// rates returns the dispersion rates of all pairs.
func rates(s *probe.Sample) (out []float64) {
	for _, p := range s.Split() {
		out = append(out, p.DispersionRates()...)
	}
	return out
}

func (m NarrowLink) modes(s *probe.Sample) []probe.Mode {
	r := rates(s)
	minMode := m.MinMode
	if minMode == 0 {
		minMode = len(r) / 100
	}
	return probe.NewHistogram(r, binWidth).Modes(r, minMode)
}

// search is the state of the binary search of step 3.
type search struct {
	modes    []probe.Mode
	from, to int // the remaining modes
	at       int // the mode that is tested
	next     float64
	done     bool
}

// replay repeats the search with the samples so far.
func (m NarrowLink) replay(samples []probe.Sample) (search, error) {
	if len(samples) == 0 {
		return search{}, nil
	}
	s := search{modes: m.modes(&samples[0])}
	if len(s.modes) == 0 {
		return s, errors.New("dispersion rates of the packet pairs have no mode")
	}
	s.to = len(s.modes) - 1
	rest := samples[1:]
	for s.from < s.to {
		s.at = (s.from + s.to) / 2
		// Condition 1 holds for the first mode without a test. A rate below C arrives at
		// the rate at which it was sent, so a rate between two modes at or below C is a
		// mode.
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
		// Condition 2: a rate above C does not arrive at the rate at which it was sent.
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

// between reports whether there is a mode between two modes. This is the form of both
// conditions in the seed's remark, which needs no exact rate.
func (m NarrowLink) between(s *probe.Sample, a, b probe.Mode) bool {
	return slices.ContainsFunc(m.modes(s), func(c probe.Mode) bool { return c.From >= a.To && c.To <= b.From })
}

// Next returns the next train for the samples so far; ok is false if the search is done.
func (m NarrowLink) Next(samples []probe.Sample) (t probe.Train, ok bool) {
	s, err := m.replay(samples)
	if err != nil || s.done {
		return probe.Train{}, false
	}
	return m.send(s.next), true
}

// Estimate returns the mode that the search found, in bit/s of layer 2.
func (m NarrowLink) Estimate(samples []probe.Sample) (float64, error) {
	s, err := m.replay(samples)
	switch {
	case err != nil:
		return 0, err
	case !s.done:
		return 0, errors.New("NarrowLinkCapacity is incomplete: the search was not finished")
	}
	return s.modes[s.at].At, nil
}
