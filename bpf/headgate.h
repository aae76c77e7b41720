/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Definitions that Headgate's eBPF programs share: the keys and values of maps that user space
 * writes or reads, and the constants that user space uses as well. Units are in the names.
 * Multi-byte packet fields are in network byte order unless the name ends in _host.
 */
#ifndef HEADGATE_H
#define HEADGATE_H

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#define LICENSE char __license[] SEC("license") = "Dual BSD/GPL"

/* The maximum number of different field combinations that the rules of one direction may use.
 * Each costs one hash lookup for the first packet of a flow. */
#define MAX_SHAPES 128

/* Values instead of a rule's index. */
#define RULE_ASSIGNED 0xffffffffu
#define RULE_DEFAULT  0xfffffffeu

/* A flag in flow_key.dscp, whose lower 6 bits are the DSCP: the key has the packet's ports. A
 * later fragment has none. */
#define HAS_PORTS 0x80

/* Parts of flow_key.vlan_host, which is of the outermost 802.1Q tag: the VLAN ID, a flag for
 * the presence of a tag, and the priority (IEEE 802.1p) at its position in the tag. */
#define VLAN_ID     0x0fff
#define VLAN_TAGGED 0x1000 /* the bit of DEI in the tag, which no rule matches */
#define VLAN_PCP    0xe000

enum family { FAMILY_OTHER = 0, FAMILY_IPV4 = 4, FAMILY_IPV6 = 6 };

/* The fields that identify a flow. Fields that no rule matches are 0. The source MAC address is
 * apart (rule_key), so that an entry of the flow cache fits into a cache line. An IPv4 address
 * is in the last word. */
struct flow_key {
	__u32 src[4];
	__u32 dst[4];
	__u16 sport;
	__u16 dport;
	__u8 proto;
	__u8 family;
	__u8 dscp; /* with HAS_PORTS */
	__u8 pad;
	__u16 vlan_host; /* VLAN_ID, VLAN_TAGGED, VLAN_PCP */
	__u16 shape; /* in the rule table: the index of the shape; 0 in a lookup of the flow cache */
	__u32 mark;
	__u64 cgroup; /* ID of the socket's cgroup; in the rule table: of the nearest cgroup that a rule matches */
};

/* All fields that a rule can match. */
struct rule_key {
	struct flow_key flow;
	__u8 smac[6];
	__u16 pad;
};

struct flow {
	__u32 generation; /* of the rules by which the flow was classified */
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
	__u64 packets; /* each segment of a super-packet counts */
	__u64 bytes; /* layer 2 */
	__u64 marks; /* packets that the classifier marked with CE */
	__u64 drops; /* packets that the classifier dropped */
};

/* The state that changes at run time without new rules. */
struct control {
	__u32 assign_epoch;
	__u32 pad;
};

/* Byte times are in 1/1024 ns, because a shift is faster than a division. */
#define TIME_SHIFT 10

/* The rates of a class as byte times, the length of its queue, and the largest frame that its
 * leaf passes. */
struct pace {
	__u64 ceiling_byte_time;
	__u64 guarantee_byte_time;
	__u32 queue_bytes;
	__u32 frame_bytes; /* the largest frame; 0: no limit */
	__u32 large_minor; /* the class minor of larger frames */
	__u32 pad;
};

/* The queue of a class. The members are grouped by cache lines: those that each packet needs,
 * those that the departure hook writes, and those that a sampled packet needs besides. With one
 * line for each packet instead of three, and arrays that are aligned to cache lines (ALIGNED),
 * 100,000 flows in random order take about 40 ns less per packet, and 10,000 clients 50. */
struct queue {
	__u32 arrived_bytes;  /* bytes that arrived and were not dropped by the classifier; wraps */
	__u32 departed_bytes; /* arrived_bytes before the last stamped packet that departed; written by the hook */
	__u32 stamp_every;    /* bytes between two samples of packets that cannot be marked; a power of two */
	__u32 look_every;     /* the same for packets that can be marked */
	__u32 bound_bytes;    /* maximum backlog (bound.h); 0: no bound */
	__u32 large_frame;    /* value of max_frame_bytes since which all packets have the class of large frames; 0: they do not */
	__u64 left_at_ns;     /* departure time of the latest segment of the last stamped packet; written by the hook */
	__u64 departed_at_ns; /* departure time of its first segment; written by the hook */
	__u64 sojourn_ns;     /* its sojourn time; written by the hook */
	__u64 service_byte_time; /* byte time while the queue is busy; written by the hook */
	__u64 arrived_at_ns;  /* time of the last update of the virtual queue */

	__u64 busy_ns;        /* recent busy time, from which service_byte_time is computed */
	__s64 busy_bytes;     /* bytes that departed in busy_ns */
	__u64 waited_ns;      /* sum of the sojourn times of stamped packets, for a mean over any interval */
	__u64 departures;     /* number of stamped packets that departed */
	__u64 queued_ns;      /* total time between departures in which the queue was not empty */
	__s64 queued_bytes;   /* bytes that departed in queued_ns */
	__u64 asked_at_ns;    /* time of the mark by which the round-trip time is measured; 0: none */
	__u64 asked_left_ns;  /* departure time of that packet; 0: not departed */

	__u32 counted_bytes;  /* arrived_bytes at arrived_at_ns */
	__u32 period_marks;   /* marks since period_at_ns */
	__u64 virtual_ns;     /* backlog of the virtual queue as service time */
	__u64 busy_since_ns;  /* time of the last significant pause of the virtual queue */
	__u64 gap_ns;         /* longest recent pause of the virtual queue */
	__u64 gap_next_ns;    /* longest pause since gap_at_ns */
	__u64 gap_at_ns;      /* start of the current gap period, which lasts GAP_MEMORY times gap_ns */
	__u64 period_at_ns;   /* start of the period after which slack_ns is adapted */
	__u64 idle_ns;        /* idle time of the virtual queue since period_at_ns */

	__u64 slack_ns;       /* time that is added to all thresholds because of idle time */
	__u64 rtt_ns;         /* smoothed time from the departure of a marked packet to the CWR of its sender */
	__u32 asked_flow;     /* hash of the flow of the packet that was marked at asked_at_ns */
	__u32 asked_bytes;    /* arrived_bytes before that packet */
	__u32 mark_count;     /* marks since the queue became too long */
	__u32 long_bytes;     /* bytes since the last mark that arrived while the queue was too long */
	__u32 mark_at_bytes;  /* value of long_bytes at which the next packet is marked */
	__u32 long_at_bytes;  /* arrived_bytes when the queue was last too long */
	__u32 flooded;        /* the sender does not respond to drops */
	__u32 ifindex;        /* of the device that has this HTB */
	__u32 short_at_bytes; /* arrived_bytes when the queue was last short */
	__u32 pad[3];         /* to a full cache line */
};

/* Aligns an array whose elements are whole cache lines to cache lines. Without this flag the
 * kernel places the elements at an offset of 16 bytes (struct bpf_array). */
#define ALIGNED BPF_F_MMAPABLE

#endif
