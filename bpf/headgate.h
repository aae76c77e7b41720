/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What all of Headgate's eBPF programs share: shapes of keys and values that
 * user space writes or reads, and the few constants on both sides of the border.
 * Units are in the names. Multi-byte packet fields are in network order unless
 * the name ends in _host.
 */
#ifndef HEADGATE_H
#define HEADGATE_H

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#define LICENSE char __license[] SEC("license") = "Dual BSD/GPL"

/* The most different field combinations that one direction's rules may use.
 * Each costs one hash lookup for the first packet of a flow. */
#define MAX_SHAPES 128

/* Instead of a rule's index. */
#define RULE_ASSIGNED 0xffffffffu
#define RULE_DEFAULT  0xfffffffeu

/* In flow_key.dscp, which has 6 bits: the packet's ports are in the key. Those of a
 * later fragment are not. */
#define HAS_PORTS 0x80

/* In flow_key.vlan_host, of the outermost 802.1Q tag: its id, that there is one, and its
 * priority (IEEE 802.1p), in its place in the tag. */
#define VLAN_ID     0x0fff
#define VLAN_TAGGED 0x1000 /* in the tag, whether it may be dropped (DEI), which no rule asks for */
#define VLAN_PCP    0xe000

enum family { FAMILY_OTHER = 0, FAMILY_IPV4 = 4, FAMILY_IPV6 = 6 };

/* What flows are told apart by, as far as rules ask for it; a source MAC address
 * beside it (rule_key), so that a flow fits into a cache line. An IPv4 address is
 * in the last word. */
struct flow_key {
	__u32 src[4];
	__u32 dst[4];
	__u16 sport;
	__u16 dport;
	__u8 proto;
	__u8 family;
	__u8 dscp; /* and HAS_PORTS */
	__u8 pad;
	__u16 vlan_host; /* VLAN_ID, VLAN_TAGGED, VLAN_PCP */
	__u16 shape; /* which combination, in the rule table; 0 in the flow cache */
	__u32 mark;
	__u64 cgroup; /* id of the socket's cgroup; in the rule table, of the nearest one that a rule names */
};

/* Every field that a rule can ask for. */
struct rule_key {
	struct flow_key flow;
	__u8 smac[6];
	__u16 pad;
};

struct flow {
	__u32 generation; /* of the rules that decided */
	__u32 rule;
	__u32 class_minor;
};

struct rule {
	__u32 index;
	__u32 class_minor;
};

struct conn_key {
	__u32 src[4];
	__u32 dst[4];
	__u16 sport;
	__u16 dport;
	__u8 proto;
	__u8 family;
	__u16 pad;
};

struct frag_key {
	__u32 src[4];
	__u32 dst[4];
	__u32 id;
	__u8 proto;
	__u8 family;
	__u16 pad;
};

struct counter {
	__u64 packets; /* a super-packet is as many as it has segments */
	__u64 bytes; /* layer 2 */
	__u64 marks; /* packets that were given CE here */
	__u64 drops; /* and packets that were dropped here */
};

/* What changes at run time without new rules. */
struct control {
	__u32 assign_epoch;
	__u32 pad;
};

/* Times of one byte are in 1/1024 ns: divisions are slow, and shifts are not. */
#define TIME_SHIFT 10

/* What one class's bytes take at the least and at the most, how many its queue holds, and
 * the largest frame that it passes. */
struct pace {
	__u64 ceiling_byte_time;
	__u64 guarantee_byte_time;
	__u32 queue_bytes;
	__u32 frame_bytes; /* 0: any; */
	__u32 large_minor; /* larger ones have this class */
	__u32 pad;
};

/* One class's queue, by cache lines: what each packet needs, what the departure hook
 * writes, and what a packet that is looked at needs besides. With a line for each
 * packet instead of three, and arrays that begin on one (ALIGNED), 100,000 flows in random
 * order take some 40 ns less each, and 10,000 clients 50. */
struct queue {
	__u32 arrived_bytes;  /* all that came and was not dropped here; wraps */
	__u32 departed_bytes; /* arrived_bytes when the last packet with a stamp came that has left (the hook's) */
	__u32 stamp_every;    /* so many from one look to the next; a power of two */
	__u32 look_every;     /* the same for packets that can be marked */
	__u32 bound_bytes;    /* so many may wait (bound.h); 0: any */
	__u32 large_frame;    /* frame_most when all packets began to have the class of large frames; 0: they do not */
	__u64 left_at_ns;     /* when the last segment so far of that packet left, */
	__u64 departed_at_ns; /* when the first did, */
	__u64 sojourn_ns;     /* how long it had waited, */
	__u64 service_byte_time; /* and what one byte takes when the queue is busy (all the hook's) */
	__u64 arrived_at_ns;  /* the last packet that the virtual queue was brought up to date for */

	__u64 busy_ns;        /* busy time lately, by which service_byte_time is known, */
	__s64 busy_bytes;     /* in which so many left */
	__u64 waited_ns;      /* sum of sojourns, and their number: for a mean over any interval */
	__u64 departures;
	__u64 queued_ns;      /* time in all in which there always was one that waited, */
	__s64 queued_bytes;   /* and what left in it: a standing queue, and how fast it was served */
	__u64 asked_at_ns;    /* a mark whose answer is waited for: when it was set, */
	__u64 asked_left_ns;  /* when its packet left; 0: not yet */

	__u32 counted_bytes;  /* arrived_bytes at arrived_at_ns */
	__u32 period_marks;   /* since period_at_ns */
	__u64 virtual_ns;     /* what stands in the virtual queue, in time to serve it */
	__u64 busy_since_ns;  /* since when the virtual queue had no pause worth counting */
	__u64 gap_ns;         /* its longest pause of the last while, */
	__u64 gap_next_ns;    /* and of the present one, */
	__u64 gap_at_ns;      /* which began then and lasts GAP_MEMORY times gap_ns */
	__u64 period_at_ns;   /* since when */
	__u64 idle_ns;        /* it had nothing to send for so long, */

	__u64 slack_ns;       /* and how much longer than by rule the queue may therefore be */
	__u64 rtt_ns;         /* from when a marked packet left to its sender's answer */
	__u32 asked_flow;     /* whose packet was marked, */
	__u32 asked_bytes;    /* and arrived_bytes when it came */
	__u32 mark_count;     /* marks since the queue became too long; */
	__u32 long_bytes;     /* what came since the last mark and found it too long, */
	__u32 mark_at_bytes;  /* which is so much at the next; */
	__u32 long_at_bytes;  /* and arrived_bytes when it last was */
	__u32 flooded;        /* the sender heeds no drops */
	__u32 ifindex;        /* of the device whose HTB this is */
	__u32 short_at_bytes; /* arrived_bytes when the queue was short last */
	__u32 pad[3];         /* to a cache line */
};

/* Arrays whose elements are whole cache lines begin on one only with this flag: without
 * it the kernel has them 16 bytes behind one (struct bpf_array). */
#define ALIGNED BPF_F_MMAPABLE

#endif
