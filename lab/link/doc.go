// Package link is one direction of an emulated link, in virtual time: a pure
// model that is told when each segment comes and says when, or whether, it is
// released at the other end. It opens nothing and sleeps nowhere; package wire
// puts it between two real devices.
//
// A segment passes, in this order:
//
//	sender's processor (Active)   held while the sending machine is not scheduled
//	policer (Bucket.Police)       dropped if the tokens do not suffice
//	queue (Queue, RED, Mark)      one FIFO: dropped or marked on arrival
//	limiter (Bucket, Xen)         the head waits for its tokens
//	serialiser (Rate)             departure = max(now, busy) + size/rate
//	wire (Loss, Delay, Jitter)    lost after it took its time on the serialiser
//	receiver (Suspension)         delivered in batches, below its timestamps
//
// Cross traffic is virtual: its packets enter the same queue and take the same
// tokens and the same time of the serialiser, but there is no frame behind them,
// so the bandwidth that is left is known exactly (Available).
//
// Rates count layer-2 bytes: Ethernet header and payload, without preamble, gap
// and checksum, as the kernel's qdiscs do. Times are nanoseconds of any one
// clock; the serialiser keeps picoseconds between back-to-back segments, so that
// no rate drifts. Everything random comes from one seed: the same seed and
// arrivals give the same results.
//
// Sources: RED is Floyd and Jacobson, "Random Early Detection Gateways for
// Congestion Avoidance" (1993), figures 1 and 2; two-state loss is Gilbert
// (1960) and Elliott (1963) as netem has it (tc-netem(8), loss gemodel); the
// limiters are those of the estimation seed, sections 4.2.2 (token bucket, Xen),
// 4.5.1 (slow decay from the peak rate) and 4.5.2 (a gift of tokens every 20 s);
// the (N0, T0) pattern is its section 5.3.
//
// Not here: duplication and corruption of frames, several queues, links that
// fail.
package link
