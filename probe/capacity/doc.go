// Package capacity finds the capacity of a path's narrow link: what a short burst is
// sent at, which passes a shaper's bucket at once.
//
// # The seed's method
//
// Seed is NarrowLinkCapacity (estimation seed, 2.5.4): 1,000 pairs of packets of 500
// bytes, 20 ms apart, and a search among the modes of their dispersion rates by pairs
// that are sent slower: a rate below C arrives as it was sent, a rate above does not.
//
// # Ours
//
// Bursts of 3 to 64 packets, as many and as large as pass before a shaper's bucket is
// empty (limit.go), or last long against the error of stamps. The capacity is the mode
// of the time from one packet to the next in runs of k packets (look.go), for the k
// whose mode is sharpest. Others' packets lengthen a run at the narrow link and before
// it, and shorten one behind it, where its first packet waits; but what does either
// delays it. So a run weighs the less the later it came than those that waited least
// (bursts.go; of pairs the same is known as CapProbe): the seed's search by sending
// rates, which real senders cannot hold for pairs, is not needed.
//
// Real receivers are late with a burst's first packet, and less so with the second, also
// where a small one goes ahead (measured in the lab, real kernels): gaps that show it
// are left out as far as others are left.
//
// A bucket fills between bursts, which are ten times their own length apart.
//
// What it cannot tell: the capacity behind a limit that lets less than two packets
// pass at once, which is then no other than that limit's rate.
package capacity
