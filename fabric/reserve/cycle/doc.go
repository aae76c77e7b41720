// Package cycle ties the reservations of a network to the limits at its points: once per cycle it takes what has been
// counted of each flow, lets a share.Scheme divide the links, and returns the limits that changed. It is a state machine
// in virtual time. The scheme is share.Adaptive in the product; the others of SchemeNamed are compared with it.
//
// J. Boley, "An Adaptive Approach to Optimizing QoS Throughputs in Software Defined Networks" (Northern Illinois
// University, 2017, the reservations seed), sections 3.3 and 3.4.2, has this loop with a thread for each flow and one kind
// of point, the meter of the ingress switch.
//
// # Flows
//
// A flow is one direction of one path of a reservation (FlowID). It begins at the start of the reservation, and has its
// reservation from the first moment. At the end it becomes best effort, and keeps a limit of its own for the grace, so that
// a program that is late does not lose its connections. All rates are bit/s of layer 2.
//
// A spare path is a flow without traffic and without a limit. It holds what the largest of the other paths offers, at most
// the reservation, so that a switch that changes to the spare path by itself finds the bandwidth there; the rest of the
// spare path's reservation is lent. When a link of a path is not usable, Set gives its flow the links of the spare path.
//
// # Points
//
// Each flow is limited at one point, which Enforcers.Place finds (docs/decisions/0039): a group of the source host, or the
// first router with an agent or switch with meters on the path.
//
// # Best effort
//
// Best effort has no reservation and gets what is left, as in the paper. There it is one flow with a path and a meter. Here
// it is an Aggregate: all traffic without a reservation that one limit holds, with the links that it may cross. Only
// links on which something is reserved count. BestEffort makes two kinds:
//
//   - By link: what leaves by a link. Its share of the link is exact, whatever the destinations are, and the cost is one flow
//     per link. This is what the default group of a Linux router's interface limits, and what a switch can limit whose
//     program puts a meter into the rules that output to the port (Enforcers.Leaving). What is dropped there has used the
//     links before.
//   - By port of entry, for other switches (one meter per edge port), and for hosts with an agent (the default group).
//     The destinations are not known, so that the aggregate counts on all links that its shortest paths cross. That is
//     exact in the paper's network, where it has one path, and safe everywhere: no link is oversold. The price is paid by
//     best effort alone. In a large network all ports together get no more than the emptiest reserved link has left, and
//     the flows times the links (1,000 ports, 1,000 links) cost seconds per cycle. Such a network needs the first kind.
//
// What an aggregate leaves unused is lent to others. A port that is silent keeps 128 kbit/s, or its part of 1/64 of the
// link, for its first packets (share.Adaptive).
//
// # Measurement
//
// A Reading has counters, and the monotonic time at which they were read. A rate is a difference of counters over the true
// interval, whether the cycle or the reply was late. A flow without a reading repeats its latest rate. One that was never
// measured counts as one that uses its reservation. Both are counted as missing. When a limit changes within an interval,
// and the point does not count what it passed, the latest limit stands for the whole interval.
//
// A flow may have several readings in a cycle. The scheme then also gets the rate between the last two (share.Ender), so that it sees a rate that
// has changed within the cycle as it is at the end.
//
// # Calendar
//
// Reservations begin and end by the wall clock, in which Calendar bounds each step: a wall clock that is stepped by an hour
// moves the calendar by a tenth of the elapsed time, and no limit changes because of it.
//
// # Accounting
//
// A Minute is a usage.Usage for each flow, as of groups: borrowed is what was delivered above the reservation, lent the
// part of the unused reservation that others used, on the link of the path where that was most. An interval is unmet if
// the flow offered at least its reservation and was delivered less than 99 % of it. What was offered is counted before the
// limit: TCP that a meter holds below its reservation offers less, and is not counted. A flow that ends and begins again
// has two records of the same minute, which add up. Status.Idle is since when a reservation was not used in full.
//
// # Cost
//
// For 1,000 switches and 10,000 reservations of both directions (BenchmarkCycle: 35,000 flows with those of best effort,
// of which a tenth changes per cycle), Step takes 44 to 54 ms on one core of an AMD EPYC that others use too, 45 % of it in
// share.AllocateLinks. Set takes 107 to 149 ms, because it makes all flows again, and a Step in which a reservation
// begins or ends takes that time more.
//
// # Out of scope
//
// The package does not read counters, send limits, or decide about reservations, and keeps nothing on disk. What it holds is
// rebuilt by a new leader: each flow begins at its reservation.
package cycle
