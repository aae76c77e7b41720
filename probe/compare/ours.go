package compare

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"headgate/probe"
	"headgate/unit"
)

// Constants, ours. Those of the fit were chosen on 200 paths that TestCompare does not
// draw.
const (
	oursBudget = 3_000_000
	// lookCount full packets show about how fast the paths are.
	lookCount = 64
	fullSize  = 1500
	// smallest IP packet. The smaller they are, the shorter is a window that tells an
	// integer from the next, and the less of others' traffic is in it: frames of 100
	// bytes had a p90 error of 1.5 %, of 200 4.5, of 300 7 (200 simulated paths).
	smallest = 86
	// spacing of the faster path's packets at least: what a receiving kernel takes in a
	// burst.
	spacing = time.Microsecond
	// blockLength is that of a block, in full frames: as the seed's B, so that queues
	// behind the narrow link stay short, but long enough for the two to meet.
	blockLength = 24
	// perJoint blocks are sent in one go.
	perJoint = 8
	// idle times as long as the slower path's block takes follow it.
	idle = 2

	shortest   = 6.0  // clock packets
	longest    = 8.0  // full frames
	smoothness = 0.15 // of a window
	stray      = 0.25 // of the mode from the mean, as a logarithm
	reach      = 1.7
	apart      = 0.02 // modes, as a logarithm
	candidates = 4
	enough     = 20 // for one k, of evidence
	coarse     = 0.004
	fine       = 0.0005
	least      = 20 // windows
	resamples  = 20
)

// Ours compares two paths by blocks of small packets that both send at the same time.
type Ours struct {
	// Budget bounds what each sender sends, in bytes of layer 2; 0 is 3 MB.
	Budget unit.Bytes
}

// Next is what to send after what was sent; ok is false when there is enough.
func (m Ours) Next(samples []probe.JointSample) (j probe.Joint, ok bool) {
	budget := cmp.Or(m.Budget, oursBudget)
	for i := range samples {
		most := unit.Bytes(0)
		for _, t := range samples[i].Trains {
			most = max(most, t.Bytes())
		}
		budget -= min(budget, most)
	}
	p := newPlan(samples)
	switch {
	case p.hopeless:
		return probe.Joint{}, false
	case p.blind:
		t := probe.Uniform("compare/look", lookCount, fullSize, 0)
		j = probe.Joint{Purpose: t.Purpose, Trains: []probe.Train{t, t}, Start: p.start}
	default:
		j = p.blocks(budget)
	}
	if len(j.Trains) < 2 || j.Trains[0].Bytes() > budget || len(samples) >= mostJoints {
		return probe.Joint{}, false
	}
	return j, true
}

// mostJoints ends what a budget does not.
const mostJoints = 100

// plan is what was learnt so far for what to send next.
type plan struct {
	blind, hopeless bool
	start           []time.Duration
	took            [2]float64 // ns a full frame, about
	block           int        // full frames
	size            int        // of IP packets
}

func newPlan(samples []probe.JointSample) plan {
	p := plan{blind: true, block: blockLength}
	looks := 0
	for i := range samples {
		s := &samples[i]
		if len(s.Trains) != 2 || s.Reordered {
			return plan{hopeless: true}
		}
		a, b := s.Of(0), s.Of(1)
		if len(a.Parts) == 1 {
			looks++
		}
		if len(a.Arrived) < 2 || len(b.Arrived) < 2 {
			if looks >= 2 {
				p.hopeless = p.blind
			}
			continue
		}
		p.learn(s, [2]*probe.Sample{&a, &b})
	}
	return p
}

// learn takes over what a sample shows.
func (p *plan) learn(s *probe.JointSample, of [2]*probe.Sample) {
	var first [2]float64
	for i, o := range of {
		first[i] = float64(o.Arrived[0].At)
		if p.blind {
			n := len(o.Arrived)
			p.took[i] = max(float64(o.Arrived[n-1].At-o.Arrived[0].At)/float64(n-1), 1)
		}
	}
	if p.blind {
		rate := float64(fullSize+probe.Overhead) / min(p.took[0], p.took[1]) // bytes a ns
		frame := int(rate * float64(spacing))
		p.size = min(max(frame-probe.Overhead, smallest), fullSize)
		p.blind = false
	} else if useful(s) < usefulLeast {
		p.block *= 2
	}
	// The faster one's block should fall into the slower one's.
	late := first[1] - first[0]
	want := float64(p.block) * (p.took[0] - p.took[1]) / 4
	now := [2]time.Duration{}
	copy(now[:], p.start)
	shift := now[1] - now[0] + time.Duration(want-late)
	if p.start != nil {
		shift = now[1] - now[0] + time.Duration(want-late)/2 // half, because starts jitter
	}
	p.start = []time.Duration{max(-shift, 0), max(shift, 0)}
}

// useful is the part of the slower sender's packets that have a place in a stretch,
// of those that could.
func useful(s *probe.JointSample) float64 {
	n := [2]int{}
	for i := range n {
		for _, st := range stretches(s, i, 1-i) {
			n[i] += st[len(st)-1].number - st[0].number
		}
	}
	return float64(max(n[0], n[1])) / float64(s.Trains[0].Count())
}

const usefulLeast = 0.4

// blocks is a joint of as many blocks as the budget has.
func (p *plan) blocks(budget unit.Bytes) probe.Joint {
	const purpose = "compare/blocks"
	part := probe.Part{Count: p.block * (fullSize + probe.Overhead) / (p.size + probe.Overhead), Size: p.size}
	bytes := unit.Bytes(part.Count * part.Frame())
	n := min(perJoint*blockLength/p.block, int(budget/bytes))
	if n < 1 {
		return probe.Joint{}
	}
	t := probe.Train{Purpose: purpose}
	for range n {
		t.Parts = append(t.Parts, part)
		part.Pause = time.Duration((1 + idle) * float64(p.block) * max(p.took[0], p.took[1]))
	}
	return probe.Joint{Purpose: purpose, Trains: []probe.Train{t, t}, Start: p.start}
}

// Estimate reads all that was sent.
func (m Ours) Estimate(samples []probe.JointSample) Result {
	var st []stretch
	full := 0.0
	for i := range samples {
		s := &samples[i]
		if len(s.Trains) != 2 {
			return cannot("two senders are compared")
		}
		if s.Reordered {
			return cannot(reordered)
		}
		if len(s.Trains[0].Parts) > 0 && s.Trains[0].Parts[0].Size < fullSize || len(samples) == 1 {
			st = append(st, stretches(s, 0, 1)...)
			full = float64(fullSize+probe.Overhead) / float64(s.Trains[0].Parts[0].Frame())
		}
	}
	mean := slope(st)
	if len(st) < leastStretches || math.IsNaN(mean) {
		return cannot(fmt.Sprintf("the senders' packets met in %d blocks only", len(st)))
	}
	slow := 0
	if mean < 1 {
		slow, mean = 1, 0
		st = nil
		for i := range samples {
			if samples[i].Trains[0].Parts[0].Size < fullSize || len(samples) == 1 {
				st = append(st, stretches(&samples[i], 1, 0)...)
			}
		}
		mean = slope(st)
	}
	ks := lengths(mean, full)
	each := make([]*windows, len(st))
	all := tally(nil, ks)
	for i := range st {
		each[i] = tally(st[i:i+1], ks)
		all.plus(each[i])
	}
	modes := newFit(all, mean).search()
	if len(modes) == 0 || modes[0].evidence < leastEvidence {
		return cannot("others' traffic leaves no mode")
	}
	best := modes[0]
	rng := rand.New(rand.NewPCG(1, uint64(len(st))))
	var again []float64
	for range resamples {
		w := tally(nil, ks)
		for range st {
			w.plus(each[rng.IntN(len(each))])
		}
		f := newFit(w, mean)
		top := mode{}
		for _, m := range modes {
			m.evidence = 0
			if m = f.refine(m); m.evidence > top.evidence {
				top = m
			}
		}
		again = append(again, top.gamma)
	}
	slices.Sort(again)
	e := probe.Estimate{Value: best.gamma, Low: again[resamples/20], High: again[resamples-1-resamples/20]}
	if slow == 1 {
		e = probe.Estimate{Value: 1 / e.Value, Low: 1 / e.High, High: 1 / e.Low}
	}
	return Result{Ratio: e}
}

const (
	leastStretches = 4
	leastEvidence  = 2
)

func (w *windows) plus(o *windows) {
	for i := range w.ks {
		for len(w.counts[i]) < len(o.counts[i]) {
			w.counts[i] = append(w.counts[i], 0)
		}
		for d, n := range o.counts[i] {
			w.counts[i][d] += n
		}
		w.total[i] += o.total[i]
	}
}

// slope is how many clock packets came per packet, on average.
func slope(st []stretch) float64 {
	clock, number := 0, 0
	for _, s := range st {
		clock += s[len(s)-1].clock - s[0].clock
		number += s[len(s)-1].number - s[0].number
	}
	return float64(clock) / float64(number)
}
