// Package capacity estimates the capacity of a path's narrow link from short bursts,
// which pass the bucket of a shaper undelayed.
//
// # The method of the estimation seed
//
// NarrowLink is NarrowLinkCapacity (estimation seed, 2.5.4). It sends 1,000 pairs of packets
// of 500 bytes, 20 ms apart, and searches the modes of their dispersion rates with pairs
// that are sent at lower rates: a rate below C arrives at the rate at which it was sent,
// a rate above C does not.
//
// # Headgate's method
//
// Bursts sends bursts of 3 to 64 packets. Their number and size are chosen so that they
// pass before the bucket of a shaper is empty (limit.go), or so that they last long
// compared with the timestamp error. The capacity is the mode of the time between packets
// in runs of k packets (evaluate.go), for the k with the sharpest mode. Cross traffic at or
// before the narrow link lengthens a run. Cross traffic behind the narrow link shortens a
// run whose first packet it delays. Both delay the run as a whole, so that the weight of
// a run decreases with its delay above the minimum (bursts.go). For packet pairs this is
// known as CapProbe. The seed's search by sending rates, which real senders cannot hold
// for pairs, is not needed.
//
// Real receivers are late with the first packet of a burst, and less so with the second,
// even after a small warm-up packet (measured in the lab, real kernels). Gaps that show
// this are left out if enough others remain.
//
// A bucket fills between bursts, which are ten times their own duration apart.
//
// The method cannot estimate the capacity behind a limiter that passes fewer than two
// packets at once: it then returns the rate of that limiter.
package capacity
