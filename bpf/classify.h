/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Classification: which class a packet belongs to. Connections assigned at run time have
 * precedence over the rules, which are in order, and the rules over the default class.
 *
 * A packet of a known flow costs one lookup in the flow cache (cache.h). For a new flow the
 * rule table is looked up once for each combination of fields that the rules use ("shape").
 * The mask of the shape clears all other fields of the key, and the table has the masked keys
 * of the shape's rules (tuple space search: Srinivasan, Suri, Varghese, SIGCOMM 1999). The
 * cost depends on the number of shapes and not on that of rules.
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

/* These variables make LLVM emit the full BTF of their types. LLVM emits forward declarations
 * in the order of pointer values, which depends on the length of the path of the source
 * (BTFDebug.cpp, FixupDerivedTypes). */
const struct bpf_sock *const volatile bpf_sock_described = 0;
const struct bpf_flow_keys *const volatile bpf_flow_keys_described = 0;

/* The loader sets these constants before the program is verified. The verifier then treats the
 * code that they disable as dead code and removes it. */
const volatile __u32 generation;
const volatile __u32 default_class;
const volatile __u32 control_class;
const volatile __u32 shape_count;
const volatile __u8 use_dscp, use_vlan, use_pcp, use_mark, use_cgroup; /* and use_smac, in parse.h */

/* The mask of a shape, and the lowest index of its rules. Shapes are sorted by that index, so
 * that the search ends at the first shape that cannot have a rule of higher precedence. */
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

/* The assigned connections. Each has two keys, one for each order of its endpoints. The two
 * directions share the map. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 524288);
	__type(key, struct conn_key);
	__type(value, __u32); /* class minors: egress in the lower half, ingress in the upper; 0: none */
} assigned SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024); /* the loader sets it by the number of CPUs */
	__type(key, struct frag_key);
	__type(value, struct flow);
} fragments SEC(".maps");

/* The IDs of the cgroups that rules match. */
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

/* The position of this direction's class minor in a value of assigned, in bits. */
const volatile __u32 assign_shift;

#define MAX_CGROUP_DEPTH 16

/* Indexes of the words of eight bytes in struct rule_key that are not copied from struct
 * flow_key of the packet. */
#define CGROUP_WORD (offsetof(struct flow_key, cgroup) / 8)
#define SMAC_WORD (offsetof(struct rule_key, smac) / 8)

/* Returns the ID of the nearest cgroup that a rule matches: the cgroup of the socket, or else
 * its closest ancestor; 0 if there is none. */
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

/* Sets the flow's rule and class from the rule table. */
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

/* Sets the flow's class and returns 1 if the connection is assigned to a class of this
 * direction. */
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

/* Sets the key of the datagram of which the packet is a fragment. */
static __always_inline void datagram_of(const struct packet *p, struct frag_key *key)
{
	__builtin_memcpy(key->src, p->key.src, sizeof(key->src));
	__builtin_memcpy(key->dst, p->key.dst, sizeof(key->dst));
	key->id = p->frag_id;
	key->proto = p->frag_proto;
	key->family = p->key.family;
}

/* Sets the flow of a later fragment to that of the first fragment of its datagram. */
GLOBAL int find_first_fragment(const struct packet *p, struct flow *f)
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

/* Stores the flow of a first fragment for the later fragments. */
GLOBAL int store_first_fragment(const struct packet *p, const struct flow *f)
{
	struct frag_key key = {};
	struct flow kept;

	if (!p || !f)
		return 0;
	datagram_of(p, &key);
	kept = *f; /* the verifier of Linux 6.1 requires a value on the stack */
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
	if (p->later_fragment && find_first_fragment(p, out)) {
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
	if (p->fragment && !p->later_fragment)
		store_first_fragment(p, out);
}

/* Parses and classifies. */
GLOBAL int parse_and_classify(struct __sk_buff *skb, struct packet *p, struct flow *out)
{
	if (!p || !out)
		return 0;
	parse(skb, p);
	if (!p->truncated || p->pulled)
		classify(skb, p, out);
	return 0;
}

/* Parses and classifies a packet. The headers are nearly always in the linear part of the
 * sk_buff. Pulling more data into the linear part copies the packet's head, which took 14 % of
 * one connection's throughput, so that this is done only after a header was found truncated. */
static __always_inline void examine(struct __sk_buff *skb, struct packet *p, struct flow *out)
{
	parse_and_classify(skb, p, out);
	if (p->truncated) {
		__builtin_memset(p, 0, sizeof(*p));
		p->pulled = 1;
		bpf_skb_pull_data(skb, skb->len < HEADROOM ? skb->len : HEADROOM);
		parse_and_classify(skb, p, out);
	}
}

/* Returns the number of frames that the packet is on the wire. */
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
