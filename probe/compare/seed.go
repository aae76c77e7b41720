package compare

import (
	"cmp"
	"time"

	"headgate/probe"
)

// Constants of PathComp, from the seed (3.6.1).
const (
	seedLength = 500  // L
	seedSize   = 1500 // S
	seedBlock  = 20   // B
	// large ASND values of the faster path tell that its blocks lie apart.
	large = 5
)

// Constants for what the seed leaves open, ours.
const (
	// noise: fewer of all pairs are no value. With it figures 3.13 to 3.17 have the
	// peaks that they are shown with (probe/sim).
	noise = 0.02
	// excessive loss ends the estimation; 5 % does not.
	excessive = 0.1
	// overlap of the trains, as a part of the faster one's packets, below which they
	// are sent again, twice as long.
	overlap = 0.5
	// tries of phase I, and of phase II.
	tries = 4
	// rest before each, in which what a train kept waiting passes: one of 30 ms on a link
	// with 30 % of others' traffic leaves a queue of 9 ms. A bucket fills meanwhile.
	rest = 50 * time.Millisecond
)

// Seed is the estimation seed's PathComp (3.6) for two senders. Its preliminary phase
// is the caller's: DeltaRTT is by how much the second sender's RTT is the longer, on
// average. What it deviates by needs no number, because trains grow until they overlap.
type Seed struct {
	DeltaRTT time.Duration
	Length   int // L; 0 is 500
	Size     int // S; 0 is 1500
	Block    int // B; 0 is 20
}

// stage is where PathComp stands after some samples.
type stage struct {
	next   probe.Joint
	result Result
	done   bool
}

func (m Seed) replay(samples []probe.JointSample) stage {
	length := cmp.Or(m.Length, seedLength)
	for try := range tries {
		if len(samples) == 0 {
			return stage{next: m.phase1(length)}
		}
		s := &samples[0]
		samples = samples[1:]
		if why := unusable(s); why != "" {
			return stage{done: true, result: cannot(why)}
		}
		if max(overlapping(s, 0), overlapping(s, 1)) >= overlap {
			return m.phase2(s, samples)
		}
		if try < tries-1 {
			length *= 2
		}
	}
	return stage{done: true, result: cannot("the trains do not overlap")}
}

// phase1 is a train from each, started so that they arrive together.
func (m Seed) phase1(length int) probe.Joint {
	t := probe.Uniform("compare/seed/1", length, cmp.Or(m.Size, seedSize), 0)
	t.Parts[0].Pause = rest
	return probe.Joint{Purpose: t.Purpose, Trains: []probe.Train{t, t}, Start: m.starts()}
}

func (m Seed) starts() []time.Duration {
	return []time.Duration{max(m.DeltaRTT, 0), max(-m.DeltaRTT, 0)}
}

// phase2 is COMPARE2 (algorithm 4) of phase I's sample, and what follows if the slower
// path's histogram has several peaks: the faster sends blocks, delta t apart.
func (m Seed) phase2(first *probe.JointSample, samples []probe.JointSample) stage {
	h := [2][]int{ASND(first, 0, 1), ASND(first, 1, 0)}
	gamma := [2]float64{EstRatio2(h[0]), EstRatio2(h[1])}
	if gamma[0] == 0 && gamma[1] == 0 {
		return stage{done: true, result: cannot("no packet came between others")}
	}
	slow := 0
	if gamma[1] > gamma[0] {
		slow = 1
	}
	if len(Peaks(Denoised(h[slow]))) < 2 {
		return stage{done: true, result: ratio(larger(gamma[0], gamma[1]))}
	}
	block := cmp.Or(m.Block, seedBlock)
	fast := first.Of(1 - slow)
	tf := time.Duration(fast.Arrived[len(fast.Arrived)-1].At - fast.Arrived[0].At)
	every := time.Duration(2 * float64(block) * float64(tf) / float64(fast.Count()))
	var last *probe.JointSample
	for range tries {
		if len(samples) == 0 {
			return stage{next: m.blocks(slow, fast.Count(), block, every)}
		}
		last, samples = &samples[0], samples[1:]
		if why := unusable(last); why != "" {
			return stage{done: true, result: cannot(why)}
		}
		met, of, apart := met(last, slow)
		switch {
		case 2*met < of:
			every = every * 2 / 3 // too long
			continue
		case 2*apart < met:
			every = every * 3 / 2 // too short
			continue
		}
		break
	}
	g := EstRatio2(ASND(last, slow, 1-slow))
	if g == 0 {
		return stage{done: true, result: cannot("no packet came between others")}
	}
	if slow == 1 {
		g = 1 / g
	}
	return stage{done: true, result: ratio(g)}
}

// blocks is phase II: length packets back to back from the slower, and as many in
// blocks from the faster.
func (m Seed) blocks(slow, length, block int, every time.Duration) probe.Joint {
	const purpose = "compare/seed/2"
	size := cmp.Or(m.Size, seedSize)
	fast := probe.Train{Purpose: purpose}
	for n := 0; n < length; n += block {
		p := probe.Part{Count: min(block, length-n), Size: size, Pause: rest}
		if n > 0 {
			p.Pause = every
		}
		fast.Parts = append(fast.Parts, p)
	}
	j := probe.Joint{Purpose: purpose, Trains: make([]probe.Train, 2), Start: m.starts()}
	j.Trains[slow] = probe.Uniform(purpose, length, size, 0)
	j.Trains[slow].Parts[0].Pause = rest
	j.Trains[1-slow] = fast
	return j
}

// met is how many blocks of the faster path came while the slower one's train did, of
// how many, and how many large values tell that they came apart.
func met(s *probe.JointSample, slow int) (met, of, apart int) {
	parts := s.Trains[1-slow].Parts
	from, to := span(s, slow)
	seen := map[int]bool{}
	for i, a := range s.Arrived {
		if a.From == 1-slow && i > from && i < to {
			seen[a.Number/parts[0].Count] = true
		}
	}
	for i, n := range ASND(s, 1-slow, slow) {
		if i >= large {
			apart += n
		}
	}
	return len(seen), len(parts), apart
}

// span is where a sender's packets begin and end in the order of arrival.
func span(s *probe.JointSample, of int) (from, to int) {
	from, to = len(s.Arrived), -1
	for i, a := range s.Arrived {
		if a.From == of {
			from, to = min(from, i), i
		}
	}
	return from, to
}

// overlapping is the part of a sender's packets that came while the other's did.
func overlapping(s *probe.JointSample, of int) float64 {
	from, to := span(s, 1-of)
	in, all := 0, 0
	for i, a := range s.Arrived {
		if a.From == of {
			all++
			if i > from && i < to {
				in++
			}
		}
	}
	return float64(in) / float64(max(all, 1))
}

// unusable says why a sample cannot be read, if so.
func unusable(s *probe.JointSample) string {
	switch {
	case len(s.Trains) != 2:
		return "two senders are compared"
	case s.Reordered:
		return reordered
	}
	for i := range s.Trains {
		p := s.Of(i)
		if len(p.Arrived) < 2 {
			return "a sender was silent"
		}
		if float64(p.Lost()) > excessive*float64(p.Count()) {
			return "too many packets were lost"
		}
	}
	return ""
}

// Next is what to send after what was sent; ok is false when the answer is there.
func (m Seed) Next(samples []probe.JointSample) (j probe.Joint, ok bool) {
	s := m.replay(samples)
	return s.next, !s.done
}

// Estimate is the second sender's capacity by the first's. The seed has no interval.
func (m Seed) Estimate(samples []probe.JointSample) Result {
	s := m.replay(samples)
	if !s.done {
		return cannot("PathComp was not sent to its end")
	}
	return s.result
}
