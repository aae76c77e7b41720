/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Which class a packet belongs to: connections assigned at run time first, then
 * the rules in order, then the default.
 *
 * A packet of a known flow costs one lookup in a flow cache (cache.h). A new flow asks the
 * rule table once for each combination of fields that the rules use ("shape"):
 * the fields that a shape leaves open are masked away, and the table holds, for
 * each shape, what is left (tuple space search: Srinivasan, Suri, Varghese,
 * SIGCOMM 1999). The number of rules does not matter, only that of shapes.
 */
#ifndef HEADGATE_CLASSIFY_H
#define HEADGATE_CLASSIFY_H

#include "headgate.h"
#include "cache.h"
#include "parse.h"
#include "budget.h"
#ifdef CLIENTS
#include "client.h"
#endif

/* Makes LLVM describe these types in full. As mere names it would list them in the order of
 * addresses of its own, which depends on the length of the path that this is compiled in
 * (BTFDebug.cpp, FixupDerivedTypes). */
const struct bpf_sock *const volatile bpf_sock_described = 0;
const struct bpf_flow_keys *const volatile bpf_flow_keys_described = 0;

/* Written by the loader before the program is verified; the verifier then knows
 * them and drops what they switch off. */
const volatile __u32 generation;
const volatile __u32 default_class;
const volatile __u32 control_class;
const volatile __u32 shape_count;
const volatile __u8 use_dscp, use_vlan, use_pcp, use_mark, use_cgroup; /* and use_smac, in parse.h */

/* A shape's mask, and the lowest rule in it: shapes are in that order, so the
 * search ends at the first shape that cannot do better. */
struct shape {
	struct rule_key mask;
	__u64 lowest_rule;
};
const volatile struct shape shapes[MAX_SHAPES];

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1); /* the loader sets it by the rules */
	__type(key, struct rule_key);
	__type(value, struct rule);
} rules SEC(".maps");

/* Both orders of a connection's ends; shared by the two directions. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 524288);
	__type(key, struct conn_key);
	__type(value, __u32); /* class minor: out in the lower half, in in the upper; 0 is none */
} assigned SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024); /* the loader sets it by the processors */
	__type(key, struct frag_key);
	__type(value, struct flow);
} fragments SEC(".maps");

/* The cgroups that rules name, and whether one is a rule's. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1); /* the loader sets it by the rules */
	__type(key, __u64);
	__type(value, __u64);
} cgroups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct control);
} control SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 64); /* by class minor; the loader sets it by the groups */
	__type(key, __u32);
	__type(value, struct counter);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1); /* by rule; the loader sets it */
	__type(key, __u32);
	__type(value, __u64);
} rule_hits SEC(".maps");

/* Which half of an assignment is this direction's. */
const volatile __u32 assign_shift;

#define MAX_CGROUP_DEPTH 16

/* Of a rule's key as words of eight bytes, of which these are not the packet's as they are. */
#define CGROUP_WORD (offsetof(struct flow_key, cgroup) / 8)
#define SMAC_WORD (offsetof(struct rule_key, smac) / 8)

/* The nearest cgroup, from the socket's own upwards, that a rule names. */
static __always_inline __u64 named_cgroup(struct __sk_buff *skb)
{
	__u64 found = 0;

	for (int level = 1; level < MAX_CGROUP_DEPTH; level++) {
		__u64 id = bpf_skb_ancestor_cgroup_id(skb, level);

		if (!id)
			break;
		if (bpf_map_lookup_elem(&cgroups, &id))
			found = id;
	}
	return found;
}

GLOBAL int search_rules(struct __sk_buff *skb, const struct packet *p, struct flow *f)
{
	const __u64 *k = (const __u64 *)&p->key;
	struct rule_key masked;
	__u64 *m = (__u64 *)&masked, cgroup = 0;

	if (!p || !f)
		return 0;
	f->rule = RULE_DEFAULT;
	f->class_minor = default_class;
	if (use_cgroup)
		cgroup = named_cgroup(skb);
	for (__u32 i = 0; i < MAX_SHAPES; i++) {
		const volatile __u64 *mask = (const volatile __u64 *)&shapes[i].mask;
		struct rule *r;

		if (i >= shape_count || shapes[i].lowest_rule > f->rule)
			break;
		for (unsigned int j = 0; j < CGROUP_WORD; j++)
			m[j] = k[j] & mask[j];
		m[CGROUP_WORD] = cgroup & mask[CGROUP_WORD];
		m[SMAC_WORD] = p->smac & mask[SMAC_WORD];
		masked.flow.shape = i;
		r = bpf_map_lookup_elem(&rules, &masked);
		if (r && r->index < f->rule) {
			f->rule = r->index;
			f->class_minor = r->class_minor;
		}
	}
	return 0;
}

/* True if the connection is assigned to a class of this direction. */
static __always_inline int search_assigned(const struct flow_key *key, struct flow *f)
{
	struct conn_key c = {};
	__u32 *classes, minor;

	__builtin_memcpy(c.src, key->src, sizeof(c.src));
	__builtin_memcpy(c.dst, key->dst, sizeof(c.dst));
	c.sport = key->sport;
	c.dport = key->dport;
	c.proto = key->proto;
	c.family = key->family;
	classes = bpf_map_lookup_elem(&assigned, &c);
	minor = classes ? (*classes >> assign_shift) & 0xffff : 0;
	if (!minor)
		return 0;
	f->rule = RULE_ASSIGNED;
	f->class_minor = minor;
	return 1;
}

static __always_inline void datagram_of(const struct packet *p, struct frag_key *key)
{
	__builtin_memcpy(key->src, p->key.src, sizeof(key->src));
	__builtin_memcpy(key->dst, p->key.dst, sizeof(key->dst));
	key->id = p->frag_id;
	key->proto = p->part_of;
	key->family = p->key.family;
}

/* Where the first part of a packet's datagram went. */
GLOBAL int find_first(const struct packet *p, struct flow *f)
{
	struct frag_key key = {};
	struct flow *first;

	if (!p || !f)
		return 0;
	datagram_of(p, &key);
	first = bpf_map_lookup_elem(&fragments, &key);
	if (!first || first->generation != generation)
		return 0;
	*f = *first;
	return 1;
}

GLOBAL int keep_first(const struct packet *p, const struct flow *f)
{
	struct frag_key key = {};
	struct flow kept;

	if (!p || !f)
		return 0;
	datagram_of(p, &key);
	kept = *f; /* Linux 6.1 wants it on the stack */
	bpf_map_update_elem(&fragments, &key, &kept, BPF_ANY);
	return 0;
}

static __always_inline void classify(struct __sk_buff *skb, struct packet *p, struct flow *out)
{
	__u32 zero = 0, epoch;
	struct control *now = bpf_map_lookup_elem(&control, &zero);
	struct cache_place at;
	__u32 known = 0;

	if (!use_dscp)
		p->key.dscp &= HAS_PORTS;
	p->key.vlan_host &= (use_vlan ? VLAN_ID : 0) | (use_pcp ? VLAN_TAGGED | VLAN_PCP : 0);
	if (use_mark)
		p->key.mark = skb->mark;
	if (use_cgroup)
		p->key.cgroup = bpf_skb_cgroup_id(skb);
	if (p->later && find_first(p, out)) {
#ifdef CLIENTS
		if (use_clients)
			to_client(p, out);
#endif
		return;
	}
	epoch = cache_epoch(now ? now->assign_epoch : 0);
	at = cache_place(&p->key, p->smac);
	if (cache_find(at, &p->key, p->smac, epoch, out))
		known = out->class_minor;
	else if (!search_assigned(&p->key, out))
		search_rules(skb, p, out);
#ifdef CLIENTS
	if (use_clients)
		to_client(p, out);
#endif
	if (out->class_minor != known)
		cache_put(at, &p->key, p->smac, epoch, out);
	out->generation = generation;
	if (p->fragment && !p->later)
		keep_first(p, out);
}

/* Parses and classifies. */
GLOBAL int parse_and_classify(struct __sk_buff *skb, struct packet *p, struct flow *out)
{
	if (!p || !out)
		return 0;
	parse(skb, p);
	if (!p->cut || p->pulled)
		classify(skb, p, out);
	return 0;
}

/* Says what a packet is, and what class it belongs to. Headers nearly always lie in the
 * linear part of a packet; to pull more into it copies the packet's head, which took 14 of
 * 100 parts of one connection's throughput, so that is done only after one was found cut. */
static __always_inline void examine(struct __sk_buff *skb, struct packet *p, struct flow *out)
{
	parse_and_classify(skb, p, out);
	if (p->cut) {
		__builtin_memset(p, 0, sizeof(*p));
		p->pulled = 1;
		bpf_skb_pull_data(skb, skb->len < HEADROOM ? skb->len : HEADROOM);
		parse_and_classify(skb, p, out);
	}
}

/* Frames that the packet will be on the wire. */
static __always_inline __u32 segments(const struct __sk_buff *skb)
{
	return skb->gso_segs ? skb->gso_segs : 1;
}

static __always_inline void count_rule(__u32 rule)
{
	__u64 *hits = bpf_map_lookup_elem(&rule_hits, &rule);

	if (hits)
		(*hits)++;
}

/* Counts the packet for its class and rule. */
static __always_inline void count(const struct __sk_buff *skb, __u32 class_minor, __u32 rule, __u32 bytes, int marked)
{
	struct counter *c = bpf_map_lookup_elem(&counters, &class_minor);

	if (c) {
		c->packets += segments(skb);
		c->bytes += bytes;
		c->marks += marked;
	}
	count_rule(rule);
}

#endif
