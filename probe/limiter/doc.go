// Package limiter detects the limiter type of a path.
//
// The types of the estimation seed (chapter 4) are a token bucket (P, R, b) like Linux
// tbf, a limiter that grants delta bytes every T like Xen's (4.2.2), and a virtual
// machine that is scheduled at intervals (4.4). Headgate adds a policer, which drops
// packets that find no tokens, a sender whose processor is too slow, and none.
//
// # Headgate's method
//
// Detector uses trains of full-size packets back to back, of any method, and one train of
// small packets at a low rate. Each train is evaluated on its own:
//
// Silences of the sender show in Sent. Those of the path and the receiver show in packets
// that arrive late although they had been sent (gaps.go). A receiver that sleeps takes
// the packets that arrived meanwhile in a clump, faster than any link carries them. A
// Xen-like limiter sends no faster than the link, and its bursts begin at multiples of T,
// of which the smallest counts (ticks.go). A train so slow that no limiter delays it
// shows only sleep (schedule.go). A processor that stalls once or twice is neither.
//
// A shaper serves packets one after the other: the gaps of a train's tail agree on a rate
// below that of the link (tail.go, quantum.go). The rate of the link follows from heads
// of trains, and from short bursts of small packets, which fit into a bucket of one
// frame. The bytes that arrived beyond the rate are the bucket size, together with what
// earlier trains used of it (bucket.go).
//
// Packets are lost behind the head of a train if a queue overflows or if a policer has no
// tokens. In the case of a queue, the packets that arrive were queued behind at least
// some hundred others, and their rate does not change. In the case of a policer they were
// not queued. A train back to back often cannot distinguish the two, so that the next
// train is paced to twice the rate that arrived.
//
// Measured on 200 random paths of each type that were not used for tuning
// (TestLimiter): 98.5 to 100 % of every type are detected, T within 0.01 % and delta
// within 3 % at p90, for at most 5 MB; on trains over real paths of the lab (testdata),
// every limiter.
//
// # The method of the estimation seed
//
// Seed is the procedure of 4.3 to 4.5 with one long train. The second peak of the
// sender's intervals is the sleeping period, of which it takes the median. The large
// intervals of the receiver and the packets between them are (T, delta), of which the
// small one counts. A high rate at first and a lower one later is (P, R, b). Its T is the
// interval between two packets, without the time of the burst.
//
// # Watching
//
// Watch empties the bucket again and again within a given budget. Bytes of a train beyond
// the tokens that the bucket should have held are a token grant (4.5.2). Two trains in
// a row that end at another rate than those before are a change of the rate.
//
// # Limitations
//
// A bucket that the budget does not empty is type none, with the joint bound. With cross
// traffic through a policer or a bucket, its rate or size is only a bound. Trains back to
// back alone rarely show a policer or an end that sleeps; the result then says so. A path
// may have several limiters: the type is the first of a limiter on the path, a schedule,
// and the sender's processor. Packets that are held below the sender's clock, and a
// receiver that sleeps, are distinguished only by a train that passes at once.
package limiter
