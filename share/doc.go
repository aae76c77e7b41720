// Package share divides a limit. Claims go in, rates come out; there is no clock,
// no kernel and no network in it, so that host groups and network reservations
// call the same functions and every promise can be tested as arithmetic.
//
// # Allocate
//
// Allocate is the truth that the default engine is held to: guarantees, and
// lending in nested groups as a Linux HTB tree does it (net/sched/sch_htb.c) when
// its classes have the guarantee as rate, the ceiling as ceil, and leaves a quantum
// proportional to the weight. A class that is over its rate borrows from the
// nearest ancestor that is not, and all leaves that borrow from the same one take
// turns by their own quantum; the classes between have no say but by their ceil.
// Why this and not fairness level by level: docs/decisions/0005.
//
// What one lender lends is water filling as in Bertsekas and Gallager, Data
// Networks, section 6.5.2 (max-min fairness), with weights, and with ceilings of
// groups of leaves inside each other; the water starts from what the leaves have
// already. In a flat tree there is one lender, and a leaf gets guarantee + alpha *
// weight. Rates are unit.Rate, bits per second; the caller says of which layer, as
// long as it says the same for all.
//
// Measured on HTB with UDP at 100 Mbit/s, two tenants A and B of 20 % with two
// groups of 10 % each, all that are active without bound:
//
//	active        measured (Mbit/s)    Allocate
//	a1 b1 b2      38.8  30.6  30.6     40 30 30
//	a1 b1         50    50             50 50
//
// The kernel needs quanta of several packets for this, and is off by up to a
// quarter for a single active group below two lenders; the decision has figures.
//
// Where we depart from HTB: it lets a class have its rate whatever its ancestors
// have. Allocate scales guarantees that do not fit, so that the sum of all rates
// fits the limit; a checked configuration has none such.
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
