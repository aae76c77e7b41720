// Package usage makes of counters over time what a group had: its rate, what was delivered, borrowed
// and lent, and whether its guarantee was kept. It is one truth for all who show that: the terminal,
// the proof of delivery, metrics, the API and its pages.
//
// # When a guarantee was not met
//
// Backlog at two instants is no standing queue: a sender that writes 128 kB at a time, at 80 % of its
// guarantee, has something waiting at nearly every instant and lacks nothing. A guarantee was not met
// in some time if less than it left, and a queue stood meanwhile that was served more slowly than the
// guarantee. The kernel measures how long there always was a packet that waited, and what left
// in that time (shaper/htb/departures.c); a queue stood if that is most of the time, or if not even
// what waited at the beginning has left. A sender that is within its guarantee leaves its queue empty
// between two writes, and while it stands has what it is guaranteed.
//
// Where the kernel does not measure it (without BTF, or by the quantum engine, which has no queues)
// only the second holds: a guarantee is told as not met when nearly nothing leaves.
package usage
