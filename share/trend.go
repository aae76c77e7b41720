package share

import (
	"math"
	"slices"
)

// Constants of the trend test; TestNoise measures the error rates that follow from them.
const (
	// trendMemory is the number of samples over which level and noise are averaged. With 32, the
	// estimate of the noise has a standard error of 11 %.
	trendMemory = 32
	// warmUp is the number of differences before which the noise counts as at least warmUpNoise,
	// and for the test as at least warmUpTest.
	warmUp      = 8
	warmUpNoise = 0.01
	warmUpTest  = 0.05
	// A noisy flow that uses more than learningUse of its reservation keeps all of it for the first learning differences: what could be seized
	// would mostly be handed back (TestLearning: 0.3 false seizures a flow and hour in its first ten minutes at 5 % of noise, 0.9 at 10 %; before
	// 1.1 and 2.5).
	// Below learningNoise little is seized by mistake, and the first quarter of a minute of each flow cost others more.
	learning      = 16
	learningUse   = 0.8
	learningNoise = 0.02
	// exactNoise is the relative noise that is ignored: 0.5 % of Gaussian noise around a limit
	// costs 0.2 % of the rate. The test itself uses at least leastNoise, so that it sees a fall of
	// 1 % of an exact counter at once.
	exactNoise = 0.005
	// countNoise is the standard deviation of a number of whole frames around a rate, in frames: at most 1/2.
	countNoise = 0.5
	// stepPart is the part of a cycle before a step of the rate up to which the rate at the end of the cycle is taken for that after the step: 0.6 of
	// exact counters, and some noise.
	stepPart   = 0.85
	leastNoise = 0.002
	// A difference of more than outlier standard deviations is a step of the rate and not noise, unless
	// it is one of more than stepSamples in a row: a step within a cycle appears as two.
	outlier, stepSamples = 3, 2
	// Noise is at most medianPart times the median of the latest medianOf differences, which is twice what it is if it is Gaussian. Without that, steps of a
	// few per cent that were taken for noise made the noise so high that those after them were taken for noise too: in five of seven runs of table 4.1 at
	// 5 Mbit/s all flows together got 93.5 to 96.5 % of what they could have, and 98.5 % in the others. With it they got 98.8 to 99.1 %.
	medianOf   = 16
	medianPart = 2 * 1.4826
	// pairMemory is the number of pairs of differences that show how successive rates are correlated. A ratio up to pairError is what noise without a
	// correlation has, and mostCorrelated is that of rates which share half of their noise.
	pairMemory, pairError, mostCorrelated = 64, 1.15, 2
	// leastFall is the fall that is to be seen within three samples: 20 %, as a logarithm.
	leastFall = 0.223
	// A rise needs one sample 6 standard deviations above the level, or several that exceed it by
	// more than 1 and total 5: once in 112,000 samples of noise (Siegmund, Sequential Analysis,
	// equation 2.57).
	riseDrift, riseLimit = 1, 5
	// A flow rises within a cycle if it offers risesNoise standard deviations more than its level. Its limit has one of margin, so that with noise of 10 % it is above that
	// once in seven cycles: if that raised it, 166 falls after it would be taken for false seizures in an hour (bench reservations, noise/10).
	// Until its noise is known that is taken to be at least learnsRise.
	risesNoise, learnsRise = 8, 0.06
)

// change is what a sample says about the level of a rate.
type change int

const (
	steady change = iota
	rose
	fell
	began // the first sample was of a part of a cycle, and this one of a whole one
)

// trend tells changes of a rate from noise. It is the cumulative sum test of Page (Continuous
// Inspection Schemes, Biometrika 41, 1954) in both directions, on the logarithm of the rate. The
// variance comes from successive differences (von Neumann, 1941), which a drift of the level
// hardly changes.
//
// The test for a fall is as sensitive as a fall of 20 % within three samples requires. Where the
// noise is at most 5 % and known, a false fall occurs less than once in 10^4 samples, and most falls are seen in the first one. At 10 %,
// three samples of a fall of 20 % contain 3.9 standard deviations, which no test sees nine times
// out of ten without frequent false falls. These take little: the level that follows carries a
// margin for its own standard error (margin), and a level that proves too low is corrected only after
// several samples.
//
// More is not possible at 10 % if each alarm hands bandwidth away: of tests that decide by the sum of the last three samples, one with a false
// alarm an hour sees half of the falls at 10 % of noise, and 99.97 % at 5 %.
//
// Measured over 200 flow hours at one sample a second (TestNoise): 0.05, 0.20 and 0.23 false
// seizures a flow and hour at 1, 5 and 10 % of noise; limits cost 0.009 % of a constant rate
// at 5 %, and 0.25 % at 10 %. A fall of 20 % is seen within three samples in 99.6 % of cases at 5 %,
// and in 85 % at 10 % (TestFall).
type trend struct {
	level   float64 // the mean rate since the last change
	samples int     // that level is the mean of, up to trendMemory
	last    float64 // the latest rate, 0 if none
	former  float64 // the one before it, 0 if none
	// near and far are the mean squares of the differences from the latest rate and from the one before it, of pairs of differences that are no outliers,
	// up to pairMemory of them.
	near, far float64
	pairs     int
	variance  float64           // of the relative rate
	diffs     int               // differences in variance, up to trendMemory
	outliers  int               // successive ones
	woke      bool              // the latest rate may be of a part of a cycle
	counted   float64           // the noise of the counter itself, in bit/s
	recent    [medianOf]float64 // the latest differences, outliers among them
	seen      int               // how many there were
	// mostNoise is the noise that the median of recent allows.
	mostNoise float64
	low       drift
	high      drift
}

// drift is one direction of the cumulative sum: the sum, and the rates since it was zero.
type drift struct {
	sum, rates float64
	n          int
}

// add adds a deviation, and returns the mean rate since the change if the sum exceeds limit. If
// the deviation alone exceeds it, the rate before was another one.
func (d *drift) add(deviation, limit, rate float64) (level float64, n int, changed bool) {
	if d.sum += deviation; d.sum <= 0 {
		*d = drift{}
		return 0, 0, false
	}
	d.rates += rate
	d.n++
	switch {
	case deviation > limit:
		return rate, 1, true
	case d.sum > limit:
		return d.rates / float64(d.n), d.n, true
	}
	return 0, 0, false
}

// observe takes the next rate, which must be positive, and returns what it changes.
func (t *trend) observe(rate float64) change {
	if t.samples == 0 {
		t.restart(rate, 1)
		t.last, t.woke = rate, true
		return steady
	}
	woke := t.woke
	if t.woke = false; woke && rate > t.level*(1+outlier*warmUpNoise) {
		t.restart(rate, 1)
		t.last = rate
		return began
	}
	defer t.learnNoise(rate)
	noise := max(t.noise(), leastNoise)
	if t.diffs < trendMemory { // by the standard error of what is known of the noise
		noise *= 1 + 1/math.Sqrt(2*float64(t.diffs+1))
	}
	if t.diffs < warmUp {
		noise = max(noise, warmUpTest)
	}
	z := math.Log(rate/t.level) / (noise * math.Sqrt(1+1/float64(t.samples)))
	fallDrift, fallLimit := fallTest(noise)
	if level, n, yes := t.low.add(-z-fallDrift, fallLimit, rate); yes {
		t.restart(level, n)
		return fell
	}
	if level, n, yes := t.high.add(z-riseDrift, riseLimit, rate); yes {
		t.restart(level, n)
		return rose
	}
	t.samples = min(t.samples+1, trendMemory)
	t.level += (rate - t.level) / float64(t.samples)
	return steady
}

// observeStep is observe for a rate of which the last part is known. A step from the level to end within the cycle has a rate between both, and the
// level is then end: measured reports that. A flow that is silent at the end may only pause.
func (t *trend) observeStep(rate, end float64) (c change, measured bool) {
	was := t.level
	c = t.observe(rate)
	if c == steady || t.samples != 1 || end <= 0 || (end-rate)*(rate-was) <= 0 { // end is beyond rate, seen from the level before
		return c, false
	}
	if before := (end - rate) / (end - was); before > stepPart {
		return c, false
	}
	t.restart(end+t.counted, 1) // half a frame more: a level that is too low costs what is reserved, and one that is too high the rest
	t.last = end
	return c, true
}

// fallTest returns the drift and the limit of the test for a fall. The drift is half of the fall
// to be seen, which is the best for it. The limit is what the sum of three samples exceeds in
// nine of ten cases if level and noise are known, and less where the noise is low.
func fallTest(noise float64) (drift, limit float64) {
	drift = min(max(leastFall/2/noise, 1), 2.5)
	return drift, min(max(3*drift-2.6, 0.7), 1.7)
}

func (t *trend) restart(level float64, n int) {
	t.level, t.samples = level, n
	t.low, t.high = drift{}, drift{}
}

// forget ends the level, but not what is known about the noise.
func (t *trend) forget() { t.samples, t.last, t.former = 0, 0, 0 }

func (t *trend) learnNoise(rate float64) {
	d := math.Abs(math.Log(rate/t.last)) / math.Sqrt2
	before := t.former
	t.former, t.last = t.last, rate
	t.recent[t.seen%medianOf] = d
	t.seen++
	most := outlier * max(t.noise(), exactNoise)
	if t.diffs < warmUp { // or else noise is taken for steps before it is known
		most = max(most, outlier*warmUpTest)
	}
	if d > most {
		if t.outliers++; t.outliers <= stepSamples {
			return
		}
		d = most
	} else {
		t.outliers = 0
		if far := math.Abs(math.Log(rate/max(before, 1))) / math.Sqrt2; before > 0 && far <= most {
			t.pairs = min(t.pairs+1, pairMemory)
			t.near += (d*d - t.near) / float64(t.pairs)
			t.far += (far*far - t.far) / float64(t.pairs)
		}
	}
	t.diffs = min(t.diffs+1, trendMemory)
	t.variance += (d*d - t.variance) / float64(t.diffs)
	if t.mostNoise = math.Inf(1); t.diffs >= warmUp && t.variance > exactNoise*exactNoise {
		latest := t.recent
		known := latest[:min(t.seen, medianOf)]
		slices.Sort(known)
		t.mostNoise = max(medianPart*known[len(known)/2], t.ignored())
	}
}

// learns reports whether there may be noise of which little is known.
func (t *trend) learns() bool {
	return t.diffs < 2 || t.diffs < learning && math.Sqrt(t.variance) > max(learningNoise, t.ignored())
}

// noise returns the standard deviation of one sample, relative to the level.
func (t *trend) noise() float64 {
	sd := math.Sqrt(t.variance)
	if t.diffs < warmUp {
		return max(sd, warmUpNoise)
	}
	return min(sd, t.mostNoise) * t.correlated()
}

// exceedsNoise reports whether a rate that was offered for a part of a cycle is a rise. After the cycle in which the flow woke its level is that of a part of a cycle:
// whatever it offers more is one.
func (t *trend) exceedsNoise(rate float64) bool {
	noise := t.noise()
	if t.diffs < warmUp || t.learns() {
		noise = max(noise, learnsRise)
	}
	return t.woke || rate > t.level*(1+risesNoise*noise)
}

// correlated is the ratio of the noise to that of successive differences. Rates are read at other moments than those at which senders change them, so that
// successive rates have a part of the same noise: half a second apart that hides half of its variance, and constant flows with 5 % of noise had 3.4 false
// seizures an hour instead of 0.3 (TestCorrelatedNoise). Rates that are two cycles apart have nothing in common.
func (t *trend) correlated() float64 {
	if t.pairs < warmUp || t.near == 0 || t.variance < learningNoise*learningNoise {
		return 1
	}
	return min(max(t.far/t.near/pairError, 1), mostCorrelated)
}

// margin returns the part of the level to add for noise: one standard deviation of a sample, above
// which 8 % of a deviation would be lost, and the 95th percentile of the level's own error.
func (t *trend) margin() float64 {
	return t.excess() * (1 + 1.65/math.Sqrt(float64(t.samples)))
}

// levelError is the part of the level to add for the level's own error where a bucket or a queue holds what varies: half of its standard deviation.
func (t *trend) levelError() float64 {
	return t.excess() / 2 / math.Sqrt(float64(t.samples))
}

// excess is the noise above what is ignored.
func (t *trend) excess() float64 { return max(t.noise()-t.ignored(), 0) }

// ignored is the noise that a meter's bucket holds: a little, and that of the counter.
func (t *trend) ignored() float64 { return max(exactNoise, t.counted/t.level) }
