// Package htb is the default engine: an HTB tree (net/sched/sch_htb.c) per
// direction, an eBPF classifier that sets the class, and an ECN marker that keeps
// queues short.
//
// Why HTB and not the bwaas seed's policer: docs/decisions/0001. Structure of the
// tree and its reasons: docs/decisions/0006, 0010 and 0024. In short:
//
//	device, egress hook: classifier -> skb->cb -> root qdisc 4847: (HTB), whose filter reads the class
//	    4847:1   the limit
//	    4847:2     control traffic (ARP, neighbour discovery, DHCP, LLDP and the
//	               like, TCP's pure acknowledgements) within its group's budget
//	    4847:10…   groups, nested as in the plan; each leaf has a queue bounded in
//	               time, which splits super-packets at low rates
//	               and separates flows (fq_codel) if the kernel supports it
//	device, ingress hook: classifier -> redirect -> IFB hgi<index>: the same tree
//
// A group keeps its class ID as long as its path exists. The plan, the IDs and
// other data for Observe are bound to the classifier's program, so that the
// filter and its record change atomically. One netlink message carries all
// changes of a device, so that kill -9 leaves the old or the new state. If the kernel
// rejects one request of the message and executes the others, all are rolled back (undo.go).
//
// The ceiling of an adjustable group is its limit, which Adjust changes. The class is the only place that has the limit, so
// that a change of it needs no new record and no comparison, a killed process loses nothing, and Apply reads it back
// (adjust.go).
//
// Not supported: packets of programs that bypass the queueing layer
// (AF_PACKET with PACKET_QDISC_BYPASS, XDP).
package htb
