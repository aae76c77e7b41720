/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Budgets of control traffic (control.h). Control traffic within its budget is sent before
 * all other traffic. A packet above the budget goes to the queue of its group, and so obeys
 * the group's ceiling.
 *
 * Each budget is a token bucket, stored as the time at which it will be full again (virtual
 * scheduling algorithm: ITU-T I.371, annex A). A packet passes if the bucket is not empty. It
 * may take more tokens than the bucket has; later packets wait until that debt is repaid.
 *
 * A packet first uses the budget that is reserved for its group out of the guaranteed rate of
 * the control class. If that bucket is empty, the packet uses the group's own budget, which is a
 * part of the group's ceiling, if the budgets of all groups above it and of the limit have
 * tokens, too. Of control traffic without a connection (ARP, neighbour discovery, DHCP and the
 * like), one sender may use only a part of the budget.
 * docs/decisions/0024-control-traffic.md
 */
#ifndef HEADGATE_BUDGET_H
#define HEADGATE_BUDGET_H

#include "headgate.h"
#include "cache.h"
#include "parse.h"

#define BUDGET_NS (2 * 1000 * 1000 * 1000ULL) /* the fill time of a bucket; ControlTime in shaper/classifier/allowance.go */
#define ACK_NS (BUDGET_NS / 4) /* the fill time for acknowledgements, which arrive in bursts of one round-trip time */

/* Divisors of a group's budget, and the fill times of the buckets of these parts. A sender is
 * identified by the ingress device and the source address. All packets of one ingress device
 * have a bucket together (PORT), because a sender can forge addresses. */
#define SENDER_PART 4
#define SENDER_NS (2 * BUDGET_NS)
#define PORT_PART 2
#define PORT_NS (3 * BUDGET_NS / 2)
#define SENDERS 1024

#define LEVELS 4 /* group.MaxDepth levels of groups, and the limit */

/* The rates of a class's budgets for each kind of control traffic. The loader writes them.
 * Byte times are in 1/1024 ns (TIME_SHIFT). */
struct allowance {
	__u64 kept_byte_time[CONTROL_KINDS]; /* at the rate reserved for the class; 0: no reserved rate */
	__u64 most_byte_time[CONTROL_KINDS]; /* at the maximum rate of the class; 0: no control traffic */
	__u32 parent;                        /* minor of the parent class; 0: none */
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
	__u32 acks_wait; /* no acknowledgement is sent first until the bucket is full */
	__u32 acks_over; /* recent acknowledgements above the bucket minus those within it */
};

/* The value of acks_over from which on acks_wait is set. */
#define ACKS_OVER 32

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 64); /* the same as for allowances */
	__type(key, __u32);
	__type(value, struct budget);
} budgets SEC(".maps");

/* The times at which the buckets of senders will be full, by a hash of sender and class. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SENDERS);
	__type(key, __u32);
	__type(value, __u64);
} senders SEC(".maps");

/* Bounds the kind for use as an index. The verifier of Linux 6.1 loses the bounds of a number
 * when the compiler spills it to the stack. */
static __always_inline __u64 index_of(__u64 kind)
{
	asm volatile("%0 &= 3" : "+r"(kind));
	return kind;
}

static __always_inline int has_tokens(const __u64 *full_ns, __u64 now, __u64 depth_ns)
{
	return *(const volatile __u64 *)full_ns < now + depth_ns;
}

/* Takes tokens for cost_ns from a bucket. Several CPUs may do so at once; the bucket then goes
 * into debt by the excess. */
static __always_inline void charge(__u64 *full_ns, __u64 now, __u64 cost_ns)
{
	__u64 full = *(volatile __u64 *)full_ns;

	if (full < now)
		__sync_val_compare_and_swap(full_ns, full, now);
	__sync_fetch_and_add(full_ns, cost_ns);
}

/* Returns the bucket of a sender, or of all senders behind a device if address is 0. */
static __always_inline __u64 *sender_bucket(__u32 class_minor, __u32 ifindex, __u64 address)
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

/* Charges the buckets of a class and of all classes above it. If check is set, it charges
 * only if each of them has tokens, and returns 0 otherwise. */
GLOBAL int charge_levels(__u32 class_minor, __u32 kind, __u64 now, __u32 bytes, int check)
{
	__u32 minor = class_minor;

	for (int i = 0; check && i < LEVELS && minor; i++) {
		struct allowance *a = bpf_map_lookup_elem(&allowances, &minor);
		struct budget *b = bpf_map_lookup_elem(&budgets, &minor);

		if (!a || !b || !a->most_byte_time[index_of(kind)] || !has_tokens(&b->most_full_ns[index_of(kind)], now, depth(kind)))
			return 0;
		minor = a->parent;
	}
	if (check && minor)
		return 0;
	minor = class_minor;
	for (int i = 0; i < LEVELS && minor; i++) {
		struct allowance *a = bpf_map_lookup_elem(&allowances, &minor);
		struct budget *b = bpf_map_lookup_elem(&budgets, &minor);

		if (!a || !b)
			return 0;
		charge(&b->most_full_ns[index_of(kind)], now, bytes * a->most_byte_time[index_of(kind)] >> TIME_SHIFT);
		minor = a->parent;
	}
	return 1;
}

/* Reports whether no acknowledgement may be sent first until the bucket is full. If some
 * acknowledgements of a connection are sent first and others wait in the group's queue, those
 * that wait are obsolete when they arrive. That does no harm while half or more are sent first,
 * because acknowledgements are cumulative. If fewer are sent first, the data sender sends in
 * bursts. Therefore, with far too many acknowledgements none is sent first for a while, and
 * they keep their order. */
static __always_inline int acks_deferred(struct budget *b, __u64 now)
{
	if (!b->acks_wait)
		return 0;
	if (b->most_full_ns[CONTROL_ACK] > now)
		return 1;
	b->acks_wait = 0;
	return 0;
}

/* Reports whether a control packet of a class is within its budget, and charges the budget if
 * it is. */
GLOBAL int within_budget(struct __sk_buff *skb, __u32 kind, __u32 class_minor, __u32 bytes)
{
	struct allowance *a = bpf_map_lookup_elem(&allowances, &class_minor);
	struct budget *b = bpf_map_lookup_elem(&budgets, &class_minor);
	__u64 *by_sender = 0, *by_device = 0, now, cost, kept_time, address = 0;
	int kept;

	if (!a || !b || kind >= CONTROL_KINDS || !a->most_byte_time[index_of(kind)])
		return 0;
	now = bpf_ktime_get_coarse_ns();
	if (kind == CONTROL_ACK && acks_deferred(b, now))
		return 0;
	cost = bytes * a->most_byte_time[index_of(kind)] >> TIME_SHIFT;
	if (kind == CONTROL_LINK) {
		if (link_header)
			bpf_skb_load_bytes(skb, ETH_ALEN, &address, ETH_ALEN);
		by_sender = sender_bucket(class_minor, skb->ingress_ifindex, address + 1);
		by_device = sender_bucket(class_minor, skb->ingress_ifindex, 0);
		if (!by_sender || !by_device || !has_tokens(by_sender, now, SENDER_NS) || !has_tokens(by_device, now, PORT_NS))
			return 0;
	}
	kept_time = a->kept_byte_time[index_of(kind)];
	kept = kept_time && has_tokens(&b->kept_full_ns[index_of(kind)], now, depth(kind));
	if (!charge_levels(class_minor, kind, now, bytes, !kept)) {
		if (kind == CONTROL_ACK && (__s32)++b->acks_over > ACKS_OVER) {
			b->acks_wait = 1;
			b->acks_over = 0;
		}
		return 0;
	}
	if (kind == CONTROL_ACK && (__s32)b->acks_over > 0)
		b->acks_over--;
	if (kept)
		charge(&b->kept_full_ns[index_of(kind)], now, bytes * kept_time >> TIME_SHIFT);
	if (by_sender && by_device) {
		charge(by_sender, now, cost * SENDER_PART);
		charge(by_device, now, cost * PORT_PART);
	}
	return 1;
}

#endif
