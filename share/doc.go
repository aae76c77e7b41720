// Package share divides a limit. Claims go in, rates come out; there is no clock,
// no kernel and no network in it, so that host groups and network reservations
// call the same functions and every promise can be tested as arithmetic.
//
// # Allocate
//
// Allocate is the truth that the default engine is held to. It divides level by level:
// the limit among the groups at the top, what each gets among its groups, and so on.
// One division is guarantees first, and the rest by water filling as in Bertsekas and
// Gallager, Data Networks, section 6.5.2 (max-min fairness), with weights; the water
// starts from the guarantees, so that a claim gets guarantee + alpha * weight. Rates are
// unit.Rate, bits per second; the caller says of which layer, as long as it says the same
// for all.
//
// It is what the HTB engine enforces with an HTB qdisc for each group that has groups. In
// one HTB for all levels a class would borrow from the nearest ancestor that is not over
// its rate (net/sched/sch_htb.c), with one quantum for all lenders, and one busy group of
// a tenant gets 25 of 40 Mbit/s where its tenant's part is 32: docs/decisions/0028.
//
// A parent's guarantee binds its children's: Allocate scales those that do not fit, so
// that the sum of all rates fits the limit; a checked configuration has none such.
//
// # Quantum
//
// Quantum is the algorithm of the Bandwidth-as-a-Service thesis (bwaas: chapters
// III, IV and VII; the source in appendix B), as a state machine in virtual time.
// Amounts are payload bytes per quantum, and time is the number of calls of Tick.
// It is a reference: the eBPF engine of the same name is compared with it packet
// by packet, and its weaknesses are kept, because the default engine is measured
// against them. Where the text, the figures and the source differ, the source
// wins, and the comment at the place says so:
//
//   - A packet must stay below the limit; reaching it exactly resets and drops
//     (incomingChunk). So if the guarantees add up to the limit, the last byte of
//     the last group is refused.
//   - The step is 1,500 bytes, and a group is lowered when use + step <= actual
//     limit (timerBytesSent); the text has 15,000 bytes below the configured limit,
//     figure IV.2 one MTU below the actual limit.
//   - The reset comes at once and not in the next quantum, and leaves the counts.
//   - ECN is decided for every packet of a group, also for one that is dropped.
//   - Only passed bytes count as use. A group that is refused is taken for idle
//     and lowered by the next Tick, so the covetous effect does not end with its
//     quantum, as chapter VII says, but goes on at one step per quantum.
//   - A packet that is partly too much borrows its whole length.
//
// What we leave out or mend: the counter of retransmissions (statistics only); the
// linear search for a connection's group (the caller names the group); the
// rounding of percentages; guarantees that keep following an old limit, and a
// group that is added without taking its bytes back from the pool (Reconfigure).
// resetSendGroupLimits adds up the guarantees of the receiving side, but the sum
// is never read.
//
// Both remedies of chapter VII are there. Overdraft ends what groups 2 and 3 lose
// inside their guarantees in the seed's test (7 and 19 packets in 300 s of the
// model's run, then none); where over-use would last for a second quantum, drops
// remain, because the chapter allows one.
// A shorter quantum loses in proportion less, but it must hold many packets: at
// the seed's 100,000 bytes/s a tenth of a second is ten packets, and drops before
// there is any overload, which senders that wait a second for a lost packet turn
// into a collapse (11 of 100 kB/s).
//
// # What it does not do
//
// It does not measure demand, choose who may claim what, check that guarantees fit
// a limit, or enforce anything.
package share
