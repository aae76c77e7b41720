// Package compare finds how the capacities of several senders' paths to one receiver
// relate, from nothing but the order in which their packets arrive. No stamp has to be
// right: coalesced interrupts and a receiver that stands still change none of it.
//
// # The seed's method
//
// Seed is PathComp (estimation seed, 3.6). Two senders send trains of 500 full packets
// at the same time. The histogram of how many packets of the other come between two of
// the slower (their arrival sequence number difference, 3.4.3) has a peak at the ratio of
// the capacities (theorem 2). If others' traffic makes several, the faster sends blocks
// of 20 instead. What the text leaves open (what is noise, excessive loss, too little
// overlap) is decided in seed.go.
//
// It takes the larger of two ratios, so that equal paths are never equal; an ASND of
// full packets is so long a time at ratios above 4 that others' packets come in nearly
// all of them; and it has no interval.
//
// # Ours
//
// Both send blocks of small packets. The numbers of the faster one's are the clock for
// the slower's: k of its packets take k * gamma ticks, off by less than one, if nobody
// else's packet came among them on either path, for every k. Others' packets at a narrow
// link make a window longer or shorter by a full packet's worth, and queues behind one
// make heaps of their own at some k (figure 3.17), but only at the truth do windows of
// all lengths have a mode (mode.go). Small packets matter: the window that tells an
// integer from the next is the shorter, and the less of others' traffic is in it.
// Numbers rather than counts are compared, so that a loss stops no clock.
//
// The interval is a bootstrap over blocks and holds all modes that are as likely. Where
// there is none the mean of all windows stands, with the interval that it deserves.
//
// Measured on 200 simulated paths that nothing was chosen on (bench/probing: ratios of 1
// to 8, cross traffic of 10 to 60 % on either path, on the narrow link and on one behind
// it that is 2 to 8 times as fast): 90 % of all errors are below 0.7 %, 1 % have no
// answer, and the intervals hold 94 %. On the networks of figures 3.23 and 3.24 nine in
// ten are within 0.8 %. The seed is within 19 %. Most paths need 3 MB of each sender,
// some 9; the seed sends 1 to 5.
//
// # What it cannot tell
//
// The ratio is of the parts of the paths before they meet. Where what they share is no
// faster, a note says so, if the receiver's times over whole blocks are good enough to
// see it, and the paths are not equal.
//
// Which link it compared: where others leave less of a later link than the narrow one
// carries, packets queue there all the time, and it is that link's capacity which is
// seen, with as clear a mode. Of paths whose last link was but 1.2 to 2 times as fast, and
// up to 60 % loaded, half were off by more than 10 % (bench/probing, drawn-close-links).
//
// A shaper's bucket is part of its path: blocks that find it full compare capacities,
// those that do not token rates. If that changes between the first and the last blocks
// both are given (Result.Long).
//
// Frames of 100 bytes are slower on a physical link than layer 2 counts them, by the
// preamble and the gap (24 bytes a frame). Between two paths whose narrow links are both
// physical, or both shapers, that cancels out; between one and the other the ratio is up
// to a fifth off.
//
// Packets that come from two receive queues with coalescing (figure 3.21) have an order
// of their own: then the slower path's hardly ever come alone, and it ends in "cannot tell",
// as does a sender that is silent.
package compare
