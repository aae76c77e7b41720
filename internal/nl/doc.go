// Package nl implements the parts of rtnetlink that common libraries lack: many traffic-control
// requests in one system call, which makes them atomic with respect to kill -9 and fast (thousands
// of classes in a batch), and the exact encoding and decoding of the options of the qdiscs and
// filters that Headgate uses, so that a desired state can be compared with the kernel's.
//
// The layouts are those of uapi/linux/pkt_sched.h, pkt_cls.h and rtnetlink.h.
package nl
