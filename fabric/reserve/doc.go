// Package reserve promises bandwidth across a network in advance: it keeps a calendar for each directed link, admits
// requests for which there are paths with enough bandwidth at every moment, and refuses the others with what would fit.
// It uses no clock and no sockets: times are arguments.
//
// J. Boley, "An Adaptive Approach to Optimizing QoS Throughputs in Software Defined Networks" (Northern Illinois
// University, 2017, the reservations seed), has reservations that are compiled in, and a search for the fewest hops over
// links with enough bandwidth now (section 3.3). Request is its tuple F (equation 3.1), widened: a start in advance or
// within a window, a volume with a deadline, both directions, several disjoint paths, and a spare one.
//
// # What is counted
//
// A Book counts reservations and claims on links of the topology, and on the line of each port without a link (Uplink and
// Downlink), so that the guarantees of a host's groups (Hold) and the reservations that begin there share one capacity.
// Rates are bit/s of layer 2, times have nanoseconds, and a reservation has its bandwidth in [Start, End). Nothing is
// oversold: a link has at most what the operator lets be reserved of its capacity (fabric.Link.Reservable) at every moment.
//
// # Choices
//
//   - Both directions of a reservation take the same cables. The rates are divided equally among its disjoint paths. A
//     spare path has the rate of one of them, because one failure takes one path.
//   - Of all paths with enough bandwidth, find takes those with the least total of 1 + 2u^2, where u is the highest
//     utilisation of a link during the reservation. Over 50 random networks (TestOptimal) this accepts 103.4 % of the
//     bandwidth that an oracle over all simple paths accepts with the least utilised path, 100.3 % with the fewest
//     links, and 100.2 % with the least total of 1 + u^4; in the worst network 97.4 % of the best of the three, and 97.3 %
//     in the worst of 400. Other totals accept as much on average, within 0.2 %, and less in the worst of 400: 1 + u^2
//     96.6 %, 1 + 4u^2 96.8 %, 1 + 2u^3 96.5 %, 1 + 2u 94.9 %, and 1 + u^2 and the mean of u^2 over the time 96.5 %.
//   - A request with a window gets the earliest start. That is exact (ledger.earliest), but for one case: where the links
//     of a path are free by turns for hundreds of times, the search is given up, and Refusal.Searched says up to where there
//     is no start.
//   - A volume is moved at one constant rate, the one of a few that ends first (volume.go). That is not the optimum.
//   - A request whose traffic relay agents carry is for the streams between them (Carried). The caller finds the agents.
//   - An end is one port. A site, a prefix or a VLAN behind several ports needs a request for each.
//
// A Refusal names a link that has not enough, and a moment. It offers the most that fits, the earliest start, and the
// shortest window: each is granted if it is asked for before the book changes.
//
// # Cost
//
// BenchmarkBook has 10,000 reservations of a week on 200 switches. In milliseconds of processor time, on one core of an AMD EPYC
// that other programs shared, the median and the 99th percentile were:
//
//	                                             800 cables   full       260 cables, full
//	WhatIf                                       0.2   0.4    0.3   2.7  0.7   5.0
//	Admit and Cancel                             0.2   0.4    0.4   3.4  0.4   2.5
//	WhatIf for 95 % of a link                    0.5   2.1    0.4   1.3  0.4   1.0
//	WhatIf with a volume                         1.2   4.2    1.7   5.6  0.9   3.3
//	WhatIf with an hour of 95 % of a link        1.5   4.5    2.1   6.0  2.3   10.9
//	WhatIfChange with Move and another end       0.2   0.6    0.1   0.6  0.1   0.4
//	Expire of none                               0.2   0.3    0.2   0.4  0.3   0.4
//	All                                          3.0   13     3.0   14   2.7   18
//
// Of the new requests with a rate in the last two networks 62 to 100 % are refused, with their counter-offers. By the clock, while other
// programs ran, the 99th percentiles were up to twice as high, 15 ms at the most, but for All (38 ms). Hold takes 16 us.
// With 100,000 reservations on links of 100 Gbit/s, the medians are 1.1 to 4.4 ms, and the maxima of 60 calls of each kind 2.6 to
// 9.5 ms.
//
// After the failure of the link with the most reservations, 75, 79 and 566 are rerouted in 67, 29 and 191 ms; after that of several
// links 1,424, 1,545 and 1,010 in 0.73, 0.52 and 0.28 s, and 0.96, 0.57 and 0.41 s by the clock.
//
// A Book with 10,000 reservations on 800 cables has 16 MiB, and one with 100,000 has 151 MiB: 1.6 KB for a reservation, of
// which the steps in calendars are half: about 14 of 64 bytes. WhatIfChange copies the list of lines, 48 KB, and shares the
// steps.
//
// # Out of scope
//
// The package does not find the ports of hosts, does not decide what a tenant may reserve, and does not store, enforce or
// measure anything.
package reserve
