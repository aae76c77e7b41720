// Package usage computes the usage of a group from its counters at different times: the rate, the
// delivered, borrowed and lent bytes, and whether the guarantee was met. The terminal, the usage
// records, metrics, the API and the dashboard all use this package, so that they agree.
//
// # When a guarantee is unmet
//
// Backlog at two instants is no proof of a standing queue: a sender that writes 128 kB at a time,
// at 80 % of its guarantee, has backlog at nearly every instant and lacks nothing. A guarantee was
// unmet in an interval if less than the guarantee was delivered, and a standing queue was served
// more slowly than the guarantee. The kernel measures how long the queue was continuously
// non-empty, and the bytes that left in that time (shaper/htb/departures.c). There was a standing
// queue if that is most of the interval, or if less left than the backlog at its beginning. A
// sender that stays within its guarantee empties its queue between two writes, and while its queue
// stands it gets its guarantee.
//
// Where the kernel has no such measurement (without BTF, or with the engine quantum, which has no
// queues) only the second condition applies: a guarantee is reported as unmet when nearly nothing
// leaves.
package usage
