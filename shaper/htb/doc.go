// Package htb is the default engine: an HTB tree (net/sched/sch_htb.c) for each
// direction, an eBPF classifier that names the class, and a marker that keeps
// queues short.
//
// Why HTB and not the bwaas seed's policer: docs/decisions/0001. What the tree
// looks like and why: docs/decisions/0006, 0010 and 0024. In short:
//
//	device, egress hook: classifier -> skb->cb -> root qdisc 4847: (HTB), whose filter reads the class
//	    4847:1   the limit
//	    4847:2     control traffic (ARP, neighbour discovery, DHCP, LLDP and the
//	               like, TCP's pure acknowledgements) within its group's budget
//	    4847:10…   groups, nested as in the plan; each leaf a queue bounded in
//	               time that splits super-packets where they are slow to send,
//	               and keeps flows apart (fq_codel) where the kernel can
//	device, ingress hook: classifier -> redirect -> IFB hgi<index>: the same tree
//
// A group's class id stays as long as its path exists. The plan, the ids and
// whatever else Observe needs are bound to the classifier's program, so that the
// filter and its record change in one instant; one netlink message carries all
// changes of a device, so that kill -9 leaves the old state or the new. The kernel
// may refuse one request of it and do the others: then all are undone (undo.go).
//
// What it does not do: packets of programs that bypass the queueing layer
// (AF_PACKET with PACKET_QDISC_BYPASS, XDP) are not seen.
package htb
