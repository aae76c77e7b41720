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

// Constants, ours. Those of the fit were chosen on 400 simulated paths that no test
// draws.
const (
	oursBudget = 9_000_000
	// enoughBytes of each sender do for most paths; after each so many it ends if there is
	// an answer.
	enoughBytes = 3_000_000
	// lookCount full packets show about how fast the paths are.
	lookCount = 64
	fullSize  = 1500
	// smallest IP packet. The smaller they are, the shorter is a window that tells an
	// integer from the next, and the less of others' traffic is in it: p90 errors of 1.5 %
	// with frames of 100 bytes, 4.5 of 200, 7 of 300 (200 simulated paths each).
	smallest = 86
	// spacing of the faster path's packets at least, so that hosts keep up in a burst.
	spacing = time.Microsecond
	// blockLength, in full frames, is about the seed's B: queues behind the narrow link
	// stay short. 12 and 48 are as good.
	blockLength = 24
	// perJoint blocks are sent in one go, idle times what the slower path needs for one
	// apart.
	perJoint = 8
	idle     = 2
	// usefulLeast of a sender's packets must meet the other's, or blocks grow.
	usefulLeast = 0.4
	// mostJoints ends what no budget does.
	mostJoints = 100

	// Windows are from shortest packets of the faster path to longest full frames.
	shortest = 6.0
	longest  = 8.0
	// smoothness of the background, by the window.
	smoothness = 0.15
	least      = 20 // windows of one k
	enough     = 20 // for one k, of evidence
	// stray of the mode from the mean of all windows, as a logarithm: 0.15 pulls right
	// modes away, more lets wrong ones in.
	stray = 0.25
	reach = 1.7
	// soft: modes that are blurred are mostly heaps of queueing behind the narrow links.
	// Of 19 wrong answers 19 were.
	soft   = 0.25
	coarse = 0.004
	fine   = 0.001
	// candidates are modes so far apart, as logarithms.
	candidates = 4
	apart      = 0.02
	// equal evidence, as a part of the best: the truth may as well be there.
	equal = 0.95

	leastStretches = 4
	leastEvidence  = 3
	// heap of the best evidence for the next is no clear mode. If all of them together say
	// less than strong, it may as well be that none is right: of 9 so 5 were, of 19 others 1.
	heap      = 0.9
	strong    = 6
	resamples = 20
	// margin of the interval at least, either side: 90 % of all errors without others.
	margin = 0.0045
	// vague is an interval's width, as a logarithm, that says no more than the mean.
	vague = 0.1
	// astray is how far the mean is from the truth, in 9 of 10 paths without a clear mode.
	astray = 0.25
)

// Ours compares two paths by blocks of small packets that both send at the same time.
type Ours struct {
	// Budget bounds what each sender sends, in bytes of layer 2; 0 is 9 MB. Most need 3.
	Budget unit.Bytes
	// Size of the blocks' IP packets; 0 is as small as the faster path's packets may be.
	// Larger ones are for hosts that cannot keep up, and see through less of others'
	// traffic.
	Size int
}

// Next is what to send after what was sent; ok is false when there is enough.
func (m Ours) Next(samples []probe.JointSample) (j probe.Joint, ok bool) {
	budget := cmp.Or(m.Budget, oursBudget)
	sent, before := unit.Bytes(0), unit.Bytes(0)
	for i := range samples {
		before = sent
		most := unit.Bytes(0)
		for _, t := range samples[i].Trains {
			most = max(most, t.Bytes())
		}
		sent += most
	}
	budget -= min(budget, sent)
	p := newPlan(samples)
	if p.hopeless || len(samples) >= mostJoints {
		return probe.Joint{}, false
	}
	if p.blind {
		j = p.look()
		return j, j.Trains[0].Bytes() <= budget
	}
	// What comes next would lead past it.
	if next := 2*sent - before; next/enoughBytes > sent/enoughBytes && m.Estimate(samples).Ratio.Known() {
		return probe.Joint{}, false
	}
	if m.Size > 0 {
		p.size = min(max(m.Size, smallest), fullSize)
	}
	return p.blocks(budget)
}

// Estimate reads the order of arrival of all that was sent.
func (m Ours) Estimate(samples []probe.JointSample) Result {
	if why := unfit(samples); why != "" {
		return cannot(why)
	}
	slow := 0
	st, full := read(samples, slow)
	if slope(st) < 1 {
		slow = 1
		st, full = read(samples, slow)
	}
	if len(st) > 0 && alone(st) < leastAlone {
		return cannot(reordered)
	}
	if len(st) < leastStretches {
		return cannot(fmt.Sprintf("the senders' packets met in %d blocks only", len(st)))
	}
	if half := len(st) / 2; differ(st[:half], st[half:]) {
		return cannot("the paths changed while they were compared")
	}
	r := Result{Ratio: estimate(st, full), Block: blockBytes(samples)}
	if early, late, changed := change(st); changed {
		long := estimate(late, full)
		r.Ratio, r.Long = estimate(early, full), &long
		r.Notes = append(r.Notes, "a shaper's bucket emptied: ratio compares what the first blocks get, long what a long transfer does")
	}
	if r.Ratio.Known() && shared(samples, slow, slope(st)) {
		r.SharedNarrow = true
		r.Notes = append(r.Notes, "the paths share a link, or this host, that is no faster than they are: the ratio is of the parts before it")
	}
	if slow == 1 {
		r.Ratio = inverse(r.Ratio)
		if r.Long != nil {
			*r.Long = inverse(*r.Long)
		}
	}
	if e := r.Ratio; e.Known() && math.Log(e.High/e.Low) > vague {
		// Of such answers one in ten was off by more than a fifth (120 drawn paths).
		r.Roughly = &e
		r.Ratio = probe.CannotTell(fmt.Sprintf("others' traffic leaves no clear mode; roughly it is %.2f (%.2f to %.2f)", e.Value, e.Low, e.High))
	}
	return r
}

// read is all stretches of the blocks, and a full frame in their packets.
func read(samples []probe.JointSample, slow int) (st []stretch, full float64) {
	for i := range samples {
		s := &samples[i]
		if s.Purpose == blocksPurpose && len(s.Trains[0].Parts) > 0 {
			st = append(st, stretches(s, slow, 1-slow)...)
			full = float64(fullSize+probe.Overhead) / float64(s.Trains[0].Parts[0].Frame())
		}
	}
	return st, full
}

// estimate is how many packets of the faster path come for one of the slower.
func estimate(st []stretch, full float64) probe.Estimate {
	mean := slope(st)
	if len(st) < leastStretches || !(mean > 0) {
		return probe.CannotTell(fmt.Sprintf("the senders' packets met in %d blocks only", len(st)))
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
		return about(mean, mean, mean)
	}
	best := modes[0]
	low, high := best.gamma, best.gamma
	for _, m := range modes {
		if m.evidence > equal*best.evidence {
			low, high = min(low, m.gamma), max(high, m.gamma)
		}
	}
	again := bootstrap(each, ks, mean, modes)
	low, high = min(low, again[len(again)/20]), max(high, again[len(again)-1-len(again)/20])
	if math.Log(high/low) > vague {
		return about(mean, low, high)
	}
	for _, m := range modes[1:] {
		switch {
		case m.evidence < heap*best.evidence:
		case best.evidence < strong:
			low, high = min(low, mean), max(high, mean)
		default:
			low, high = min(low, m.gamma), max(high, m.gamma)
		}
	}
	return probe.Estimate{Value: best.gamma, Low: low * (1 - margin), High: high * (1 + margin)}
}

// about is all that can be said where others' traffic leaves no mode, or several: the
// mean of all windows, which is off by what they sent.
func about(mean, low, high float64) probe.Estimate {
	return probe.Estimate{Value: mean, Low: min(low, mean*(1-astray)), High: max(high, mean*(1+astray))}
}

// bootstrap is which of the modes is the best when the stretches are drawn again.
func bootstrap(each []*windows, ks []int, mean float64, modes []mode) (again []float64) {
	rng := rand.New(rand.NewPCG(1, uint64(len(each))))
	for range resamples {
		w := tally(nil, ks)
		for range each {
			w.plus(each[rng.IntN(len(each))])
		}
		f := newFit(w, mean)
		top := modes[0]
		top.evidence = 0
		for _, m := range modes {
			m.evidence = 0
			if m = f.refine(m); m.evidence > top.evidence {
				top = m
			}
		}
		again = append(again, top.gamma)
	}
	slices.Sort(again)
	return again
}
