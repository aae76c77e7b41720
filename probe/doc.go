// Package probe has the types that all path measurements share: the train that a sender
// sends, the sample that a receiver records, the log of samples, and the estimate that
// follows from samples.
//
// Estimators are functions of samples; see the packages capacity, tokenrate, limiter and
// available. An adaptive method, which chooses the next train from the earlier results,
// has two functions: Next returns the next train for the samples so far, and Estimate
// returns the result. Neither opens a socket, so that a method works the same over a real
// path, a simulated path (probe/sim) and a recorded log.
//
// # Units
//
// Rates are in bit/s. Frame sizes are bytes of layer 2 as Linux counts them for rate
// limits: an IP packet and 14 bytes of Ethernet header. Times are in ns. Sender times and
// receiver times come from different clocks; they are subtracted from each other only to
// see how the difference between the clocks changes.
//
// # Source
//
// "Bandwidth Estimation for Virtual Networks" (the estimation seed), chapters 2 to 5. In the
// packages capacity, tokenrate, compare and limiter, one type implements a method of that
// text unchanged: capacity.NarrowLink, tokenrate.NarrowTokenRate, compare.PathComp and
// limiter.Seed. Its test repeats the figures of the text. The type next to it is Headgate's
// method.
package probe
