// Package nl speaks rtnetlink where the usual libraries have gaps: many
// traffic-control requests in one system call, which makes them atomic against
// kill -9 and fast (thousands of classes in a batch), and the options of the
// few qdiscs and filters that Headgate uses, written and read back exactly, so
// that a desired state can be compared with the kernel's.
//
// Layouts are those of uapi/linux/pkt_sched.h, pkt_cls.h and rtnetlink.h.
package nl
