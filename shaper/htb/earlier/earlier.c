//go:build ignore
// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* A classifier of a hypothetical other version of Headgate: the names of maps and members are
 * the same, but members are wider, narrower, added, removed or moved. Only tests use it, as the
 * version from which Headgate is upgraded. It never marks a packet. */
#define conn_key conn_key_of_today
#define counter counter_of_today
#define control control_of_today
#define queue queue_of_today
#include "headgate.h"
#undef conn_key
#undef counter
#undef control
#undef queue

struct conn_key {
	__u8 family;
	__u8 proto;
	__u16 dport;
	__u16 sport;
	__u16 zone; /* added; always 0 here */
	__u32 dst[4];
	__u32 src[4];
};

struct counter {
	__u32 marks; /* narrower */
	__u32 pad;
	__u64 bytes;
	__u64 packets;
	__u64 late; /* added */
};

struct control {
	__u64 assign_epoch; /* wider */
	__u64 started_ns;   /* added */
};

struct queue {
	__u32 ifindex;
	__u32 depth;
	__u64 sojourn_ns;
};

#include "classify.h"
#include "ipsec.h"

const volatile __u32 token;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 64);
	__uint(map_flags, BPF_F_INNER_MAP);
	__type(key, __u32);
	__type(value, struct queue);
} queues SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, struct pace);
} paces SEC(".maps");

static const __u32 qdisc_major = 0x4847;
const volatile __u32 redirect_ifindex;
const volatile __u8 bound_wait; /* set by the current loader, and not used here */
const volatile __u32 max_frame_bytes;
const volatile __u8 forwards;
const volatile __s32 pass_verdict = TC_ACT_UNSPEC;

SEC("tc")
int headgate(struct __sk_buff *skb)
{
	struct packet p = {};
	struct flow f = { .rule = RULE_DEFAULT, .class_minor = control_class };
	__u32 bytes;
	struct queue *q;

	parse(skb, &p);
	if (!p.control)
		classify(skb, &p, &f);
	bytes = redirect_ifindex ? wire_bytes(skb, &p) : skb->wire_len;
	skb->priority = qdisc_major << 16 | f.class_minor;
	q = bpf_map_lookup_elem(&queues, &f.class_minor);
	if (q && token && bpf_map_lookup_elem(&paces, &f.class_minor))
		q->depth++;
	/* Count a mark, although no packet is marked: a test checks that the counter is migrated. */
	count(skb, f.class_minor, f.rule, bytes, 1);
	if (redirect_ifindex && already_counted(skb))
		return pass_verdict;
	if (redirect_ifindex && !forwards)
		return bpf_redirect(redirect_ifindex, 0);
	return TC_ACT_UNSPEC;
}

LICENSE;
