/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the kernel and the daemon know of one connection: slot in slot.go. */
#ifndef HEADGATE_SLOT_H
#define HEADGATE_SLOT_H

#define barrier() asm volatile("" ::: "memory")

struct slot {
	/* The kernel writes. */
	__u64 cookie; /* 0: nobody has the slot */
	__u64 count;  /* odd while it is written */
	__u64 begun_ns;
	__u64 seen_ns;
	__u64 acked; /* bytes */
	__u64 rtt_sum_us;
	__u64 resent_ns; /* when something was sent again last */
	__u64 recovery_ns; /* when the newest recovery began */
	__u32 rtts;
	__u32 rtt_us; /* the newest sample */
	__u32 newest_us; /* round trip of the packet sent last of those acknowledged */
	__u32 srtt_us;
	__u32 least_us; /* of newest_us, while nothing was sent again */
	__u32 cwnd, ssthresh; /* packets */
	__u32 mss;
	__u32 backlog; /* bytes written and not sent */
	__u32 retransmits, segments; /* packets */
	__u32 delivered_ce; /* packets acknowledged with a mark, or that the receiver repeats */
	__u32 timeouts, resent, marked; /* events */
	__u32 paced, clamped; /* what is in force: bytes a second, packets; 0 is nothing */
	__u32 receiver_full; /* it takes no more */
	__u32 set;
	__u32 level; /* of the cgroup by which it is in the set */
	__u32 passive;
	__u32 local_port, remote_port;
	__u32 recovery; /* up to which sequence number that is */
	__u32 local[4], remote[4]; /* as in a rule */
	/* The daemon writes; the version last. */
	__u64 owner __attribute__((aligned(64))); /* the cookie of the connection that is meant */
	__u64 lease_until_ns;
	__u32 pace;   /* bytes a second; 0 is no bound */
	__u32 window; /* packets; 0 is no bound */
	__u32 version;
	__u32 asked;   /* by its application to be in the set */
#define ASKED 1
#define ASKED_NOW 2 /* its callbacks are not on yet */
	double weight; /* by hand */
} __attribute__((aligned(64)));

/* Which connections belong to a set: rule in rule.go. */
#define MAX_RULES 16

struct rule {
	__u32 local[4], local_mask[4];
	__u32 remote[4], remote_mask[4];
	__u32 local_from, local_to; /* ports */
	__u32 remote_from, remote_to;
};

#endif
