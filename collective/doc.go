// Package collective controls the connections of one application together. It learns
// their proportions while there is no congestion, and caps the connections in these
// proportions while the path is congested (K. Kant, "Application Centric Autonomic BW
// Control in Utility Computing", here "the seed").
//
// A control takes readings of connections, one per round trip, and returns caps. Its
// clock is that of the readings, and it accesses no sockets: collective/sockops reads and
// caps real ones.
//
// # Headgate's cycle
//
// Control weighs readings by time instead of by round trip, and makes the set send as
// one. Alone, it has a scale that follows losses and the queue, beside other traffic the
// windows of as many ordinary connections (docs/decisions, 46). Each connection has its part of
// either, and an account of its lead over its share (docs/decisions, 18). Congestion begins with a loss, a mark, or a queue that has lasted
// for a quarter of a second while the set got less than its learned rate. Control ends
// for all connections when none has been behind for three seconds.
//
// # The cycle of the seed
//
// PaperControl is section III. Each connection estimates its rate (current_bw) and its
// round trip (current_rtt) over the last four round trips, and smooths both. When the first
// connection of a set detects congestion, all are controlled: the learned rate and round
// trip (reqd_bw, base_rtt) are frozen, and equation 1 caps the windows. A connection is
// ready to leave when its state has been normal for a while; all leave together.
//
// lambda_a of equation 1 is the connection's own avail_bw; PaperControl.MeanAvailable has the mean instead.
// A connection that joins a controlled set is not controlled before its end, and a humped connection has
// no backlog when none is left of what its application has written (Backlog == 0).
//
// seed.go decides what the text leaves open: what "the level of base_rtt" is, how long
// calm must last, how long to wait for a hump, and that a connection without a reading
// for a second does not delay the others and is in no average.
//
// # Units
//
// Rates are bits of payload per second, windows are bytes of payload, times are from a
// monotonic clock.
package collective
