// Package available finds the available bandwidth of a path: what cross traffic leaves
// of its tight link (estimation seed, equations 5.1 and 5.2).
//
// # The seed's methods
//
// Pathload (5.3, and Jain and Dovrolis, "End-to-end available bandwidth", 2003) sends
// fleets of streams at one rate and asks whether their one-way delays rise; a binary
// search with a grey region follows. It loses its way where the receiver stands still
// below its timestamps.
//
// PacketTick (procedures 1 to 3) has a second sender, whose ticks meet the probes
// before the receiver: what came between which ticks is known although all of it was
// late. Its search is pathload's, with one train a rate. We depart where a tick's
// length is chosen, because a receiver that stands still spoils most gaps there, too:
// only gaps that are in no clump count (ticks.go).
//
// # Ours
//
// One sender, and no rate that is too high or too low. While the tight link is busy,
// what comes to it less what its queue grows by is what it carries of ours: of
// C * delay that the queue grew in a time at the sender T, and B bits sent,
//
//	A = (B - C * growth) / T
//
// which is exact for any rate and any pattern of sending, C being the link's capacity
// or, where a token bucket is the tight link, the token rate once it is empty. A train
// begins with a short burst (head), which makes a queue, and goes on at a rate that
// lets it drain again by the end (hold): so the growth is about 0, C matters little,
// and what the burst left in other queues is gone, too. Of each train the packets
// count that follow one which found more waiting than lasts until the next but one comes
// (busy.go): that depends on the past alone, so that what cross traffic did meanwhile is
// no more and no less than at other times, nor what the packet's own stamp is off by. The
// rate of each train follows from those before.
//
// Where a token bucket is known, its rate is C, and the head is as long as it takes to
// empty the bucket, which is seen by a queue that lasts into the hold (shaped.go): its
// size may be unknown, but a train that met no queue is then lost.
//
// A receiver that stands still hands a clump of packets over late, faster than the path
// could have; clumps are left out (series.go), and so is a train of which one took the
// end. What is late all at once and comes at the path's own pace was held by a limiter:
// that is no answer unless its rate is known. Loss leaves out the packets beside it.
// Nothing is ever aborted.
//
// The interval is that of a mean over pieces of the trains, less what is certain
// because the trains cover a part of the window that is asked for: it is for the
// available bandwidth from the first packet to the last.
//
// # What it cannot tell
//
// More than a bound of a bucket that it does not empty: what was sent is no more than the
// bucket held and what was available. It takes for granted that all share one
// FIFO in the tight link, and that this is the link whose capacity is known: where a
// faster one that is more loaded is tight, answers are too high (8 % at the median, 23
// at p90, in probe/sim with links of 1.5 to 4.5 times the narrow one). Then they follow
// the rate of the trains, which sways for that: seen in four of five such paths, said,
// and the interval reaches down.
package available
