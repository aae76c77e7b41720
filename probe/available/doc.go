// Package available estimates the available bandwidth of a path: the capacity that cross
// traffic leaves at the tight link (estimation seed, equations 5.1 and 5.2).
//
// # The methods of the estimation seed
//
// Pathload (5.3, and Jain and Dovrolis, "End-to-end available bandwidth", 2003) sends
// fleets of streams at one rate and tests whether their one-way delays rise. It does a
// binary search with a grey region. It fails if the receiver stalls below the point where
// timestamps are taken.
//
// PacketTick (procedures 1 to 3) has a second sender, whose ticks merge with the probes
// before the receiver. The order shows between which ticks a probe arrived even if the
// receiver was late. Its search is that of pathload, with one train per rate. Headgate
// differs in the choice of the tick interval, because a receiver that stalls distorts
// most gaps there, too: only gaps outside of clumps count (ticks.go).
//
// # Headgate's method
//
// HoldTrains has one sender and works at any rate. While the tight link is busy, it carries
// of the train what arrives less the growth of its queue. If the queue grew by C * growth
// in a time T at the sender, in which B bits were sent, the available bandwidth is
//
//	A = (B - C * growth) / T
//
// The equation is exact for any rate and any pattern of sending. C is the link's capacity
// or, if a token bucket is the tight link, the token rate once the bucket is empty. A
// train begins with a short burst (head), which makes a queue, and continues at a rate
// that drains the queue by the end (hold). The growth is therefore about 0, an error of C
// has little effect, and the queues that the burst made in other links are gone, too. In
// each train the packets count whose predecessor found a longer queue than the time until
// the next packet (busy.go). That depends only on the past, so that the selection has no
// bias, neither towards more or less cross traffic nor towards the timestamp error of the
// packet. The rate of each train follows from the results of the trains before.
//
// If a token bucket is known, its rate is C, and the head is long enough to empty the
// bucket. A queue that lasts into the hold shows that the bucket is empty (shaped.go).
// The bucket size may be unknown, but a train that met no queue is then lost.
//
// A receiver that stalls passes a clump of packets on late, faster than the path could
// have delivered them. Clumps are left out (series.go), and so is a train that ends in a
// clump. Packets that are suddenly late and arrive at the pace of the path were held by a
// limiter; then there is no result unless the limiter's rate is known. The neighbours of
// lost packets are left out. No train is ever aborted.
//
// The interval is that of a mean over blocks of the trains, reduced because the trains
// cover a part of the period: it is for the available bandwidth from the first packet to
// the last.
//
// # Limitations
//
// For a bucket that it does not empty the method returns only a bound: the trains sent no
// more than the bucket held and what was available. The method assumes that all traffic
// shares one FIFO queue at the tight link, and that the tight link is the one with the
// known capacity. If a faster link with more load is the tight one, results are too high
// (8 % at the median, 23 % at p90, in probe/sim with links of 1.5 to 4.5 times the
// capacity of the narrow one). Results then follow the rate of the trains, which
// alternates for that reason. In four of five such paths this is detected and noted, and
// the interval is extended downwards.
package available
