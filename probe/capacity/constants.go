package capacity

import "time"

// Constants of Headgate's method.
const (
	oursBudget = 2_000_000
	oursTime   = time.Second
	// small packets have the size s of the estimation seed; full packets are for long
	// bursts.
	small = seedSize
	full  = 1500
	// aheadCount packets of aheadSize are sent before each burst, because an idle
	// receiver is late with the first packets. For bursts with 4.11 us per packet the
	// first gaps were 6.6, 2.7, 2.8 and 3.4 us without a warm-up packet, 3.4, 3.7, 3.9
	// and 4.0 us with one, and 3.7, 4.14, 4.10 and 4.09 us with four. aheadGap refills
	// the tokens that they use of a limiter.
	aheadCount = 4
	aheadSize  = 80
	aheadGap   = 40 * time.Microsecond
	// The first train has firstBursts bursts of firstCount packets, firstPause apart. Its
	// result determines the next trains.
	firstBursts, firstCount = 8, 16
	firstPause              = 10 * time.Millisecond
	// firstTries bounds the repeats of the first train. On a path that loses one in
	// twenty packets, some bursts arrive complete.
	firstTries = 4
	minPause   = time.Millisecond
	// maxTrains bounds the trains if the samples have no send times.
	maxTrains = 30
	// maxCount is the number of packets that one UDP GSO call sends.
	maxCount = 64
	// target is the duration of a burst in ns: 80 times the error of a timestamp.
	target = 80_000.0
	// narrowEnough is the relative width of an interval that is narrow enough.
	narrowEnough = 0.012
	// A first gap between minCold and maxCold of the second shows a receiver that was
	// idle. Measured were 3.4 us for 4.1 us at 1 Gbit/s, and 39.6 us for 40 us at 100
	// Mbit/s. The effect of a limiter on the second gap is larger.
	minCold, maxCold = 0.75, 0.985
	// timestampError is the error of a kernel receive timestamp, in ns (measured).
	timestampError = 1000.0
	// maxSkew is the maximum relative difference between the rates of two clocks.
	maxSkew = 1e-4
	// minValues is the minimum number of values of a mode.
	minValues = 8
	// minWide is the narrowest relative window of a mode.
	minWide = 0.001
	// slow is the minimum factor by which a limiter lengthens gaps.
	slow = 1.1
	// modeSigmas is the number of standard errors that distinguishes two modes.
	modeSigmas = 2.5
	// A run whose delay is lateNoise timestamp errors, or latePart of its duration, has
	// half the weight.
	lateNoise, latePart = 1.5, 0.03
	// changes is the relative distance of two modes that shows that the path has changed.
	changes   = 0.1
	resamples = 40
	// meanTimestampError, pushed and crossTrafficShift add errors that the resamples of
	// interval do not show. meanTimestampError is the mean error of all timestamps, in ns.
	// pushed, in ns, is added to it where packets are much closer than the timestamp error.
	// crossTrafficShift is the fraction of a mode's width by which cross traffic moves the
	// mode if all runs were outside it. With them the interval held nine of ten of 600
	// random paths.
	meanTimestampError, pushed, crossTrafficShift = 60.0, 400.0, 0.1
	// If less than undelayed of the runs had no delay, perhaps only fastPart of them had no cross traffic between their packets. A mode of fewer than fewRuns values
	// may be of runs that all had cross traffic: its gap is then too long by fewError divided by their number. Of 20 wrong answers on 800 drawn paths 11 were too low
	// for these two reasons.
	undelayed, fastPart = 0.85, 0.1
	fewRuns, fewError   = 8, 1.2
)
