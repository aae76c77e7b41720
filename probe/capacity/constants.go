package capacity

import "time"

// Constants, ours.
const (
	oursBudget = 2_000_000
	oursTime   = time.Second
	// small packets are the seed's s; full ones are sent where a burst must be long.
	small = seedSize
	full  = 1500
	// aheadCount packets of aheadSize go ahead of a burst, because a receiver that was
	// idle is late with the first ones: of bursts of 4.11 us a packet the gaps were 6.6,
	// 2.7, 2.8 and 3.4 us with none ahead, 3.4, 3.7, 3.9 and 4.0 with one, and 3.7, 4.14,
	// 4.10 and 4.09 with four. A limit's tokens of aheadGap make up for them.
	aheadCount = 4
	aheadSize  = 80
	aheadGap   = 40 * time.Microsecond
	// firstBursts of firstCount packets, firstPause apart, show what is to be sent.
	firstBursts, firstCount = 8, 16
	firstPause              = 10 * time.Millisecond
	// firstTries: of a path that loses a twentieth, some bursts arrive whole.
	firstTries = 4
	leastPause = time.Millisecond
	// mostTrains ends it where samples do not tell what was sent.
	mostTrains = 30
	// mostCount is what one call of UDP GSO sends.
	mostCount = 64
	// target is how long a burst should last, in ns: 80 times what a stamp is off by.
	target = 80_000.0
	// exact: an interval so narrow, relative, is enough.
	exact = 0.012
	// A first gap between coldMost and coldLeast of the second is a cold receiver's: of
	// 4.1 us at 1 Gbit/s 3.4 were measured, of 40 us at 100 Mbit/s 39.6. What a limit does
	// to the second makes more of a difference.
	coldMost, coldLeast = 0.75, 0.985
	// noise is what a kernel's receive stamp is off by, in ns (measured).
	noise = 1000.0
	// mostSkew is how much one clock may be faster than another.
	mostSkew = 1e-4
	// least values make a mode.
	least = 8
	// leastWide is the narrowest window of a mode, relative.
	leastWide = 0.001
	// slow is how much longer, at the least, a limit makes gaps.
	slow = 1.1
	// sure is how many standard errors tell two modes apart.
	sure = 2.5
	// A run that is late by lateNoise stamps' errors or latePart of its length weighs
	// half.
	lateNoise, latePart = 1.5, 0.03
	// changes: modes so far apart, relative, are of a path that changed.
	changes   = 0.1
	resamples = 40
	// off, pushed and beside are what interval's resamples do not show: what the mean of
	// all stamps is off by, in ns; what comes to that where packets are much closer than
	// stamps are exact; and how much of a mode's width others' packets may move it if all
	// were beside it. With them the interval holds nine in ten of 600 drawn paths.
	off, pushed, beside = 60.0, 400.0, 0.1
)
