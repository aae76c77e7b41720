//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Reads the TCP connections of one cgroup once a round trip, and caps them.
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
#define TCP_CLOSE 7
#define NO_PACE 0xffffffffU
#define NO_CLAMP 0x3fffffff
#define AF_INET6 10

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct tcp_sock {
	__u32 write_seq;
	__u32 snd_nxt;
	__u32 snd_una;
	__u32 snd_wnd;
	__u32 app_limited;
	__u64 tcp_mstamp;      /* now, in us, as it processes a packet */
	__u64 first_tx_mstamp; /* when the newest packet of those acknowledged was sent */
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

/* counts[0]: connections that found no slot. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

const volatile __u32 set_of = 0; /* which set the connections of this cgroup are in */

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

static __always_inline struct slot *slot_of(struct held *h)
{
	__u32 i = h->slot;

	return bpf_map_lookup_elem(&slots, &i);
}

/* join gives a connection a slot, and asks for its callbacks. */
static __always_inline void join(struct bpf_sock_ops *ctx, __u32 passive)
{
	struct held *h;
	struct slot *s;
	__u64 *refused;
	struct bpf_sock *sk = ctx->sk;
	__u32 zero = 0, i;
	__u32 local[4] = {}, remote[4] = {};
	__u32 lport, rport;

	if (!sk)
		return;
	lport = ctx->local_port;
	rport = bpf_ntohl(ctx->remote_port);
	local[3] = ctx->local_ip4;
	remote[3] = ctx->remote_ip4;
	barrier(); /* the compiler may not choose between offsets into ctx */
	if (ctx->family == AF_INET6) {
		local[0] = ctx->local_ip6[0];
		local[1] = ctx->local_ip6[1];
		local[2] = ctx->local_ip6[2];
		local[3] = ctx->local_ip6[3];
		remote[0] = ctx->remote_ip6[0];
		remote[1] = ctx->remote_ip6[1];
		remote[2] = ctx->remote_ip6[2];
		remote[3] = ctx->remote_ip6[3];
	} else {
		local[2] = remote[2] = bpf_htonl(0xffff);
	}
	if (!belongs(local, remote, lport, rport))
		return;
	h = bpf_sk_storage_get(&connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!h || h->joined) /* by the set of a cgroup below this one, whose program comes first */
		return;
	if (bpf_map_pop_elem(&unused, &i)) {
		bpf_sk_storage_delete(&connections, sk);
		refused = bpf_map_lookup_elem(&counts, &zero);
		if (refused)
			__sync_fetch_and_add(refused, 1);
		return;
	}
	h->slot = i;
	h->joined = 1;
	s = bpf_map_lookup_elem(&slots, &i);
	if (!s)
		return;
	__builtin_memset(s, 0, sizeof(*s));
	s->begun_ns = bpf_ktime_get_ns();
	s->set = set_of;
	s->passive = passive;
	s->local_port = lport;
	s->remote_port = rport;
	__builtin_memcpy(s->local, local, sizeof(local));
	__builtin_memcpy(s->remote, remote, sizeof(remote));
	/* Last: the daemon takes a slot with a cookie for one that is used. */
	s->cookie = bpf_get_socket_cookie(ctx);
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_RTT_CB_FLAG |
		BPF_SOCK_OPS_RETRANS_CB_FLAG | BPF_SOCK_OPS_RTO_CB_FLAG | BPF_SOCK_OPS_STATE_CB_FLAG);
}

/* leave gives the slot back. */
static __always_inline void leave(struct bpf_sock_ops *ctx)
{
	struct held *h;
	struct slot *s;
	struct bpf_sock *sk = ctx->sk;
	__u32 i;

	if (!sk)
		return;
	h = bpf_sk_storage_get(&connections, sk, 0, 0);
	if (!h)
		return;
	i = h->slot;
	s = slot_of(h);
	if (s)
		s->cookie = 0;
	bpf_sk_storage_delete(&connections, sk);
	bpf_map_push_elem(&unused, &i, BPF_ANY);
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

/* clamp bounds the window, in packets; 0 lifts that. */
static __always_inline void clamp(struct bpf_sock_ops *ctx, struct held *h, __u32 packets)
{
	int value = packets ? packets : NO_CLAMP;

	if (!packets && !h->clamped)
		return;
	h->clamped = packets != 0;
	bpf_setsockopt(ctx, SOL_TCP, TCP_BPF_SNDCWND_CLAMP, &value, sizeof(value));
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

/* read takes down what the connection shows. */
static __always_inline void read(struct bpf_sock_ops *ctx, struct bpf_sock *sk, struct slot *s, __u64 now)
{
	struct bpf_tcp_sock *t;
	struct tcp_sock *tp;

	if (ctx->op == BPF_SOCK_OPS_RTT_CB) {
		__u32 rtt = ctx->args[0];

		if (!rtt) /* kernels before 6.11 do not say it */
			rtt = ctx->srtt_us >> 3;
		s->rtt_us = rtt;
		s->rtt_sum_us += rtt;
		s->rtts++;
	}
	s->seen_ns = now;
	s->acked = ctx->bytes_acked;
	s->srtt_us = ctx->srtt_us >> 3;
	s->cwnd = ctx->snd_cwnd;
	s->ssthresh = ctx->snd_ssthresh;
	s->mss = ctx->mss_cache;
	s->in_flight = ctx->packets_out;
	s->retransmits = ctx->total_retrans;
	s->segments = ctx->data_segs_out;
	t = bpf_tcp_sock(sk);
	if (t) {
		s->delivered = t->delivered;
		s->marked = t->delivered_ce;
	}
	tp = bpf_skc_to_tcp_sock(sk);
	if (tp) {
		s->backlog = tp->write_seq - tp->snd_nxt;
		s->app_limited = tp->app_limited != 0;
		if (ctx->op == BPF_SOCK_OPS_RTT_CB)
			s->newest_us = tp->tcp_mstamp - tp->first_tx_mstamp;
		s->receiver_full = tp->snd_nxt - tp->snd_una + ctx->mss_cache > tp->snd_wnd;
	}
}

static __always_inline void seen(struct bpf_sock_ops *ctx)
{
	__u64 now = bpf_ktime_get_ns();
	struct bpf_sock *sk = ctx->sk;
	struct held *h;
	struct slot *s;

	if (!sk)
		return;
	h = bpf_sk_storage_get(&connections, sk, 0, 0);
	if (!h)
		return;
	s = slot_of(h);
	if (!s)
		return;
	s->count++;
	barrier();
	read(ctx, sk, s, now);
	if (ctx->op == BPF_SOCK_OPS_RTO_CB)
		s->timeouts++;
	else if (ctx->op == BPF_SOCK_OPS_RETRANS_CB)
		s->resent++;
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
