// Package tokenrate finds the token rate and the bucket of a path's narrow shaper:
// what a long transfer gets, and what a short one gets at once.
//
// # The seed's method
//
// Seed is NarrowTokenRate (estimation seed, 2.6.3): a drain train at 7/8 of the
// capacity empties the bucket, an estimation train of small packets follows, and the
// answer is the strongest mode of its dispersion rates between its average arrival
// rate and the drain train's sending rate. It needs the capacity first, and finds no
// bucket.
//
// # Ours
//
// One train of full packets back to back, twice as long each time until enough of it
// was limited. The arrival curve's knee is where the bucket was empty (knee.go). From
// there on a shaper with a backlog sends a packet every size/R: k packets in a row
// without others' among them take k times that, for every k. Others' packets make
// some runs longer, and queues behind the shaper make short ones shorter, but only at
// the token rate do runs of every length agree (dispersion.go); the longest says it
// most exactly. If not even runs of 8 agree, the tail's rate is a bound from below.
//
// What had come beyond rate * time is the bucket (bucket.go). Others may have had a
// part of it; so it is found again after silences, each twice as long as the last,
// until two trains find the same, or three if others' packets were seen in the tail.
// If they do not, it is a bound from below.
//
// Before all this what hosts do is taken out of the curve (curve.go): packets that
// came twice, clocks that were set, an end that stood still. A limit that drops is
// told from one that lets wait by when the packets that came did: a policer's come as
// late as they were sent.
//
// # How sure it is
//
// The rate is off by the pace of the receiver's clock, which no sample shows, and a
// part of the scatter of the runs that agree. The bucket is off by the first packet's
// stamp, and no more: a clock that is too fast makes the rate as much smaller as the
// time longer. Measured on simulated paths (probe/sim, TestTokenRate): R of 50 to 2,000
// Mbit/s, buckets of 1.6 KB to 1 MB, up to 50 % of cross traffic with a Pareto
// distribution on each of one to three hops, stamps with an error of 0.5 to 1 us, clocks
// off by up to 5e-5.
//
// Where that met no limit and there is more to spend, Drain sends long trains at 0.9 of
// the capacity: the bucket of 5 MB of a shaper at half the capacity needs 11 MB of them.
//
// What it cannot tell: anything of a bucket that the train does not empty, except the
// joint bound; the rate of a policer that others use, except a bound; the token rate
// where a later link has less than that left, except a bound.
package tokenrate
