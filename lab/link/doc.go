// Package link models one direction of an emulated link in virtual time. The model gets the arrival
// time of each segment and returns when the segment is released at the other end, or that it is
// dropped. It opens nothing and does not sleep; package wire connects it to two real devices.
//
// A segment passes these stages, in this order:
//
//	sender's processor (Active)   held while the sending machine is not scheduled
//	policer (Bucket.Police)       dropped if the tokens do not suffice
//	queue (Queue, RED, Mark)      one FIFO: dropped or marked on arrival
//	head of the queue (CoDel)     dropped or marked as it leaves
//	limiter (Bucket, Xen)         the head waits for its tokens
//	serialiser (Rate)             departure = max(now, busy) + size/rate
//	wire (Loss, Delay, Jitter)    lost after it took its time on the serialiser
//	receiver (Suspension)         delivered in batches, below its timestamps
//
// Cross traffic is virtual: its packets enter the same queue and use the same tokens and serialiser
// time, but there are no frames behind them. The available bandwidth is therefore known exactly
// (Available).
//
// Rates count layer-2 bytes: Ethernet header and payload, without preamble, gap and checksum, as the
// kernel's qdiscs do. Times are nanoseconds of any one clock; the serialiser keeps picoseconds between
// back-to-back segments, so that rates do not drift. All random numbers come from one seed: the same
// seed and arrivals give the same results.
//
// Sources: RED is Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance"
// (1993), figures 1 and 2. CoDel is RFC 8289. Two-state loss is Gilbert (1960) and Elliott (1963) as in netem
// (tc-netem(8), loss gemodel). The limiters are those of the estimation dissertation (docs/seeds.md),
// sections 4.2.2 (token bucket, Xen), 4.5.1 (slow decay from the peak rate) and 4.5.2 (a gift of
// tokens every 20 s); the (N0, T0) pattern is in its section 5.3.
//
// Not implemented: duplication and corruption of frames, several queues, link failures.
package link
