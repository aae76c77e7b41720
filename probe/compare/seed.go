package compare

import (
	"cmp"
	"time"

	"headgate.dev/headgate/probe"
)

// Constants of PathComp, from the estimation seed (3.6.1).
const (
	seedLength = 500  // L
	seedSize   = 1500 // S
	seedBlock  = 20   // B
	// large is the ASND of the faster path from which on its blocks are apart.
	large = 5
)

// Constants that the seed leaves open, chosen by Headgate.
const (
	// noise is the minimum fraction of all pairs for a value. With it figures 3.13 to
	// 3.17 have the peaks that the text shows (probe/sim).
	noise = 0.02
	// excessive is the loss that ends the estimation; 5 % does not.
	excessive = 0.1
	// overlap is the minimum overlap of the trains, as a fraction of the faster one's
	// packets. With less, they are sent again with twice the length.
	overlap = 0.5
	// tries bounds the repeats of phase I, and of phase II.
	tries = 4
	// rest is the pause before each train, in which the queue of the previous train
	// drains: a train of 30 ms on a link with 30 % of cross traffic leaves a queue of 9
	// ms. A bucket refills in the pause.
	rest = 50 * time.Millisecond
)

// PathComp is the estimation seed's PathComp (3.6) for two senders. The caller does its
// preliminary phase: DeltaRTT is the mean RTT of the second sender minus that of the
// first. The deviation of the RTT is not needed, because trains grow until they overlap.
type PathComp struct {
	DeltaRTT time.Duration
	Length   int // L; 0 is 500
	Size     int // S; 0 is 1500
	Block    int // B; 0 is 20
}

// stage is the state of PathComp after some samples.
type stage struct {
	next   probe.Joint
	result Result
	done   bool
}

func (m PathComp) replay(samples []probe.JointSample) stage {
	length := cmp.Or(m.Length, seedLength)
	for try := range tries {
		if len(samples) == 0 {
			return stage{next: m.phase1(length)}
		}
		s := &samples[0]
		samples = samples[1:]
		if why := unusable(s); why != "" {
			return stage{done: true, result: noEstimate(why)}
		}
		if max(overlapping(s, 0), overlapping(s, 1)) >= overlap {
			return m.phase2(s, samples)
		}
		if try < tries-1 {
			length *= 2
		}
	}
	return stage{done: true, result: noEstimate("the senders' trains do not overlap")}
}

// phase1 returns a train from each sender, started so that they arrive together.
func (m PathComp) phase1(length int) probe.Joint {
	t := probe.Uniform("compare/seed/1", length, cmp.Or(m.Size, seedSize), 0)
	t.Parts[0].Pause = rest
	return probe.Joint{Purpose: t.Purpose, Trains: []probe.Train{t, t}, Start: m.starts()}
}

func (m PathComp) starts() []time.Duration {
	return []time.Duration{max(m.DeltaRTT, 0), max(-m.DeltaRTT, 0)}
}

// phase2 is COMPARE2 (algorithm 4) with the sample of phase I. If the slower path's
// histogram has several peaks, the faster sender sends blocks, delta t apart.
func (m PathComp) phase2(first *probe.JointSample, samples []probe.JointSample) stage {
	h := [2][]int{ASND(first, 0, 1), ASND(first, 1, 0)}
	gamma := [2]float64{EstRatio2(h[0]), EstRatio2(h[1])}
	if gamma[0] == 0 && gamma[1] == 0 {
		return stage{done: true, result: noEstimate("no packets of the two senders alternated")}
	}
	slow := 0
	if gamma[1] > gamma[0] {
		slow = 1
	}
	if len(Peaks(Denoised(h[slow]))) < 2 {
		return stage{done: true, result: ratio(larger(gamma[0], gamma[1]))}
	}
	block := cmp.Or(m.Block, seedBlock)
	fast := first.Sender(1 - slow)
	tf := time.Duration(fast.Arrived[len(fast.Arrived)-1].At - fast.Arrived[0].At)
	every := time.Duration(2 * float64(block) * float64(tf) / float64(fast.Count()))
	var last *probe.JointSample
	for range tries {
		if len(samples) == 0 {
			return stage{next: m.blocks(slow, fast.Count(), block, every)}
		}
		last, samples = &samples[0], samples[1:]
		if why := unusable(last); why != "" {
			return stage{done: true, result: noEstimate(why)}
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
		return stage{done: true, result: noEstimate("no packets of the two senders alternated")}
	}
	if slow == 1 {
		g = 1 / g
	}
	return stage{done: true, result: ratio(g)}
}

// blocks is phase II: length packets back to back from the slower sender, and as many in
// blocks from the faster one.
func (m PathComp) blocks(slow, length, block int, every time.Duration) probe.Joint {
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

// met returns how many of the faster path's blocks arrived during the slower one's train,
// the number of all blocks, and the number of large values, which show that blocks were
// apart.
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

// span returns the first and the last position of a sender's packets in the order of
// arrival.
func span(s *probe.JointSample, of int) (from, to int) {
	from, to = len(s.Arrived), -1
	for i, a := range s.Arrived {
		if a.From == of {
			from, to = min(from, i), i
		}
	}
	return from, to
}

// overlapping returns the fraction of a sender's packets that arrived while the other's
// did.
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

// unusable returns the reason why a sample cannot be evaluated, or "".
func unusable(s *probe.JointSample) string {
	switch {
	case len(s.Trains) != 2:
		return "exactly two senders are needed"
	case s.Reordered:
		return reordered
	}
	for i := range s.Trains {
		p := s.Sender(i)
		if len(p.Arrived) < 2 {
			return "a sender was silent"
		}
		if float64(p.Lost()) > excessive*float64(p.Count()) {
			return "too many packets were lost"
		}
	}
	return ""
}

// Next returns the next joint for the samples so far; ok is false if the result is
// complete.
func (m PathComp) Next(samples []probe.JointSample) (j probe.Joint, ok bool) {
	s := m.replay(samples)
	return s.next, !s.done
}

// Estimate returns the second sender's capacity divided by the first's. The seed has no
// interval.
func (m PathComp) Estimate(samples []probe.JointSample) Result {
	s := m.replay(samples)
	if !s.done {
		return noEstimate("PathComp is incomplete: the procedure was not finished")
	}
	return s.result
}
