package compare

import (
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// plan has the parameters of the next joint, learned from the samples so far.
type plan struct {
	noSample bool // no sample has packets of both senders yet
	aborted  bool
	start    []time.Duration
	took     [2]float64 // approximate ns per full-size frame
	block    int        // full-size frames
	size     int        // size of IP packets
}

func newPlan(samples []probe.JointSample) plan {
	p := plan{noSample: true, block: blockLength}
	for i := range samples {
		s := &samples[i]
		if len(s.Trains) != 2 || s.Reordered {
			return plan{aborted: true}
		}
		a, b := s.Sender(0), s.Sender(1)
		if len(a.Arrived) < 2 || len(b.Arrived) < 2 {
			// The first joint may be lost; a sender without arrivals twice remains
			// silent.
			p.aborted = i > 0
			continue
		}
		p.learn(s, [2]*probe.Sample{&a, &b})
	}
	return p
}

// learn updates the plan from a sample.
func (p *plan) learn(s *probe.JointSample, of [2]*probe.Sample) {
	late := float64(of[1].Arrived[0].At - of[0].Arrived[0].At)
	gain := 0.5 // damping, because starts jitter
	if p.noSample {
		p.noSample, gain = false, 1
		for i, o := range of {
			n := len(o.Arrived)
			p.took[i] = max(float64(o.Arrived[n-1].At-o.Arrived[0].At)/float64(n-1), 1)
		}
		frame := float64(fullSize+probe.Overhead) * float64(spacing) / min(p.took[0], p.took[1])
		p.size = min(max(int(frame)-probe.Overhead, smallest), fullSize)
	} else if useful(s, p.slow()) < minUseful {
		p.block *= 2
	}
	// The faster sender's block should be within the slower sender's.
	want := float64(p.block) * (p.took[0] - p.took[1]) / 4
	shift := time.Duration((want - late) * gain)
	if p.start != nil {
		shift += p.start[1] - p.start[0]
	}
	p.start = []time.Duration{max(-shift, 0), max(shift, 0)}
}

func (p *plan) slow() int {
	if p.took[1] > p.took[0] {
		return 1
	}
	return 0
}

// firstJoint returns the first joint.
func (p *plan) firstJoint() probe.Joint {
	t := probe.Uniform("compare/look", lookCount, fullSize, 0)
	return probe.Joint{Purpose: t.Purpose, Trains: []probe.Train{t, t}, Start: p.start}
}

// blocks returns as many blocks as fit into one joint and into the budget.
func (p *plan) blocks(budget unit.Bytes) (probe.Joint, bool) {
	part := probe.Part{Count: p.block * (fullSize + probe.Overhead) / (p.size + probe.Overhead), Size: p.size}
	n := min(max(perJoint*blockLength/p.block, 1), int(budget)/(part.Count*part.Frame()))
	t := probe.Train{Purpose: blocksPurpose}
	part.Pause = time.Duration((1 + idle) * float64(p.block) * p.took[p.slow()])
	for range n {
		t.Parts = append(t.Parts, part)
	}
	if n > 0 {
		t.Parts[0].Pause = max(part.Pause, rest)
	}
	return probe.Joint{Purpose: t.Purpose, Trains: []probe.Train{t, t}, Start: p.start}, n > 0
}

const blocksPurpose = "compare/blocks"

// useful returns the fraction of one sender's packets that arrived while the other
// sender's did: that of the faster one if the trains overlap well, that of the slower one
// if it is no longer the slower one.
func useful(s *probe.JointSample, slow int) float64 {
	number, clock := 0, 0
	for _, st := range stretches(s, slow, 1-slow) {
		number += st[len(st)-1].number - st[0].number
		clock += st[len(st)-1].clock - st[0].clock
	}
	return float64(max(number, clock)) / float64(max(s.Trains[slow].Count(), 1))
}
