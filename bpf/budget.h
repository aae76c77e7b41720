/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* How much control traffic (control.h) goes ahead of everything else. What is
 * beyond goes where its group's other packets go, and so obeys the group's ceiling.
 *
 * Each budget is a bucket, kept as the time at which it is full again (a virtual
 * scheduling algorithm: ITU-T I.371, annex A). A packet needs a bucket that is not
 * empty, and may take more than is in it, which later ones wait for.
 *
 * A packet passes by what is kept for its group, out of what the control class is
 * sure of; or else by a part of the group's ceiling, if those of the groups above
 * and of the limit have something left, too. Of what no connection stands behind
 * (ARP, neighbour discovery, DHCP and the like) one sender has a part only.
 * docs/decisions/0024-control-traffic.md
 */
#ifndef HEADGATE_BUDGET_H
#define HEADGATE_BUDGET_H

#include "headgate.h"
#include "cache.h"
#include "parse.h"

#define BUDGET_NS (2 * 1000 * 1000 * 1000ULL) /* how long a bucket takes to fill; ControlTime in shaper/classifier/allowance.go */
#define ACK_NS (BUDGET_NS / 4) /* and that of acknowledgements, which come in bursts of a round trip */

/* Parts of a group's rate, and how long theirs take to fill: one sender, by the
 * device that its packets came from and its address, and all that came from a
 * device, which can forge addresses. */
#define SENDER_PART 4
#define SENDER_NS (2 * BUDGET_NS)
#define PORT_PART 2
#define PORT_NS (3 * BUDGET_NS / 2)
#define SENDERS 1024

#define LEVELS 4 /* group.MaxDepth, and the limit */

/* Of each kind, by class; the loader writes it. Times of one byte are in 1/1024 ns
 * (TIME_SHIFT). */
struct allowance {
	__u64 kept_byte_time[CONTROL_KINDS]; /* at what is kept for the class; 0: nothing */
	__u64 most_byte_time[CONTROL_KINDS]; /* at the most that it gets; 0: nothing */
	__u32 parent;                        /* minor of the class above; 0: none */
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 64); /* by class minor; the loader sets it by the groups */
	__type(key, __u32);
	__type(value, struct allowance);
} allowances SEC(".maps");

struct budget {
	__u64 kept_full_ns[CONTROL_KINDS];
	__u64 most_full_ns[CONTROL_KINDS];
	__u32 acks_wait; /* until the bucket is full: there were far too many */
	__u32 acks_over; /* those beyond the bucket, less those within it, lately */
};

/* So many acknowledgements beyond the bucket, less those within it, are far too many. */
#define ACKS_OVER 32

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 64); /* as allowances */
	__type(key, __u32);
	__type(value, struct budget);
} budgets SEC(".maps");

/* When the buckets of senders are full, by a hash of sender and class. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SENDERS);
	__type(key, __u32);
	__type(value, __u64);
} senders SEC(".maps");

/* The kind as an index: Linux 6.1 no longer knows the bounds of a number that the
 * compiler has put on the stack meanwhile. */
static __always_inline __u64 index_of(__u64 kind)
{
	asm volatile("%0 &= 3" : "+r"(kind));
	return kind;
}

static __always_inline int has_some(const __u64 *full_ns, __u64 now, __u64 depth_ns)
{
	return *(const volatile __u64 *)full_ns < now + depth_ns;
}

/* Several processors may take from one bucket: then it owes what was too much. */
static __always_inline void take(__u64 *full_ns, __u64 now, __u64 cost_ns)
{
	__u64 full = *(volatile __u64 *)full_ns;

	if (full < now)
		__sync_val_compare_and_swap(full_ns, full, now);
	__sync_fetch_and_add(full_ns, cost_ns);
}

/* The bucket of a sender, or of all senders behind a device if address is 0. */
static __always_inline __u64 *sender(__u32 class_minor, __u32 ifindex, __u64 address)
{
	__u64 h = cache_seed ^ ((__u64)ifindex << 32 | class_minor);
	__u32 index;

	h *= 0x9e3779b97f4a7c15ULL;
	h = (h ^ h >> 32 ^ address) * 0x9e3779b97f4a7c15ULL;
	index = (h ^ h >> 32) & (SENDERS - 1);
	return bpf_map_lookup_elem(&senders, &index);
}

static __always_inline __u64 depth(__u32 kind)
{
	return kind == CONTROL_ACK ? ACK_NS : BUDGET_NS;
}

/* Takes from a class and all levels above it; if asked to, only if each has something left. */
GLOBAL int take_levels(__u32 class_minor, __u32 kind, __u64 now, __u32 bytes, int ask)
{
	__u32 minor = class_minor;

	for (int i = 0; ask && i < LEVELS && minor; i++) {
		struct allowance *a = bpf_map_lookup_elem(&allowances, &minor);
		struct budget *b = bpf_map_lookup_elem(&budgets, &minor);

		if (!a || !b || !a->most_byte_time[index_of(kind)] || !has_some(&b->most_full_ns[index_of(kind)], now, depth(kind)))
			return 0;
		minor = a->parent;
	}
	if (ask && minor)
		return 0;
	minor = class_minor;
	for (int i = 0; i < LEVELS && minor; i++) {
		struct allowance *a = bpf_map_lookup_elem(&allowances, &minor);
		struct budget *b = bpf_map_lookup_elem(&budgets, &minor);

		if (!a || !b)
			return 0;
		take(&b->most_full_ns[index_of(kind)], now, bytes * a->most_byte_time[index_of(kind)] >> TIME_SHIFT);
		minor = a->parent;
	}
	return 1;
}

/* Whether acknowledgements have to wait until their bucket is full. If some of a
 * connection's go ahead and others wait in the group's queue, those that wait come
 * too late to say anything. Where half or more go ahead that does no harm: each stands
 * for all before it. Fewer let their sender send in bursts, so that of far too many none
 * go ahead for a while, and the rest keep their order. */
static __always_inline int acks_wait(struct budget *b, __u64 now)
{
	if (!b->acks_wait)
		return 0;
	if (b->most_full_ns[CONTROL_ACK] > now)
		return 1;
	b->acks_wait = 0;
	return 0;
}

/* Whether a control packet of a class is within its budget, and so goes ahead; what
 * it takes is then gone. */
GLOBAL int goes_ahead(struct __sk_buff *skb, __u32 kind, __u32 class_minor, __u32 bytes)
{
	struct allowance *a = bpf_map_lookup_elem(&allowances, &class_minor);
	struct budget *b = bpf_map_lookup_elem(&budgets, &class_minor);
	__u64 *one = 0, *port = 0, now, cost, kept_time, address = 0;
	int kept;

	if (!a || !b || kind >= CONTROL_KINDS || !a->most_byte_time[index_of(kind)])
		return 0;
	now = bpf_ktime_get_coarse_ns();
	if (kind == CONTROL_ACK && acks_wait(b, now))
		return 0;
	cost = bytes * a->most_byte_time[index_of(kind)] >> TIME_SHIFT;
	if (kind == CONTROL_LINK) {
		if (link_header)
			bpf_skb_load_bytes(skb, ETH_ALEN, &address, ETH_ALEN);
		one = sender(class_minor, skb->ingress_ifindex, address + 1);
		port = sender(class_minor, skb->ingress_ifindex, 0);
		if (!one || !port || !has_some(one, now, SENDER_NS) || !has_some(port, now, PORT_NS))
			return 0;
	}
	kept_time = a->kept_byte_time[index_of(kind)];
	kept = kept_time && has_some(&b->kept_full_ns[index_of(kind)], now, depth(kind));
	if (!take_levels(class_minor, kind, now, bytes, !kept)) {
		if (kind == CONTROL_ACK && (__s32)++b->acks_over > ACKS_OVER) {
			b->acks_wait = 1;
			b->acks_over = 0;
		}
		return 0;
	}
	if (kind == CONTROL_ACK && (__s32)b->acks_over > 0)
		b->acks_over--;
	if (kept)
		take(&b->kept_full_ns[index_of(kind)], now, bytes * kept_time >> TIME_SHIFT);
	if (one && port) {
		take(one, now, cost * SENDER_PART);
		take(port, now, cost * PORT_PART);
	}
	return 1;
}

#endif
