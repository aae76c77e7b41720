/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The shared state of one connection: slot in slot.go. */
#ifndef HEADGATE_SLOT_H
#define HEADGATE_SLOT_H

#define barrier() asm volatile("" ::: "memory")

struct slot {
	/* Written by the kernel. */
	__u64 cookie; /* of the socket; 0: unused slot */
	__u64 count;  /* sequence count: odd during a write */
	__u64 begun_ns;
	__u64 seen_ns;
	__u64 acked; /* bytes */
	__u64 rtt_sum_us;
	__u64 resent_ns; /* time of the last retransmission */
	__u64 recovery_ns; /* start of the latest recovery */
	__u32 rtts; /* number of round-trip times in rtt_sum_us */
	__u32 rtt_us; /* the latest sample */
	__u32 newest_us; /* round-trip time of the latest acknowledged packet */
	__u32 srtt_us;
	__u32 least_us; /* minimum of newest_us in times without retransmissions */
	__u32 cwnd, ssthresh; /* packets */
	__u32 mss;
	__u32 backlog; /* bytes written by the application and not sent */
	__u32 retransmits, segments; /* packets */
	__u32 delivered_ce; /* packets whose acknowledgements had ECE, including repeated ones */
	__u32 timeouts, resent, marked; /* events */
	__u32 paced, clamped; /* the cap in force: bytes per second, packets; 0: none */
	__u32 receiver_full; /* 1: limited by the receive window */
	__u32 set;
	__u32 level; /* of the cgroup by which it is in the set */
	__u32 passive;
	__u32 local_port, remote_port;
	__u32 recovery; /* high_seq of the latest recovery */
	__u32 local[4], remote[4]; /* as in a rule */
	/* Written by the daemon, which writes the version last. */
	__u64 owner __attribute__((aligned(64))); /* cookie of the connection for which the cap is */
	__u64 lease_until_ns;
	__u32 pace;   /* bytes per second; 0: no limit */
	__u32 window; /* packets; 0: no limit */
	__u32 version;
	__u32 asked;   /* the application requested membership of the set */
#define ASKED 1
#define ASKED_NOW 2 /* its callbacks are not enabled yet */
	double weight; /* configured */
	/* Written by the kernel. */
	__u64 loss_ns;   /* when the first loss was found of what was sent since the loss before */
	__u32 loss_end;  /* snd_nxt then */
	__u32 lost;      /* packets */
	__u32 reno;      /* 1: its congestion control is Reno */
} __attribute__((aligned(64)));

/* The beginning of a connection, or its end if it has ended_ns: life in life.go. The daemon looks at a
 * slot once in a second or more, and a slot may have had several connections then. */
struct life {
	__u64 cookie, begun_ns, ended_ns;
	__u64 acked; /* bytes, at its end; 0 if it was not watched from its beginning */
	__u32 slot, set;
	__u32 passive, asked;
	__u32 local_port, remote_port;
	__u32 local[4], remote[4];
};

/* What a new connection begins with while its set is controlled: start and startKey in start.go. A short connection ends
 * before the daemon has a reading of it. */
struct start_key {
	__u32 set;
	__u16 rule; /* index */
	__u16 port; /* of the service, as in host order */
	__u32 passive;
};

struct start {
	__u64 lease_until_ns;
	__u32 pace, window; /* as in a slot */
};

/* A rule of a set: rule in rule.go. */
#define MAX_RULES 16

struct rule {
	__u32 local[4], local_mask[4];
	__u32 remote[4], remote_mask[4];
	__u32 local_from, local_to; /* ports */
	__u32 remote_from, remote_to;
};

#endif
