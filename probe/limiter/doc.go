// Package limiter tells what kind of limiter a path has.
//
// Estimation seed, chapter 4: a token bucket (P, R, b) as Linux' tbf, or one that
// gives out delta bytes every T as Xen's (4.2.2); a virtual machine that is scheduled
// now and then (4.4). And what it does not have: a policer, which drops what finds no
// tokens; a sender whose processor is too slow; none.
//
// # Ours
//
// Trains of full packets back to back, whoever sent them, and one of small packets at
// a low rate. Each is read for itself:
//
// Silences of the sender are in Sent, those of the path and the receiver in what came
// late although it had been sent (silence.go). A receiver that sleeps takes what came
// meanwhile in a clump, faster than any link carries it; a Xen-like limiter sends no
// faster than the link, and its bursts begin at multiples of T, of which the smallest
// counts (ticks.go). A train so slow that no limiter holds it up shows sleep alone
// (schedule.go). A processor that stands still once or twice is neither.
//
// A shaper serves packets one after the other: the gaps of a train's tail agree on a
// rate below the link's (tail.go, quantum.go). The link's rate is that of heads, and
// of short bursts of small packets, which fit a bucket of one frame. What came beyond
// the rate is the bucket, with what trains before had taken of it (bucket.go).
//
// Packets are lost behind a train's head where a queue overflows and where a policer
// has no tokens. Where it is a queue, those that come have waited behind at least
// some hundred, and their rate is what it was before; a policer's have not waited.
// A train back to back often cannot tell, and so one follows that is paced to twice
// what came.
//
// # What it does not do
//
// A bucket that the budget does not empty is class none, with the joint bound. Where
// others share a policer or a bucket, its rate or size is a bound. A path may have
// several limiters: the class is the first of those in the path, a schedule, the
// sender's processor.
package limiter
