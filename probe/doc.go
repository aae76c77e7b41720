// Package probe holds what all measurements of a path share: the train that is sent,
// the sample that comes of it, its log, and the estimate that is read from samples.
//
// Estimators are functions over samples (packages capacity and tokenrate below this
// one). A method that decides what to send next by what came of the last train has
// two: Next, from the samples so far to the next train, and Estimate. Neither opens a
// socket, so that a method runs alike over a real path, a simulated one (probe/sim)
// and a recorded log.
//
// # Units
//
// Rates are bit/s and sizes of frames bytes of layer 2, as Linux counts them where it
// limits rates: an IP packet and 14 bytes of Ethernet header. Times are ns; those of
// the sender's and the receiver's clocks are never subtracted from each other, except
// to see how their difference changes.
//
// # Source
//
// "Bandwidth Estimation for Virtual Networks" (the estimation seed), chapters 2 to 5.
// Where a method is the seed's it is called Seed and does what the text says, and its
// test repeats the text's figures; ours stands beside it.
package probe
