//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Reads the TCP connections of one set once a round trip, and caps them.
 *
 * Each connection has a slot in an array that the daemon has mapped: the kernel's part
 * is written here alone, one socket at a time under its lock, with a count that is odd
 * meanwhile; the daemon's part is the cap. A cap is a lease: it holds until a time, and
 * the connection's first callback after it lifts it, daemon or no daemon. */
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
#define NO_SET 0xffffffffU /* any program lifts its cap */
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
	__u32 high_seq;        /* what was sent when the newest recovery began */
	__u64 tcp_mstamp;      /* now, in us, as it processes a packet */
	__u64 first_tx_mstamp; /* when the newest packet of those acknowledged was sent */
	__u32 delivered_ce;    /* packets whose acknowledgements bore a mark */
	__u8 chrono_type : 2;  /* what has kept it from sending: enum tcp_chrono */
};
#pragma clang attribute pop

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 64); /* the loader sets it */
	__type(key, __u32);
	__type(value, struct slot);
} slots SEC(".maps");

/* Slots that no connection has. The daemon fills it. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 64); /* the loader sets it */
	__type(value, __u32);
} unused SEC(".maps");

/* What belongs to a socket and ends with it. */
struct held {
	__u32 slot;
	__u32 version;  /* of the cap that is in force */
	__u32 pace;     /* the application's own, before ours */
	__u8 paced, clamped;
	__u8 joined;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct held);
} connections SEC(".maps");

/* Connections that found no slot; open ones whose callbacks this kernel does not switch on; and
 * by which layout of a slot all this is. */
enum { REFUSED, DEAF, LAYOUT, COUNTS };

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

const volatile __u32 set_of = 0; /* which set this program's connections are in */

/* The cgroup of the set's processes; id 0 is none, so that nobody joins by himself. The
 * daemon follows a service that is started again. The program itself is attached to the
 * root: what a cgroup holds goes with it, and its open connections would keep their caps. */
volatile __u64 cgroup_id = 0;
volatile __u32 cgroup_level = 0;

/* below tells whether a socket is in the set's cgroup. */
static __always_inline int below(struct tcp_sock *tp)
{
	struct sock *sk = (struct sock *)tp;
	struct cgroup *of = BPF_CORE_READ(sk, sk_cgrp_data.cgroup), *up = 0;
	__u32 level = cgroup_level;

	if (!cgroup_id || !of || level > (__u32)BPF_CORE_READ(of, level))
		return 0;
	bpf_probe_read_kernel(&up, sizeof(up), (void *)of + bpf_core_field_offset(of->ancestors) + level * sizeof(up));
	return up && BPF_CORE_READ(up, kn, id) == cgroup_id;
}

/* A connection is in the set if one of these is true of it, or if there are none.
 * Addresses are of IPv6, those of IPv4 mapped into it, in the network's byte order. */
const volatile struct rule rules[MAX_RULES] = {};
const volatile __u32 rules_n = 0;

static __always_inline int within(const volatile __u32 *net, const volatile __u32 *mask, const __u32 *addr)
{
	for (int i = 0; i < 4; i++)
		if ((addr[i] & mask[i]) != net[i])
			return 0;
	return 1;
}

static __always_inline int belongs(const __u32 *local, const __u32 *remote, __u32 lport, __u32 rport)
{
	if (!rules_n)
		return 1;
	for (int i = 0; i < MAX_RULES; i++) {
		const volatile struct rule *r = &rules[i];

		if (i >= rules_n)
			break;
		if (lport < r->local_from || lport > r->local_to || rport < r->remote_from || rport > r->remote_to)
			continue;
		if (within(r->local, r->local_mask, local) && within(r->remote, r->remote_mask, remote))
			return 1;
	}
	return 0;
}

/* nearer tells whether this set's cgroup is below that of the set which has a connection, so
 * that it is this one's: the set of the nearest cgroup has it, in whatever order they come. */
static __always_inline int nearer(struct slot *s)
{
	return s->set == NO_SET || (!s->asked && cgroup_level > s->level);
}

static __always_inline void take(struct slot *s)
{
	s->set = set_of;
	s->level = cgroup_level;
}

static __always_inline struct slot *slot_of(struct held *h)
{
	__u32 i = h->slot;

	return bpf_map_lookup_elem(&slots, &i);
}

#define CALLBACKS (BPF_SOCK_OPS_RTT_CB_FLAG | BPF_SOCK_OPS_RETRANS_CB_FLAG | \
	BPF_SOCK_OPS_RTO_CB_FLAG | BPF_SOCK_OPS_STATE_CB_FLAG)

/* ends is who talks to whom; addresses as in a rule. */
struct ends {
	__u32 local[4], remote[4];
	__u32 lport, rport;
	__u32 passive;
};

/* claim gives a connection a slot that nobody has yet; 0 if there is none. */
static __always_inline struct slot *claim(struct held *h, const struct ends *e)
{
	struct slot *s;
	__u32 i;

	if (bpf_map_pop_elem(&unused, &i)) {
		count(REFUSED);
		return 0;
	}
	h->slot = i;
	h->joined = 1;
	s = bpf_map_lookup_elem(&slots, &i);
	if (!s)
		return 0;
	__builtin_memset(s, 0, sizeof(*s));
	s->begun_ns = bpf_ktime_get_ns();
	take(s);
	s->passive = e->passive;
	s->local_port = e->lport;
	s->remote_port = e->rport;
	__builtin_memcpy(s->local, e->local, sizeof(e->local));
	__builtin_memcpy(s->remote, e->remote, sizeof(e->remote));
	return s;
}

/* join takes in a connection as it is made, and asks for its callbacks. */
static __always_inline void join(struct bpf_sock_ops *ctx, __u32 passive)
{
	struct held *h;
	struct slot *s;
	struct bpf_sock *sk = ctx->sk;
	struct tcp_sock *tp;
	struct ends e = {.passive = passive};

	if (!sk)
		return;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp || !below(tp))
		return;
	e.lport = ctx->local_port;
	e.rport = bpf_ntohl(ctx->remote_port);
	e.local[3] = ctx->local_ip4;
	e.remote[3] = ctx->remote_ip4;
	barrier(); /* the compiler may not choose between offsets into ctx */
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
	if (!belongs(e.local, e.remote, e.lport, e.rport))
		return;
	h = bpf_sk_storage_get(&connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!h)
		return;
	if (h->joined) { /* by another set's program, a moment ago */
		s = slot_of(h);
		if (s && nearer(s))
			take(s);
		return;
	}
	s = claim(h, &e);
	if (!s) {
		bpf_sk_storage_delete(&connections, sk);
		return;
	}
	/* Last: the daemon takes a slot with a cookie for one that is used. */
	s->cookie = bpf_get_socket_cookie(ctx);
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | CALLBACKS);
}

/* listen asks for the callbacks of a connection that is open. */
static __always_inline int listen(struct tcp_sock *tp)
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

/* headgate_open takes in the connections that are open already, of the network namespace of
 * whoever reads it. */
SEC("iter/tcp")
int headgate_open(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct tcp_sock *tp;
	struct held *h;
	struct slot *s;
	struct ends e = {};

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
	if (!below(tp) || !belongs(e.local, e.remote, e.lport, e.rport))
		return 0;
	h = bpf_sk_storage_get(&connections, tp, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!h)
		return 0;
	if (h->joined) {
		s = slot_of(h);
		if (s && nearer(s))
			take(s);
		return 0;
	}
	s = claim(h, &e);
	if (!s || listen(tp)) {
		if (s) {
			count(DEAF);
			bpf_map_push_elem(&unused, &h->slot, BPF_ANY);
		}
		bpf_sk_storage_delete(&connections, tp);
		return 0;
	}
	s->cookie = bpf_get_socket_cookie(tp);
	return 0;
}

/* headgate_asked asks for the callbacks of connections whose applications asked to join, and
 * which the daemon has given a slot. */
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
	if (s && s->asked == ASKED_NOW && !listen(tp))
		s->asked = ASKED;
	return 0;
}

/* pace bounds the rate, in bytes a second; 0 gives back what the application had. */
static __always_inline void pace(struct bpf_sock_ops *ctx, struct held *h, __u32 rate)
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

/* steady has a connection go on from the window that it has. Reno keeps nothing that it
 * would forget, CUBIC begins an epoch anew; others do without. */
static __always_inline void steady(struct bpf_sock_ops *ctx)
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

/* clamp bounds the window, in packets; 0 lifts that. */
static __always_inline void clamp(struct bpf_sock_ops *ctx, struct held *h, __u32 packets)
{
	int value = packets ? packets : NO_CLAMP;

	if (!packets && !h->clamped)
		return;
	h->clamped = packets != 0;
	bpf_setsockopt(ctx, SOL_TCP, TCP_BPF_SNDCWND_CLAMP, &value, sizeof(value));
	if (!packets)
		steady(ctx);
}

/* leave gives the slot back. The socket may connect again, so that nothing of a cap stays. */
static __always_inline void leave(struct bpf_sock_ops *ctx)
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
	pace(ctx, h, 0);
	if (h->clamped)
		bpf_setsockopt(ctx, SOL_TCP, TCP_BPF_SNDCWND_CLAMP, &none, sizeof(none));
	i = h->slot;
	s = slot_of(h);
	if (s)
		s->cookie = 0;
	bpf_sk_storage_delete(&connections, sk);
	bpf_map_push_elem(&unused, &i, BPF_ANY);
}

/* obey puts the daemon's cap in force, or lifts it when its lease is over. */
static __always_inline void obey(struct bpf_sock_ops *ctx, struct held *h, struct slot *s, __u64 now)
{
	__u64 until = *(volatile __u64 *)&s->lease_until_ns;
	__u32 version = *(volatile __u32 *)&s->version;

	if (now > until || *(volatile __u64 *)&s->owner != s->cookie) {
		pace(ctx, h, 0);
		clamp(ctx, h, 0);
		h->version = 0;
	} else if (version != h->version) {
		h->version = version;
		pace(ctx, h, *(volatile __u32 *)&s->pace);
		clamp(ctx, h, *(volatile __u32 *)&s->window);
	}
	s->paced = h->paced ? *(volatile __u32 *)&s->pace : 0;
	s->clamped = h->clamped ? *(volatile __u32 *)&s->window : 0;
}

/* What is sent again for nothing, as by Reno after a timeout, is acknowledged by what was sent
 * first: a round trip of 3.7 ms on a path of 22. */
#define DISTRUST_NS 1000000000ULL

static __always_inline __u32 trusted(struct slot *s, __u32 rtt, __u64 now)
{
	if ((__s32)rtt > 0 && (now - s->resent_ns > DISTRUST_NS || rtt >= s->least_us))
		return rtt;
	return s->least_us ? s->least_us : s->srtt_us;
}

/* read takes down what the connection shows. */
static __always_inline void read(struct bpf_sock_ops *ctx, struct tcp_sock *tp, struct slot *s, __u64 now)
{
	s->srtt_us = ctx->srtt_us >> 3;
	if (ctx->op == BPF_SOCK_OPS_RTT_CB) {
		__u32 rtt = ctx->args[0];

		if (!rtt) /* kernels before 6.11 do not say it */
			rtt = s->srtt_us;
		s->rtt_us = trusted(s, rtt, now);
		rtt = s->rtt_us;
		s->rtt_sum_us += rtt;
		s->rtts++;
		s->newest_us = trusted(s, tp->tcp_mstamp - tp->first_tx_mstamp, now);
		if (now - s->resent_ns > DISTRUST_NS && (!s->least_us || s->newest_us < s->least_us))
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
	/* As it last tried to send: what this packet acknowledges makes room. */
	s->receiver_full = BPF_CORE_READ_BITFIELD(tp, chrono_type) == TCP_CHRONO_RWND_LIMITED;
}

/* news tells whether what was sent again, or marked, is congestion of now: in the first round trip
 * of a recovery, or outside of one.
 *
 * A burst of thousands of packets that was lost is sent again for seconds, at a pace that was
 * lowered for it: that says nothing of the path as it is now. With 6 MB lost at 1 Gbit/s, and each
 * of those packets a loss, five BBRs went on at 45 Mbit/s for as long as was looked. A round trip
 * with a queue in it is several of the law's steps: where those of four round trips counted, five
 * Renos of 20 Mbit/s and 100 ms were at 0.8 together, and at 7.2 in the mean of 15 s; with one
 * they have 12 to 18.
 *
 * A receiver repeats a mark until it sees CWR, which is sent with new data alone (RFC 3168, 6.1.2),
 * and there is none while what was lost is sent again. */
static __always_inline int news(struct tcp_sock *tp, struct slot *s, __u64 now)
{
	if (!s->recovery_ns || s->recovery != tp->high_seq) {
		s->recovery_ns = now;
		s->recovery = tp->high_seq;
	}
	return (__s32)(tp->high_seq - tp->snd_una) <= 0 || now - s->recovery_ns < 1000ULL * s->srtt_us;
}

/* mark counts what was marked as one event a reading. */
static __always_inline void mark(struct tcp_sock *tp, struct slot *s, int is_news)
{
	if (tp->delivered_ce == s->delivered_ce)
		return;
	s->delivered_ce = tp->delivered_ce;
	if (is_news)
		s->marked++;
}

static __always_inline void seen(struct bpf_sock_ops *ctx)
{
	int is_news;
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
	if (!s || (s->set != set_of && s->set != NO_SET)) /* the program of its own set does */
		return;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return;
	s->count++;
	barrier();
	if (ctx->op != BPF_SOCK_OPS_RTT_CB)
		s->resent_ns = now;
	read(ctx, tp, s, now);
	is_news = news(tp, s, now);
	if (ctx->op == BPF_SOCK_OPS_RTO_CB)
		s->timeouts++;
	else if (ctx->op == BPF_SOCK_OPS_RETRANS_CB && is_news)
		s->resent++;
	mark(tp, s, is_news);
	obey(ctx, h, s, now);
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
		seen(ctx);
		break;
	case BPF_SOCK_OPS_STATE_CB:
		if (ctx->args[1] == TCP_CLOSE)
			leave(ctx);
		break;
	}
	return 1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
