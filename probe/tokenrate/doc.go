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
// most exactly. What had come beyond rate * time is the bucket.
//
// Measured on 200 simulated paths (probe/sim, TestTokenRate): R of 50 to 2,000
// Mbit/s, buckets of 1.6 KB to 1 MB, up to 50 % of cross traffic with a Pareto
// distribution on each of one to three hops, stamps with an error of 0.5 us.
//
// Where that met no limit and there is more to spend, Drain sends long trains at 0.9 of
// the capacity: the bucket of 5 MB of a shaper at half the capacity needs 11 MB of them.
//
// What it cannot tell: the bucket's size while others take part of it, only that it
// is no smaller; anything of a bucket that the train does not empty, except the joint
// bound.
package tokenrate
