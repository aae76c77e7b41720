/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The flow cache: the rule and class of a flow, which is identified by every field that any
 * rule matches. A lookup reads one or two cache lines.
 *
 * The cache is a two-way set-associative table in an array, which evicts the entry of a set
 * that was not used recently. The kernel's LRU hash accesses more memory for the same: with
 * 100,000 flows in random order a lookup read a bucket and two cache lines of an entry on three
 * different pages, and the classifier took 740 ns per packet.
 *
 * Entries are valid for one epoch, which changes with every assignment. A program starts with
 * an empty cache, so that no entry survives a change of the rules.
 */
#ifndef HEADGATE_CACHE_H
#define HEADGATE_CACHE_H

#include "headgate.h"
#include "parse.h" /* use_smac */

#define CACHE_WAYS 2 /* cacheWays in shaper/classifier/load.go */
#define CACHE_BUSY 0xffffffffu
#define CACHE_WRITES 0xffu /* the bits of a state that count writes */

struct cached {
	struct flow_key key; /* its shape has the class; its pad is 1 if the entry was used recently */
	__u32 rule;
	__u32 state; /* 0: empty; CACHE_BUSY: being written; else the epoch and, in CACHE_WRITES, a count of writes */
};

struct cache_set {
	struct cached way[CACHE_WAYS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, ALIGNED);
	__uint(max_entries, 2048); /* the loader sets it by the limit, to a power of two */
	__type(key, __u32);
	__type(value, struct cache_set);
} flows SEC(".maps");

/* The source MAC addresses of the same flows. They are in an array of their own because they
 * are compared only if a rule matches source MAC addresses, and because an entry of struct
 * cached fits into one cache line without them. */
struct cache_macs {
	__u64 smac[CACHE_WAYS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* the loader sets it to that of flows if use_smac is set */
	__type(key, __u32);
	__type(value, struct cache_macs);
} flow_macs SEC(".maps");

const volatile __u32 cache_mask = 2047; /* max_entries - 1 */
const volatile __u64 cache_seed = 1;    /* odd and random, set by the loader, so that senders cannot target a set */

#define barrier() asm volatile("" ::: "memory")

/* The position of a flow in the cache. */
struct cache_place {
	struct cache_set *set;
	struct cache_macs *macs; /* only if use_smac is set */
};

static __always_inline struct cache_place cache_place(const struct flow_key *key, __u64 smac)
{
	const __u64 *k = (const __u64 *)key;
	struct cache_place at = {};
	__u64 h = cache_seed;
	__u32 index;

	for (unsigned int i = 0; i < sizeof(*key) / 8; i++) {
		h = (h ^ k[i]) * 0x9e3779b97f4a7c15ULL;
		h ^= h >> 32;
	}
	if (use_smac) {
		h = (h ^ smac) * 0x9e3779b97f4a7c15ULL;
		h ^= h >> 32;
	}
	index = h & cache_mask;
	at.set = bpf_map_lookup_elem(&flows, &index);
	if (use_smac)
		at.macs = bpf_map_lookup_elem(&flow_macs, &index);
	return at;
}

/* Compares two keys without the members in which the cache has the class (shape) and the
 * recent use (pad). */
static __always_inline int same_flow(const struct flow_key *a, const struct flow_key *b)
{
	const __u64 *x = (const __u64 *)a, *y = (const __u64 *)b;
	__u64 differ = (x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3]) | (x[6] ^ y[6]);

	differ |= (x[4] ^ y[4]) & 0x00ffffffffffffffULL; /* ports, proto, family, dscp | pad */
	differ |= (x[5] ^ y[5]) & 0xffffffff0000ffffULL; /* vlan | shape | mark */
	return !differ;
}

/* Returns the epoch bits of a state. They are never 0 and never those of CACHE_BUSY. */
static __always_inline __u32 cache_epoch(__u32 assign_epoch)
{
	return ((assign_epoch & 0x3fffff) | 0x400000) << 8;
}

/* Sets f and returns 1 if the flow is in the cache. An entry that another CPU writes during
 * the read has a different state afterwards, because at least its count of writes differs. */
static __always_inline int cache_find(struct cache_place at, const struct flow_key *key, __u64 smac, __u32 epoch, struct flow *f)
{
	if (!at.set || (use_smac && !at.macs))
		return 0;
	for (int i = 0; i < CACHE_WAYS; i++) {
		struct cached *c = &at.set->way[i];
		__u32 state = *(volatile __u32 *)&c->state;

		if ((state & ~CACHE_WRITES) != epoch)
			continue;
		barrier();
		f->class_minor = c->key.shape;
		f->rule = c->rule;
		if (!same_flow(&c->key, key) || (use_smac && at.macs->smac[i] != smac))
			continue;
		barrier();
		if (*(volatile __u32 *)&c->state != state)
			continue;
		if (!c->key.pad)
			c->key.pad = 1;
		return 1;
	}
	return 0;
}

/* Stores the class and rule of a flow. */
static __always_inline void cache_put(struct cache_place at, const struct flow_key *key, __u64 smac, __u32 epoch, const struct flow *f)
{
	struct cached *c, *other;
	int valid, other_valid, second = 0;
	__u32 old;

	if (!at.set || (use_smac && !at.macs))
		return;
	c = &at.set->way[0];
	other = &at.set->way[1];
	valid = (c->state & ~CACHE_WRITES) == epoch;
	other_valid = (other->state & ~CACHE_WRITES) == epoch;
	if (valid && (!other_valid || (c->key.pad && !other->key.pad))) {
		c = &at.set->way[1];
		other = &at.set->way[0];
		second = 1;
	}
#ifdef CLIENTS
	/* Overwrite the flow's own entry: its client has another place (class) now. */
	if (other_valid && !second && same_flow(&other->key, key) && (!use_smac || at.macs->smac[1] == smac)) {
		c = &at.set->way[1];
		other = &at.set->way[0];
		second = 1;
	} else if (valid && second && same_flow(&at.set->way[0].key, key) && (!use_smac || at.macs->smac[0] == smac)) {
		c = &at.set->way[0];
		other = &at.set->way[1];
		second = 0;
	}
#endif
	other->key.pad = 0;
	old = c->state;
	if (old == CACHE_BUSY || __sync_val_compare_and_swap(&c->state, old, CACHE_BUSY) != old)
		return; /* another CPU is writing the entry */
	c->key = *key;
	c->key.pad = 0;
	c->key.shape = f->class_minor;
	c->rule = f->rule;
	if (use_smac && second)
		at.macs->smac[1] = smac;
	else if (use_smac)
		at.macs->smac[0] = smac;
	__sync_lock_test_and_set(&c->state, epoch | ((old + 1) & CACHE_WRITES));
}

#endif
