// Package fabric is the model of a network of OpenFlow switches, and the algorithms over it: which switches, ports,
// links and hosts there are, and which ways packets take. It uses no clock and no sockets: times are arguments.
//
// J. Boley, "An Adaptive Approach to Optimizing QoS Throughputs in Software Defined Networks" (Northern Illinois
// University, 2017, the reservations seed), compiled its topology into the controller, and prefers the fewest hops, or the
// least load, over links with enough bandwidth (sections 3.3 and 3.4.1).
// A. Rosen, "Network Service Delivery and Throughput Optimization via Software Defined Networking" (Clemson, 2012, the
// relay seed) discovers links by packets between switches, and leaves out failures, loops and scale. This package does
// both, and the rest of what a network needs.
//
// # Model
//
// A Topology is a value that never changes, made of Parts and checked by New. Links are directed: a cable is two links.
// A link is usable if the ports at both ends are up. Path searches use links one by one; the broadcast tree and the
// next hops use cables of which both directions are usable, because hosts answer.
//
// LinkLearner and HostLearner find links and hosts by observations. They are state machines; their events are for
// people and for the log, and their results are parts of the next Topology. They trust what they are given: a caller
// authenticates discovery frames.
//
// Config is what an operator writes of a network. Its ports may be written by name; Bind replaces the names by numbers
// when switches have reported them.
//
// Linux routers are listed in Config alone. They are nodes of a Topology like switches, whose links and capacities are
// those that the operator wrote: Config.WithRouters adds them to what was found, and Config.Switched leaves them out
// for those who program switches. Their identities follow from their names (RouterID), so that they can be stored.
//
// # Paths
//
// Shortest, LeastLoaded, KShortest and Disjoint take filters of links. Residual bandwidth at one moment is the filter
// Enough; for a calendar the filter says whether a link has enough bandwidth at every moment asked. Each result is the
// first in a total order, so it does not depend on the order of input; Disjoint has the least total, and is
// deterministic. In a network of 200 switches and 800 links, on one core of an AMD EPYC, Shortest takes 18 us,
// LeastLoaded 72 us, two disjoint paths 84 us, and the four shortest paths 178 us (BenchmarkShortest and the next ones).
//
// Cheapest, CheapestDisjoint, Least and LeastDisjoint are the same searches for callers that keep what they know of links in
// slices: they name links by position, take any weights or keys, and ask for a link when the search comes to it. Cheapest
// and Least take 28 and 30 us there.
//
// # Next hops
//
// NextHops has three ports for each switch and destination (NextHop): the best, a backup for a fast-failover group,
// and a detour for packets that took a backup. Which other switch a packet is for is the only thing that its rules
// match, apart from the port at which it arrived, and a mark of one bit that a packet gets as it takes a backup. How the
// mark is written, for example as an outer VLAN tag that the last switch removes, is left to the rules' author.
//
// Covered without the controller:
//
//   - Any single cable, in one or both directions: every packet arrives wherever cables still lead. Loop-free
//     alternates alone (RFC 5286) do not cover rings, for example; the detour does (reroute.go has the argument).
//   - A single switch that is not the destination: packets whose switch has a NextHop with SurvivesSwitch. That is
//     every switch from which, or from those behind which, a cable leads around the failed one. In random networks of
//     20 switches this is 466 of 628 affected pairs with 30 cables, and 373 of 374 with 60 (BenchmarkOneSwitchFails).
//     The other packets are dropped until the controller has computed new next hops.
//
// No packet goes round in circles, whatever fails, because a packet is rerouted once. Not covered:
//
//   - Two failures that one packet meets: it is dropped at the second one.
//   - Switches that cannot mark packets. A single failed cable is covered as well, because the port at which a packet
//     arrives shows that it was rerouted. But if a switch or two cables fail, packets can circulate until the
//     controller removes the rules: 94 of 380 pairs of a source and a failed destination in the network of 30 cables
//     above, and 33 in that of 60.
//   - The moment in which the controller changes rules of several switches. Rules for a failure should first be changed
//     at the switches nearest to the destination. Package live changes all at once: a failure has many destinations, and
//     the switches that are near to one are far from another.
//   - Switches without fast-failover groups (Capabilities), and failures that a port does not show.
//
// For 1,000 switches and 3,000 cables, NextHops takes 0.3 s on one core of an AMD EPYC. The failure of one cable then
// changes 2,100 of 999,000 next hops on average, at 420 switches: 960 best ports, and 1,140 backups and detours alone
// (BenchmarkNextHopsAfterFailure, mean of 30 cables). A best port changes only where packets took the cable.
//
// # Traffic
//
// PortMeter makes rates of the counters that switches report of their ports, and History keeps them in bounded memory. What
// a link carries is what the port at its beginning sends (LinkTraffic). All rates and capacities are of layer 2: of the bytes
// from the destination MAC to the last before the frame check sequence. A link of Ethernet carries 24 bytes more for each
// frame (IEEE 802.3, 3.1.1 and 4.4.2: preamble, frame check sequence and gap), so that a port of 1 Gbit/s is full at 984 Mbit/s
// of frames of 1,514 bytes, and at 714 of the shortest frames, of 60.
//
// # Out of scope
//
// The package does not send or receive, does not reserve, and does not decide which rules switches get.
package fabric
