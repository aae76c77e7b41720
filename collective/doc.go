// Package collective keeps the connections of one application in proportion: it learns how
// much of the network each needs while all is well, and caps them in that proportion
// while the path is congested (K. Kant, "Application Centric Autonomic BW Control in
// Utility Computing", here "the seed").
//
// A control takes readings of connections, one a round trip, and gives caps. It runs on
// its readings' clock and touches no socket: collective/sockops reads and caps real ones.
//
// # Ours
//
// Control learns by time instead of by round trip, and has the set send as one: a scale that
// follows losses and the queue, a pace for each connection that is its part of it, and books of
// who is ahead (docs/decisions, 18). Congestion begins with a loss, a mark, or a queue that has
// stood for a quarter of a second while the set got less than it needs; control ends for all
// when nobody has been behind for three seconds.
//
// # The seed's cycle
//
// Seed is section III: each connection estimates what it gets (current_bw) and its round
// trip (current_rtt) over the last four round trips, and smooths both. As the first
// connection of a set sees congestion, all are controlled: what they need (reqd_bw,
// base_rtt) is frozen and their windows are capped by equation 1. Each is ready to leave
// when things have been as before for a while; all leave together.
//
// What the text leaves open is decided in seed.go: what "the level of base_rtt" is, how
// long calm has to last, how long a hump is waited for, and that a connection without a
// reading for a second holds nobody back and is in no average.
//
// # Units
//
// Rates are bits of payload per second, windows bytes of payload, times on a clock that
// only goes forward.
package collective
