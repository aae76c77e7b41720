// Package quantum implements the bandwidth controller of the bwaas seed (chapter IV; the
// source in appendix B), with its strengths and weaknesses: an eBPF policer on
// a device's two filter hooks, without a queue. It exists so that the gain of the default
// engine can be measured in the same run. For production use
// package htb.
//
// The algorithm is share.Quantum, and a test compares the eBPF program with it packet
// by packet. Each group may use its actual limit in a quantum (1 s). A group that
// leaves 1.5 % of the limit unused gives this amount to a pool when the quantum
// ends. A packet beyond the actual limit borrows its whole length from the pool, or
// resets all limits if its group's actual limit is below its guarantee, or is dropped. A packet that reaches
// the total is dropped too. Chapter VII's remedies and the step are in group.QuantumOptions.
//
// As in the seed:
//   - Payload is counted: rates in a plan are payload rates here, while in packages htb and
//     group they are layer-2 rates. 100 Mbit of TCP payload is 104.6 on Ethernet.
//   - Packets without payload pass uncounted: TCP's SYN, FIN, RST and pure
//     acknowledgements, SCTP's control chunks, and the control traffic of all
//     engines (ARP, neighbour discovery, DHCP, LLDP, STP).
//   - Lending is first come, first served, not in proportion to guarantees.
//   - Assigning a connection resets all limits of the directions that have its group,
//     as does a change of a direction's plan. The counters of the quantum continue. Each
//     direction has its own state, and is reset independently.
//   - Packets are marked (ECN) from two MTUs below the total until the quantum ends. Packets
//     that are dropped meanwhile count as marked too, because the source sets a flag of the
//     connection; here, the mark is lost with the packet, and the next packet that passes
//     is marked itself.
//
// Differences from the seed, and their reasons:
//   - The seed's step is 1,500 bytes at a limit of 100,000 bytes per second. Here, the default
//     is the same part of any limit, 1.5 %: with 1,500 bytes, a group
//     of 40 % of 100 Mbit/s has lent its unused guarantee only after 3,333 quanta, 56 minutes.
//   - A direction's first configuration is not counted as a reset.
//   - In the seed, packets of unassigned connections pass uncounted. Here, rules
//     and a default group assign every packet, so all payload is counted: of UDP, and
//     for other protocols, fragments and non-IP frames everything after
//     the known headers.
//   - The seed decides on one SCTP chunk, which is at most a packet. A GSO
//     super-packet is one packet here: up to 64 KB pass or are dropped
//     together. So is an SCTP packet with several chunks. If a group is guaranteed less than
//     some 4 Mbit/s, its quantum holds only a few super-packets.
//   - A packet dropped at the sender's own egress is reported as sent
//     (TC_ACT_STOLEN), so for the transport it is lost in the network. This corresponds
//     to the seed, where the transport keeps the chunk in its list and retransmits it
//     when no acknowledgement comes. TC_ACT_SHOT would notify TCP
//     immediately, which then waits for timers; see the figures in TestDropAction.
//   - Control traffic beyond its group's budget (docs/decisions/0024) counts as the
//     group's traffic, with its payload; acknowledgements have none.
//   - Quanta end on a fixed grid; the seed's timer drifts by its run time.
//   - An assignment takes effect at the direction's next packet, after the ends of quanta
//     in between.
//   - The MTU is the device's, not the connection's path MTU.
//
// Not supported: nested groups, ceilings below the limit, other spare
// policies, link-layer overhead, more than 64 groups per direction. Such plans are
// rejected, with the remedy: engine: htb.
package quantum
