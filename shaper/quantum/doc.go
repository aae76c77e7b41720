// Package quantum is the bandwidth controller of the bwaas seed (chapter IV; the
// source in appendix B), with its strengths and its weaknesses: an eBPF policer on
// a device's two filter hooks, without a queue, so that what the default engine
// gains over it can be measured in the same run. To divide a link in earnest use
// package htb.
//
// The algorithm is share.Quantum, and a test holds the eBPF program to it packet
// by packet: each group may use its actual limit in a quantum (1 s); a group that
// leaves 1.5 % of the limit unused gives that much to a free pool when the quantum
// ends; a packet beyond the actual limit takes its whole length from the pool, or
// resets all limits if its group is owed more, or is dropped; reaching the total
// drops too. Chapter VII's remedies and the step are group.QuantumOptions.
//
// As in the seed:
//   - Payload is counted: rates in a plan are payload here, while packages htb and
//     group mean layer-2 bytes. 100 Mbit of TCP is 104.6 on an Ethernet.
//   - What carries no payload passes uncounted: TCP's SYN, FIN, RST and pure
//     acknowledgements, SCTP's control chunks, and the control traffic of all
//     engines (ARP, neighbour discovery, DHCP, LLDP, STP).
//   - What is lent goes to whoever comes first, not in proportion to guarantees.
//   - Assigning a connection resets all limits of the directions that have its group;
//     so does a change of a direction's plan, and counts of the quantum go on. Each
//     direction has its own state, and what resets one leaves the other.
//   - ECN is marked from two MTU before the total until the quantum ends. What is
//     dropped meanwhile counts as marked too, because the source sets a flag of the
//     connection; here the mark is gone with the packet, and the next one that passes
//     has its own.
//
// Where it departs, and why:
//   - The seed's step is 1,500 bytes at a limit of 100,000 bytes a second. Here it is as
//     large a part of any limit, 1.5 %, if no step is given: with 1,500 bytes a group
//     of 40 % of 100 Mbit/s has lent what it leaves idle after 3,333 quanta, 56 minutes.
//   - A direction's first configuration is not counted as a reset.
//   - In the seed a connection that nobody assigned passes uncounted. Here rules
//     and a default group take every packet, so all payload is counted: UDP's, and
//     of other protocols, fragments and frames that are not IP everything after
//     the headers that are known.
//   - The seed asks for one SCTP chunk, which is at most a packet. A GSO
//     super-packet is one packet here, up to 64 KB that pass or are dropped
//     together, and so is an SCTP packet with several chunks. Below some 4 Mbit/s
//     guaranteed, a group's quantum holds only a few super-packets.
//   - A refused packet at the sender's own egress is stolen and not refused
//     (TC_ACT_STOLEN): the transport believes that it was sent, and it is lost. So
//     it is in the seed, where the transport has the chunk in its list and sends it
//     again when no acknowledgement comes. Refusing (TC_ACT_SHOT) would tell TCP at
//     once, which then waits for timers; see the figures in TestDropAction.
//   - Control traffic beyond its group's budget (docs/decisions/0024) counts as the
//     group's, with what it has of payload; acknowledgements have none.
//   - Quanta end on a fixed grid; the seed's timer drifts by its own run time.
//   - An assignment takes effect at the direction's next packet. Ends of quanta
//     between the two come first.
//   - The MTU is the device's, not the connection's path MTU.
//
// What it does not do: groups inside groups, ceilings below the limit, other spare
// policies, link-layer overhead, more than 64 groups a direction. Such plans are
// refused, with the remedy: engine: htb.
package quantum
