package compare

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// Constants of Headgate's method. Those of the fit were chosen on 400 simulated paths
// that no test draws.
const (
	oursBudget = 9_000_000
	// enoughBytes per sender suffice for most paths; after each multiple the method ends
	// if there is a result.
	enoughBytes = 3_000_000
	// lookCount full-size packets show the approximate rates of the paths.
	lookCount = 64
	fullSize  = 1500
	// smallest is the minimum size of an IP packet. Smaller packets shorten the window
	// that distinguishes an integer from the next, and reduce the cross traffic in it:
	// p90 errors are 1.5 % with frames of 100 bytes, 4.5 % with 200, 7 % with 300 (200
	// simulated paths each).
	smallest = 86
	// spacing is the minimum time between packets of the faster path, so that hosts keep
	// up with a burst.
	spacing = time.Microsecond
	// blockLength, in full-size frames, is about the seed's B: queues behind the narrow
	// link stay short. 12 and 48 give equal results.
	blockLength = 24
	// perJoint is the number of blocks in one joint. The pause between blocks is idle
	// times the time of a block on the slower path.
	perJoint = 8
	idle     = 2
	// minUseful is the minimum fraction of a sender's packets that overlap with the
	// other sender's; below it the blocks are enlarged.
	minUseful = 0.4
	// maxJoints bounds the joints if the budget does not.
	maxJoints = 100

	// Windows are from shortest packets of the faster path to longest full-size frames.
	shortest = 6.0
	longest  = 8.0
	// smoothness is the smoothing width of the background relative to the window.
	smoothness = 0.15
	minWindows = 20 // windows of one k
	enough     = 20 // evidence of one k
	// maxDeviation is the deviation of a mode from the mean of all windows that is tolerated, as
	// a logarithm: 0.15 pulls correct modes away, more admits wrong ones.
	maxDeviation = 0.25
	reach        = 1.7
	// soft is the weight of blurred modes, which are mostly clusters due to queues behind
	// the narrow links: 19 of 19 wrong results were.
	soft   = 0.25
	coarse = 0.004
	fine   = 0.001
	// candidates is the maximum number of modes, which are apart as logarithms.
	candidates = 4
	apart      = 0.02
	// equal: a mode with this fraction of the best evidence may as well be the true one.
	equal = 0.95

	minStretches = 4
	minEvidence  = 3
	// ambiguous: a mode is not clear if the next one has this fraction of its evidence. If the
	// best evidence is below strong, possibly no mode is correct: 5 of 9 such modes were,
	// and 1 of 19 others.
	ambiguous = 0.9
	strong    = 6
	resamples = 20
	// margin is the minimum of the interval on either side: 90 % of all errors without
	// cross traffic.
	margin = 0.0045
	// maxWidth is the width of an interval, as a logarithm, that says no more than the mean.
	maxWidth = 0.1
	// meanError is the relative error of the mean in 9 of 10 paths without a clear mode.
	meanError = 0.25
)

// SmallBlocks compares two paths with blocks of small packets that both senders send at the same
// time.
type SmallBlocks struct {
	// Budget bounds the layer 2 bytes of each sender; 0 is 9 MB. Most paths need 3 MB.
	Budget unit.Bytes
	// Size is the size of the blocks' IP packets; 0 is the minimum for the faster path.
	// Larger packets are for hosts that cannot keep up, and are affected more by cross
	// traffic.
	Size int
}

// Next returns the next joint for the samples so far; ok is false if they suffice.
func (m SmallBlocks) Next(samples []probe.JointSample) (j probe.Joint, ok bool) {
	budget := cmp.Or(m.Budget, oursBudget)
	sent, before := unit.Bytes(0), unit.Bytes(0)
	for i := range samples {
		before = sent
		largest := unit.Bytes(0)
		for _, t := range samples[i].Trains {
			largest = max(largest, t.Bytes())
		}
		sent += largest
	}
	budget -= min(budget, sent)
	p := newPlan(samples)
	if p.aborted || len(samples) >= maxJoints {
		return probe.Joint{}, false
	}
	if p.noSample {
		j = p.firstJoint()
		return j, j.Trains[0].Bytes() <= budget
	}
	// The next joint would exceed a multiple of enoughBytes.
	if next := 2*sent - before; next/enoughBytes > sent/enoughBytes && m.Estimate(samples).Ratio.Known() {
		return probe.Joint{}, false
	}
	if m.Size > 0 {
		p.size = min(max(m.Size, smallest), fullSize)
	}
	return p.blocks(budget)
}

// Estimate evaluates the order of arrival in all samples.
func (m SmallBlocks) Estimate(samples []probe.JointSample) Result {
	if why := invalidReason(samples); why != "" {
		return noEstimate(why)
	}
	slow := 0
	st, full := read(samples, slow)
	if slope(st) < 1 {
		slow = 1
		st, full = read(samples, slow)
	}
	if len(st) > 0 && interleaved(st) < minInterleaved {
		return noEstimate(reordered)
	}
	if len(st) < minStretches {
		return noEstimate(fmt.Sprintf("the senders' packets overlapped in only %d blocks", len(st)))
	}
	if half := len(st) / 2; differ(st[:half], st[half:]) {
		return noEstimate("the paths changed during the measurement")
	}
	r := Result{Ratio: estimate(st, full), Block: blockBytes(samples)}
	if early, late, changed := change(st); changed {
		long := estimate(late, full)
		r.Ratio, r.Long = estimate(early, full), &long
		r.Notes = append(r.Notes, "a shaper's bucket was emptied: ratio compares the first blocks, long compares long transfers")
	}
	if r.Ratio.Known() && shared(samples, slow, slope(st)) {
		r.SharedNarrow = true
		r.Notes = append(r.Notes, "the paths share a link, or this host, that is no faster than the paths: the ratio is of the parts before it")
	}
	if slow == 1 {
		r.Ratio = inverse(r.Ratio)
		if r.Long != nil {
			*r.Long = inverse(*r.Long)
		}
	}
	if e := r.Ratio; e.Known() && math.Log(e.High/e.Low) > maxWidth {
		// Of such results one in ten was off by more than a fifth (120 random paths).
		r.Roughly = &e
		r.Ratio = probe.NoEstimate(fmt.Sprintf("cross traffic leaves no clear mode; the approximate ratio is %.2f (%.2f to %.2f)", e.Value, e.Low, e.High))
	}
	return r
}

// read returns all stretches of the blocks, and the size of a full frame in packets.
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

// estimate returns how many packets of the faster path arrive for each packet of the
// slower one.
func estimate(st []stretch, full float64) probe.Estimate {
	mean := slope(st)
	if len(st) < minStretches || !(mean > 0) {
		return probe.NoEstimate(fmt.Sprintf("the senders' packets overlapped in only %d blocks", len(st)))
	}
	ks := lengths(mean, full)
	each := make([]*windows, len(st))
	all := tally(nil, ks)
	for i := range st {
		each[i] = tally(st[i:i+1], ks)
		all.plus(each[i])
	}
	modes := newFit(all, mean).search()
	if len(modes) == 0 || modes[0].evidence < minEvidence {
		return roughEstimate(mean, mean, mean)
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
	if math.Log(high/low) > maxWidth {
		return roughEstimate(mean, low, high)
	}
	for _, m := range modes[1:] {
		switch {
		case m.evidence < ambiguous*best.evidence:
		case best.evidence < strong:
			low, high = min(low, mean), max(high, mean)
		default:
			low, high = min(low, m.gamma), max(high, m.gamma)
		}
	}
	return probe.Estimate{Value: best.gamma, Low: low * (1 - margin), High: high * (1 + margin)}
}

// roughEstimate returns the result if cross traffic leaves no mode, or several: the mean of all
// windows, whose error is due to the cross traffic.
func roughEstimate(mean, low, high float64) probe.Estimate {
	return probe.Estimate{Value: mean, Low: min(low, mean*(1-meanError)), High: max(high, mean*(1+meanError))}
}

// bootstrap returns the best of the modes for each resample of the stretches.
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
