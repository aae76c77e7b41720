// Package tokenrate estimates the parameters of a path's token bucket, its token rate and bucket
// size: the rate of a long transfer, and the size of a transfer that passes at once.
//
// # The method of the estimation seed
//
// NarrowTokenRate is the seed's method of that name (2.6.3). A drain train at 7/8 of the capacity
// empties the bucket, and an estimation train of small packets follows. The result is the
// strongest mode of its dispersion rates between its average arrival rate and the sending
// rate of the drain train. The method needs the capacity first, and does not find the
// bucket size.
//
// # Headgate's method
//
// Ladder sends a train of full-size packets back to back, and doubles its length until
// enough of it was limited. The knee of the arrival curve is where the bucket was empty
// (knee.go). From there on a shaper with a backlog sends a packet every size/R: k
// consecutive packets without cross traffic take k times that, for every k. Cross traffic
// makes some runs longer, and queues behind the shaper make short runs shorter, but only
// at the token rate do runs of every length agree (dispersion.go). The longest run gives
// it most exactly. If not even runs of 8 packets agree, the rate of the tail is a lower
// bound.
//
// The bytes that arrived beyond rate * time are the bucket size (bucket.go). Cross
// traffic may have used a part of it. The method therefore measures it again after
// silences, each twice as long as the last, until two trains find the same size, or three
// if the tail showed cross traffic. Otherwise the result is a lower bound.
//
// Before that, the effects of the hosts are removed from the curve (curve.go): duplicated
// packets, clocks that were set, an end that stalled. The arrival times distinguish a
// policer from a shaper: packets that pass a policer have the spacing at which they were
// sent.
//
// # Accuracy
//
// The error of the rate is the rate error of the receiver's clock, which no sample shows,
// and a part of the scatter of the runs that agree. The error of the bucket size is the
// timestamp error of the first packet only: a clock that is too fast reduces the rate by
// as much as it increases the time. Measured on simulated paths
// (TestTokenRate): R of 50 to 2,000 Mbit/s, buckets of 1.6 KB to 1 MB, up to 50 % of cross
// traffic with a Pareto distribution on each of one to three hops, timestamps with an
// error of 0.5 to 1 us, clocks off by up to 5e-5.
//
// If Ladder found no limit and the budget allows more, Drain sends long trains at 0.9 of
// the capacity: the bucket of 5 MB of a shaper at half the capacity needs 11 MB of them.
//
// # Limitations
//
// For a bucket that the train does not empty, there is only the joint bound. For a
// policer with cross traffic, and where a later link has less than the token rate
// available, there is only a bound of the rate.
package tokenrate
