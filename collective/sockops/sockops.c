//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Samples the TCP connections of one set once per round trip, and applies their caps.
 *
 * Each connection has a slot in an array that the daemon maps into its memory. Only this program
 * writes the kernel's part of a slot, under the lock of the socket. A sequence count in the slot
 * is odd during a write. The daemon's part is the cap. A cap is a lease: the connection's first
 * callback after the lease has expired lifts the cap, whether or not the daemon runs. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include "slot.h"

#define SOL_SOCKET 1
#define SO_MAX_PACING_RATE 47
#define SOL_TCP 6
#define TCP_CONGESTION 13
#define TCP_CLOSE 7
#define TCP_CHRONO_RWND_LIMITED 2
#define NO_PACE 0xffffffffU
#define NO_CLAMP 0x3fffffff
#define NO_SET 0xffffffffU /* a connection without a set: the program of any set lifts its cap */
#define AF_INET6 10

#ifndef TCP_BPF_SOCK_OPS_CB_FLAGS
#define TCP_BPF_SOCK_OPS_CB_FLAGS 1008 /* kernel 6.13 */
#endif
#define TCP_ESTABLISHED 1
#define TCP_CLOSE_WAIT 8

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct in6_words {
	__be32 u6_addr32[4];
};
struct in6_addr {
	struct in6_words in6_u;
};
struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};
struct kernfs_node {
	__u64 id;
};
struct cgroup {
	struct kernfs_node *kn;
	int level;
	struct cgroup *ancestors[];
};
struct sock_cgroup_data {
	struct cgroup *cgroup;
};
struct sock {
	struct sock_cgroup_data sk_cgrp_data;
};
struct bpf_iter__tcp {
	struct sock_common *sk_common;
};
struct tcp_sock {
	__u32 write_seq;
	__u32 snd_nxt;
	__u32 snd_una;
	__u32 high_seq;        /* snd_nxt at the start of the latest recovery */
	__u64 tcp_mstamp;      /* the current time in us while a packet is processed */
	__u64 first_tx_mstamp; /* transmit time of the latest acknowledged packet, us */
	__u32 delivered_ce;    /* packets whose acknowledgements had ECE */
	__u8 chrono_type : 2;  /* why it is not sending: enum tcp_chrono */
};
struct tcp_congestion_ops {
	char name[16];
};
struct inet_connection_sock {
	const struct tcp_congestion_ops *icsk_ca_ops;
};
#pragma clang attribute pop

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 64); /* the loader sets it */
	__type(key, __u32);
	__type(value, struct slot);
} slots SEC(".maps");

/* The numbers of unused slots. The daemon pushes all of them at the start. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 64); /* the loader sets it */
	__type(value, __u32);
} unused SEC(".maps");

/* Connections that began or ended since the daemon's last look. When it is full it loses the newest. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
	__type(value, struct life);
} lives SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct start_key);
	__type(value, struct start);
} starts SEC(".maps");

/* The state of a connection, which the kernel frees with the socket. */
struct held {
	__u32 slot;
	__u32 version;  /* of the cap in force */
	__u32 pace;     /* SO_MAX_PACING_RATE of the application before the cap, bytes per second */
	__u8 paced, clamped;
	__u8 joined; /* JOINED, or JOINED_LATE */
};

#define JOINED 1
#define JOINED_LATE 2 /* what it carried before is unknown */

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct held);
} connections SEC(".maps");

/* Indexes of counts: connections that were refused because no slot was unused; open connections
 * whose callbacks this kernel cannot enable; and a hash of the layout of the slots. */
enum { NO_SLOT, NO_CALLBACKS, LAYOUT, COUNTS };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COUNTS);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

static __always_inline void count(__u32 what)
{
	__u64 *n = bpf_map_lookup_elem(&counts, &what);

	if (n)
		__sync_fetch_and_add(n, 1);
}

const volatile __u32 set_of = 0; /* the set of this program */

/* The cgroup of the set's processes; with ID 0 no connection joins automatically. The daemon
 * updates it when a service is restarted. The program itself is attached to the root cgroup:
 * programs of another cgroup are detached when that cgroup is removed, and open connections
 * would keep their caps. */
volatile __u64 cgroup_id = 0;
volatile __u32 cgroup_level = 0;

/* in_cgroup reports whether a socket is in the set's cgroup or in a descendant of it. */
static __always_inline int in_cgroup(struct tcp_sock *tp)
{
	struct sock *sk = (struct sock *)tp;
	struct cgroup *of = BPF_CORE_READ(sk, sk_cgrp_data.cgroup), *up = 0;
	__u32 level = cgroup_level;

	if (!cgroup_id || !of || level > (__u32)BPF_CORE_READ(of, level))
		return 0;
	bpf_probe_read_kernel(&up, sizeof(up), (void *)of + bpf_core_field_offset(of->ancestors) + level * sizeof(up));
	return up && BPF_CORE_READ(up, kn, id) == cgroup_id;
}

/* The rules of the set. A connection of the cgroup is in the set if it matches any rule, or if
 * there are no rules. Addresses are IPv6 or IPv4-mapped, in network byte order. */
const volatile struct rule rules[MAX_RULES] = {};
const volatile __u32 rules_n = 0;

static __always_inline int in_prefix(const volatile __u32 *net, const volatile __u32 *mask, const __u32 *addr)
{
	for (int i = 0; i < 4; i++)
		if ((addr[i] & mask[i]) != net[i])
			return 0;
	return 1;
}

/* matches_rules returns 1 and the index of the rule that matches, or 0 for none. */
static __always_inline int matches_rules(const __u32 *local, const __u32 *remote, __u32 lport, __u32 rport)
{
	if (!rules_n)
		return 1;
	for (int i = 0; i < MAX_RULES; i++) {
		const volatile struct rule *r = &rules[i];

		if (i >= rules_n)
			break;
		if (lport < r->local_from || lport > r->local_to || rport < r->remote_from || rport > r->remote_to)
			continue;
		if (in_prefix(r->local, r->local_mask, local) && in_prefix(r->remote, r->remote_mask, remote))
			return 1 + i;
	}
	return 0;
}

/* has_nearer_cgroup reports whether this set takes the connection over from its current set,
 * because this set's cgroup is nearer to the socket. A connection belongs to the set of the
 * nearest cgroup, in whatever order the programs run. */
static __always_inline int has_nearer_cgroup(struct slot *s)
{
	return s->set == NO_SET || (!s->asked && cgroup_level > s->level);
}

static __always_inline void take_over(struct slot *s)
{
	s->set = set_of;
	s->level = cgroup_level;
}

static __always_inline struct slot *slot_of(struct held *h)
{
	__u32 i = h->slot;

	return bpf_map_lookup_elem(&slots, &i);
}

/* report tells the daemon of the beginning or the end of the connection of a slot. The daemon polls, so that nothing is woken. */
static __always_inline void report(struct slot *s, __u32 i, __u64 ended_ns, __u64 acked)
{
	struct life *l = bpf_ringbuf_reserve(&lives, sizeof(*l), 0);

	if (!l)
		return;
	l->cookie = s->cookie;
	l->begun_ns = s->begun_ns;
	l->ended_ns = ended_ns;
	l->acked = acked;
	l->slot = i;
	l->set = s->set;
	l->passive = s->passive;
	l->asked = s->asked;
	l->local_port = s->local_port;
	l->remote_port = s->remote_port;
	__builtin_memcpy(l->local, s->local, sizeof(l->local));
	__builtin_memcpy(l->remote, s->remote, sizeof(l->remote));
	bpf_ringbuf_submit(l, BPF_RB_NO_WAKEUP);
}

#define CALLBACKS (BPF_SOCK_OPS_RTT_CB_FLAG | BPF_SOCK_OPS_RETRANS_CB_FLAG | \
	BPF_SOCK_OPS_RTO_CB_FLAG | BPF_SOCK_OPS_STATE_CB_FLAG)

/* endpoints of a connection; addresses as in a rule. */
struct endpoints {
	__u32 local[4], remote[4];
	__u32 lport, rport;
	__u32 passive;
};

/* allocate_slot allocates and initializes an unused slot for a connection; 0 if there is none. */
static __always_inline struct slot *allocate_slot(struct held *h, const struct endpoints *e)
{
	struct slot *s;
	__u32 i;

	if (bpf_map_pop_elem(&unused, &i)) {
		count(NO_SLOT);
		return 0;
	}
	h->slot = i;
	h->joined = JOINED;
	s = bpf_map_lookup_elem(&slots, &i);
	if (!s)
		return 0;
	__builtin_memset(s, 0, sizeof(*s));
	s->begun_ns = bpf_ktime_get_ns();
	take_over(s);
	s->passive = e->passive;
	s->local_port = e->lport;
	s->remote_port = e->rport;
	__builtin_memcpy(s->local, e->local, sizeof(e->local));
	__builtin_memcpy(s->remote, e->remote, sizeof(e->remote));
	return s;
}

static __always_inline void begin_capped(struct bpf_sock_ops *ctx, struct held *h, struct slot *s, __u32 rule);

/* join adds a connection to the set when it is established, and enables its callbacks. */
static __always_inline void join(struct bpf_sock_ops *ctx, __u32 passive)
{
	struct held *h;
	struct slot *s;
	struct bpf_sock *sk = ctx->sk;
	struct tcp_sock *tp;
	struct endpoints e = {.passive = passive};
	__u32 rule;

	if (!sk)
		return;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp || !in_cgroup(tp))
		return;
	e.lport = ctx->local_port;
	e.rport = bpf_ntohl(ctx->remote_port);
	e.local[3] = ctx->local_ip4;
	e.remote[3] = ctx->remote_ip4;
	barrier(); /* prevents the compiler from selecting an offset into ctx at run time */
	if (ctx->family == AF_INET6) {
		e.local[0] = ctx->local_ip6[0];
		e.local[1] = ctx->local_ip6[1];
		e.local[2] = ctx->local_ip6[2];
		e.local[3] = ctx->local_ip6[3];
		e.remote[0] = ctx->remote_ip6[0];
		e.remote[1] = ctx->remote_ip6[1];
		e.remote[2] = ctx->remote_ip6[2];
		e.remote[3] = ctx->remote_ip6[3];
	} else {
		e.local[2] = e.remote[2] = bpf_htonl(0xffff);
	}
	rule = matches_rules(e.local, e.remote, e.lport, e.rport);
	if (!rule)
		return;
	h = bpf_sk_storage_get(&connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!h)
		return;
	if (h->joined) { /* the program of another set has just added it */
		s = slot_of(h);
		if (s && has_nearer_cgroup(s))
			take_over(s);
		return;
	}
	s = allocate_slot(h, &e);
	if (!s) {
		bpf_sk_storage_delete(&connections, sk);
		return;
	}
	/* Set the cookie last: to the daemon a slot with a cookie is in use. */
	s->cookie = bpf_get_socket_cookie(ctx);
	report(s, h->slot, 0, 0);
	begin_capped(ctx, h, s, rule - 1);
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | CALLBACKS);
}

/* enable_callbacks enables the callbacks of an established connection. */
static __always_inline int enable_callbacks(struct tcp_sock *tp)
{
	int flags = 0;

	if (bpf_getsockopt(tp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags)))
		return -1;
	flags |= CALLBACKS;
	return bpf_setsockopt(tp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags));
}

static __always_inline int is_open(struct sock_common *skc)
{
	return skc->skc_state == TCP_ESTABLISHED || skc->skc_state == TCP_CLOSE_WAIT;
}

/* headgate_open adds the connections that are established already to the set, in the network
 * namespace of the process that reads the iterator. */
SEC("iter/tcp")
int headgate_open(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct tcp_sock *tp;
	struct held *h;
	struct slot *s;
	struct endpoints e = {};

	if (!skc)
		return 0;
	tp = bpf_skc_to_tcp_sock(skc);
	if (!tp || !is_open(skc))
		return 0;
	e.lport = skc->skc_num;
	e.rport = bpf_ntohs(skc->skc_dport);
	if (skc->skc_family == AF_INET6) {
		for (int i = 0; i < 4; i++) {
			e.local[i] = skc->skc_v6_rcv_saddr.in6_u.u6_addr32[i];
			e.remote[i] = skc->skc_v6_daddr.in6_u.u6_addr32[i];
		}
	} else {
		e.local[2] = e.remote[2] = bpf_htonl(0xffff);
		e.local[3] = skc->skc_rcv_saddr;
		e.remote[3] = skc->skc_daddr;
	}
	if (!in_cgroup(tp) || !matches_rules(e.local, e.remote, e.lport, e.rport))
		return 0;
	h = bpf_sk_storage_get(&connections, tp, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!h)
		return 0;
	if (h->joined) {
		s = slot_of(h);
		if (s && has_nearer_cgroup(s))
			take_over(s);
		return 0;
	}
	s = allocate_slot(h, &e);
	if (!s || enable_callbacks(tp)) {
		if (s) {
			count(NO_CALLBACKS);
			bpf_map_push_elem(&unused, &h->slot, BPF_ANY);
		}
		bpf_sk_storage_delete(&connections, tp);
		return 0;
	}
	h->joined = JOINED_LATE;
	s->cookie = bpf_get_socket_cookie(tp);
	return 0;
}

/* headgate_asked enables the callbacks of connections that were added at the request of their
 * applications, and for which the daemon has allocated a slot. */
SEC("iter/tcp")
int headgate_asked(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct tcp_sock *tp;
	struct held *h;
	struct slot *s;

	if (!skc)
		return 0;
	tp = bpf_skc_to_tcp_sock(skc);
	if (!tp || !is_open(skc))
		return 0;
	h = bpf_sk_storage_get(&connections, tp, 0, 0);
	if (!h)
		return 0;
	s = slot_of(h);
	if (s && s->asked == ASKED_NOW && !enable_callbacks(tp))
		s->asked = ASKED;
	return 0;
}

/* set_pacing limits the pacing rate, in bytes per second; 0 restores the application's rate. */
static __always_inline void set_pacing(struct bpf_sock_ops *ctx, struct held *h, __u32 rate)
{
	__u32 own = 0;

	if (!rate && !h->paced)
		return;
	if (!h->paced) {
		if (bpf_getsockopt(ctx, SOL_SOCKET, SO_MAX_PACING_RATE, &own, sizeof(own)))
			own = NO_PACE;
		h->pace = own;
	}
	if (!rate || rate > h->pace)
		h->paced = 0, own = h->pace;
	else
		h->paced = 1, own = rate;
	bpf_setsockopt(ctx, SOL_SOCKET, SO_MAX_PACING_RATE, &own, sizeof(own));
}

const volatile char threshold_name[16] = ""; /* the congestion control of threshold.c */

/* keep_window sets ssthresh to the current window by switching to the congestion control of
 * threshold.c and back, so that the connection continues in congestion avoidance. Reno has no
 * state that the switch would lose, and CUBIC starts a new epoch. It is not done for other
 * congestion controls. */
static __always_inline void keep_window(struct bpf_sock_ops *ctx)
{
	char own[16] = {}, name[16];

	if (!threshold_name[0] || bpf_getsockopt(ctx, SOL_TCP, TCP_CONGESTION, own, sizeof(own)))
		return;
	if (__builtin_memcmp(own, "reno", 5) && __builtin_memcmp(own, "cubic", 6))
		return;
	for (int i = 0; i < sizeof(name); i++)
		name[i] = threshold_name[i];
	if (!bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, name, sizeof(name)))
		bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, own, sizeof(own));
}

/* set_clamp limits the congestion window, in packets; 0 lifts the limit. */
static __always_inline void set_clamp(struct bpf_sock_ops *ctx, struct held *h, __u32 packets)
{
	int value = packets ? packets : NO_CLAMP;

	if (!packets && !h->clamped)
		return;
	h->clamped = packets != 0;
	bpf_setsockopt(ctx, SOL_TCP, TCP_BPF_SNDCWND_CLAMP, &value, sizeof(value));
	if (!packets)
		keep_window(ctx);
}

/* begin_capped applies what a new connection begins with. The daemon's first cap of the connection has another version. */
static __always_inline void begin_capped(struct bpf_sock_ops *ctx, struct held *h, struct slot *s, __u32 rule)
{
	struct start_key k = {.set = set_of, .rule = rule, .port = s->passive ? s->local_port : s->remote_port, .passive = s->passive};
	struct start *b = bpf_map_lookup_elem(&starts, &k);

	if (!b || bpf_ktime_get_ns() > b->lease_until_ns)
		return;
	s->owner = s->cookie;
	s->lease_until_ns = b->lease_until_ns;
	s->pace = b->pace;
	s->window = b->window;
	set_pacing(ctx, h, s->pace);
	set_clamp(ctx, h, s->window);
	s->paced = h->paced ? s->pace : 0;
	s->clamped = h->clamped ? s->window : 0;
}

/* release frees the slot. It lifts the cap completely, because the socket may connect again. */
static __always_inline void release(struct bpf_sock_ops *ctx)
{
	struct held *h;
	struct slot *s;
	struct bpf_sock *sk = ctx->sk;
	int none = NO_CLAMP;
	__u32 i;

	if (!sk)
		return;
	h = bpf_sk_storage_get(&connections, sk, 0, 0);
	if (!h)
		return;
	set_pacing(ctx, h, 0);
	if (h->clamped)
		bpf_setsockopt(ctx, SOL_TCP, TCP_BPF_SNDCWND_CLAMP, &none, sizeof(none));
	i = h->slot;
	s = slot_of(h);
	if (s) {
		report(s, i, bpf_ktime_get_ns(), h->joined == JOINED ? ctx->bytes_acked : 0);
		s->cookie = 0;
	}
	bpf_sk_storage_delete(&connections, sk);
	bpf_map_push_elem(&unused, &i, BPF_ANY);
}

static __always_inline int in_recovery(struct tcp_sock *tp)
{
	return (__s32)(tp->high_seq - tp->snd_una) > 0;
}

/* in_first_round reports whether the latest recovery began less than a round trip ago. */
static __always_inline int in_first_round(struct slot *s, __u64 now)
{
	return now - s->recovery_ns < 1000ULL * s->srtt_us;
}

/* apply_cap applies the daemon's cap, or lifts it when the lease has expired. A cap sets ssthresh,
 * and with it the rate of a recovery: the first round trip of one remains TCP's, which sends less
 * at once, while the daemon knows of the loss only later. */
static __always_inline void apply_cap(struct bpf_sock_ops *ctx, struct held *h, struct tcp_sock *tp, struct slot *s, __u64 now)
{
	__u64 until = *(volatile __u64 *)&s->lease_until_ns;
	__u32 version = *(volatile __u32 *)&s->version;

	if (now > until || *(volatile __u64 *)&s->owner != s->cookie) {
		set_pacing(ctx, h, 0);
		set_clamp(ctx, h, 0);
		h->version = 0;
	} else if (version != h->version) {
		set_pacing(ctx, h, *(volatile __u32 *)&s->pace);
		if (!in_recovery(tp) || !in_first_round(s, now)) {
			h->version = version;
			set_clamp(ctx, h, *(volatile __u32 *)&s->window);
		}
	}
	s->paced = h->paced ? *(volatile __u32 *)&s->pace : 0;
	s->clamped = h->clamped ? *(volatile __u32 *)&s->window : 0;
}

/* The time after a retransmission in which round-trip times are ambiguous. After a spurious
 * retransmission, as by Reno after a timeout, the acknowledgement is that of the original
 * packet: a round-trip time of 3.7 ms was measured on a path of 22 ms. */
#define AMBIGUOUS_RTT_NS 1000000000ULL

/* plausible_rtt returns a measured round-trip time, or the minimum instead of an ambiguous one. */
static __always_inline __u32 plausible_rtt(struct slot *s, __u32 rtt, __u64 now)
{
	if ((__s32)rtt > 0 && (now - s->resent_ns > AMBIGUOUS_RTT_NS || rtt >= s->least_us))
		return rtt;
	return s->least_us ? s->least_us : s->srtt_us;
}

/* read_state copies the state of the connection to its slot. */
static __always_inline void read_state(struct bpf_sock_ops *ctx, struct tcp_sock *tp, struct slot *s, __u64 now)
{
	s->srtt_us = ctx->srtt_us >> 3;
	if (ctx->op == BPF_SOCK_OPS_RTT_CB) {
		__u32 rtt = ctx->args[0];

		if (!rtt) /* kernels before 6.11 do not pass it */
			rtt = s->srtt_us;
		s->rtt_us = plausible_rtt(s, rtt, now);
		rtt = s->rtt_us;
		s->rtt_sum_us += rtt;
		s->rtts++;
		s->newest_us = plausible_rtt(s, tp->tcp_mstamp - tp->first_tx_mstamp, now);
		if (now - s->resent_ns > AMBIGUOUS_RTT_NS && (!s->least_us || s->newest_us < s->least_us))
			s->least_us = s->newest_us;
	}
	s->seen_ns = now;
	s->acked = ctx->bytes_acked;
	s->cwnd = ctx->snd_cwnd;
	s->ssthresh = ctx->snd_ssthresh;
	s->mss = ctx->mss_cache;
	s->retransmits = ctx->total_retrans;
	s->segments = ctx->data_segs_out;
	s->backlog = tp->write_seq - tp->snd_nxt;
	/* This is the state at the last attempt to send. The acknowledgement that is processed now
	 * may open the window. */
	s->receiver_full = BPF_CORE_READ_BITFIELD(tp, chrono_type) == TCP_CHRONO_RWND_LIMITED;
}

/* is_reno reports whether the congestion control is Reno. An application may change it at any time. */
static __always_inline int is_reno(struct tcp_sock *tp)
{
	const struct tcp_congestion_ops *ops = BPF_CORE_READ((struct inet_connection_sock *)tp, icsk_ca_ops);
	char name[5] = {};

	if (ops)
		bpf_probe_read_kernel(name, sizeof(name), (void *)ops + bpf_core_field_offset(ops->name));
	return !__builtin_memcmp(name, "reno", 5);
}

/* count_lost counts the packets of a retransmission. Those that were sent before the last loss was found are of that loss: TCP gives up part of its window
 * once for all of them. */
static __always_inline void count_lost(struct bpf_sock_ops *ctx, struct tcp_sock *tp, struct slot *s, __u64 now)
{
	if (!s->loss_ns || (__s32)(ctx->args[0] - s->loss_end) >= 0) {
		s->loss_ns = now;
		s->loss_end = tp->snd_nxt;
	}
	s->lost += ctx->args[1];
}

/* is_new_congestion reports whether a retransmission or mark is due to current congestion: it is
 * outside of a recovery, or in the first round trip of one.
 *
 * A lost burst of thousands of packets is retransmitted for seconds, at a reduced rate. Those
 * retransmissions do not show the current state of the path. With 6 MB lost at 1 Gbit/s, and
 * each of those packets counted as a loss, five BBR connections stayed at 45 Mbit/s until the end
 * of the measurement. A round trip that includes a queue is several steps of the control law.
 * With the losses of four round trips counted, five Reno connections at 20 Mbit/s and 100 ms had
 * 0.8 Mbit/s together, and 7.2 in the mean of 15 s. With those of one round trip they have 12 to
 * 18.
 *
 * A receiver repeats a mark until it receives CWR, which is sent with new data only (RFC 3168,
 * 6.1.2), and no new data is sent during retransmission. */
static __always_inline int is_new_congestion(struct tcp_sock *tp, struct slot *s, __u64 now)
{
	if (!s->recovery_ns || s->recovery != tp->high_seq) {
		s->recovery_ns = now;
		s->recovery = tp->high_seq;
	}
	return !in_recovery(tp) || in_first_round(s, now);
}

/* count_marks counts all marks since the last callback as one event. */
static __always_inline void count_marks(struct tcp_sock *tp, struct slot *s, int is_new)
{
	if (tp->delivered_ce == s->delivered_ce)
		return;
	s->delivered_ce = tp->delivered_ce;
	if (is_new)
		s->marked++;
}

/* on_callback updates the slot of a connection and applies its cap. */
static __always_inline void on_callback(struct bpf_sock_ops *ctx)
{
	int is_new;
	__u64 now = bpf_ktime_get_ns();
	struct bpf_sock *sk = ctx->sk;
	struct tcp_sock *tp;
	struct held *h;
	struct slot *s;

	if (!sk)
		return;
	h = bpf_sk_storage_get(&connections, sk, 0, 0);
	if (!h)
		return;
	s = slot_of(h);
	if (!s || (s->set != set_of && s->set != NO_SET)) /* the program of its own set handles it */
		return;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return;
	s->count++;
	barrier();
	if (ctx->op != BPF_SOCK_OPS_RTT_CB)
		s->resent_ns = now;
	read_state(ctx, tp, s, now);
	is_new = is_new_congestion(tp, s, now);
	s->reno = is_reno(tp);
	if (ctx->op == BPF_SOCK_OPS_RETRANS_CB)
		count_lost(ctx, tp, s, now);
	if (ctx->op == BPF_SOCK_OPS_RTO_CB)
		s->timeouts++;
	else if (ctx->op == BPF_SOCK_OPS_RETRANS_CB && is_new)
		s->resent++;
	count_marks(tp, s, is_new);
	apply_cap(ctx, h, tp, s, now);
	barrier();
	s->count++;
}

SEC("sockops")
int headgate_collective(struct bpf_sock_ops *ctx)
{
	switch (ctx->op) {
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		join(ctx, 0);
		break;
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		join(ctx, 1);
		break;
	case BPF_SOCK_OPS_RTT_CB:
	case BPF_SOCK_OPS_RTO_CB:
	case BPF_SOCK_OPS_RETRANS_CB:
		on_callback(ctx);
		break;
	case BPF_SOCK_OPS_STATE_CB:
		if (ctx->args[1] == TCP_CLOSE)
			release(ctx);
		break;
	}
	return 1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
