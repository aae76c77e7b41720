/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* One class for every client of a group (each: in a configuration). A client is a prefix of
 * the source or destination address. All packets without an address are one client.
 *
 * The classes ("places") are created with the group, all alike, so that no class has to be
 * created when a client appears. A hash map has the place of each client. A new client takes a
 * place in which no packet arrived for CLIENT_IDLE_NS. The search is that of the CLOCK
 * algorithm: a hand moves around the group's places, and one packet examines at most
 * CLIENT_LOOKS of them. If all places are busy, a hash of the client selects a place that it
 * shares with the owner, until a place is free.
 *
 * The flow cache has the place (class) of a flow. The owner of a place changes, so that the
 * client of each packet is compared with the owner.
 * docs/decisions/0029-one-group-per-client.md
 */
#ifndef HEADGATE_CLIENT_H
#define HEADGATE_CLIENT_H

#include "headgate.h"
#include "cache.h"
#include "parse.h"

#define FIRST_CLIENT 0x4000 /* class minor of the first place; firstClient in shaper/classifier/clients.go */
#define CLIENT_IDLE_NS (4 * 1000 * 1000 * 1000LL) /* ClientIdle in group/each.go */
#define CLIENT_STEP_NS (64 * 1000 * 1000LL) /* last_ns of a busy place is updated when it is older than this, to have few writes */
#define CLIENT_LOOKS 32 /* the maximum number of places that one packet examines */
#define CLIENT_REST_NS (100 * 1000 * 1000ULL) /* the time without a search after a full turn without a free place */
#define FAMILY_NONE 0xff

struct client_key {
	__u32 address[4]; /* masked; IPv4 in the last word */
	__u16 group;      /* class minor */
	__u8 family;
	__u8 pad;
};

/* A place. */
struct client {
	__u64 last_ns;  /* time of the owner's last packet, to within CLIENT_STEP_NS; 0: no owner */
	__u64 since_ns; /* time at which the owner took the place */
	__u64 bytes;    /* layer-2 bytes that arrived in the place since then */
	struct client_key key; /* the owner; the loader writes the group */
	__u32 above;           /* the ancestor classes, encoded as STAMP_LEVELS; the loader writes it */
	__u32 pad[4];          /* to a full cache line */
};

/* The definition of a group's clients and its places, which the loader writes, and the state
 * of the search. */
struct client_group {
	__u32 mask4;
	__u32 mask6[4];
	__u32 dst;      /* 1: clients are identified by the destination address, 0: by the source address */
	__u32 first;    /* class minor of the first place */
	__u32 count;    /* number of places; 0: a group without clients */
	__u32 hand;     /* the next place to examine */
	__u32 looked;   /* busy places examined since the last free one */
	__u64 full_until_ns; /* no search until then */
};

const volatile __u8 use_clients;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* the loader sets it by the places */
	__type(key, struct client_key);
	__type(value, __u32); /* class minor of the client's place */
} clients SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, ALIGNED);
	__uint(max_entries, 1); /* the loader sets it by the places */
	__type(key, __u32); /* class minor - FIRST_CLIENT */
	__type(value, struct client);
} client_places SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* by class minor; the loader sets it by the groups */
	__type(key, __u32);
	__type(value, struct client_group);
} client_groups SEC(".maps");

static __always_inline struct client *place_at(__u32 class_minor)
{
	__u32 index = class_minor - FIRST_CLIENT;

	return bpf_map_lookup_elem(&client_places, &index);
}

static __always_inline int same_client(const struct client_key *a, const struct client_key *b)
{
	return !((a->address[0] ^ b->address[0]) | (a->address[1] ^ b->address[1]) | (a->address[2] ^ b->address[2]) |
		 (a->address[3] ^ b->address[3]) | (a->family ^ b->family));
}

/* Sets the address of the client to which a flow belongs. */
static __always_inline void client_of(const struct flow_key *flow, const struct client_group *g, struct client_key *key)
{
	const __u32 *address = g->dst ? flow->dst : flow->src;

	key->family = flow->family;
	if (flow->family == FAMILY_IPV4) {
		key->address[3] = address[3] & g->mask4;
	} else if (flow->family == FAMILY_IPV6) {
		for (int i = 0; i < 4; i++)
			key->address[i] = address[i] & g->mask6[i];
	}
}

/* Assigns a free place of the group to the client, and returns its class minor; 0 if none was
 * found. The CPU whose compare-and-swap of last_ns succeeds gets the place. */
GLOBAL int take_place(const struct client_key *client, __u64 now)
{
	struct client_group *g;
	struct client_key key; /* the verifier of Linux 6.1 requires the key on the stack of the calling function */
	__u32 group;

	if (!client)
		return 0;
	key = *client;
	group = key.group;
	g = bpf_map_lookup_elem(&client_groups, &group);
	if (!g || !g->count || now < g->full_until_ns)
		return 0;
	for (int i = 0; i < CLIENT_LOOKS; i++) {
		__u32 minor = g->first + __sync_fetch_and_add(&g->hand, 1) % g->count;
		struct client *c = place_at(minor);
		struct client_key before;
		__u64 last;

		if (!c)
			return 0;
		last = *(volatile __u64 *)&c->last_ns;
		if (last && (__s64)(now - last) < CLIENT_IDLE_NS)
			continue;
		if (__sync_val_compare_and_swap(&c->last_ns, last, now) != last)
			continue;
		g->looked = 0;
		before = c->key;
		c->key.family = FAMILY_NONE;
		if (last)
			bpf_map_delete_elem(&clients, &before);
		if (bpf_map_update_elem(&clients, &key, &minor, BPF_NOEXIST)) {
			/* Another CPU has assigned a place to the same client. */
			*(volatile __u64 *)&c->last_ns = 0;
			return 0;
		}
		c->since_ns = now;
		c->bytes = 0;
		__builtin_memcpy(c->key.address, key.address, sizeof(c->key.address));
		barrier();
		c->key.family = key.family;
		return minor;
	}
	g->looked += CLIENT_LOOKS;
	if (g->looked >= g->count) {
		g->looked = 0;
		g->full_until_ns = now + CLIENT_REST_NS;
	}
	return 0;
}

/* Returns the class minor of a client's place, and assigns one if the client has none. The
 * flow cache did not have it. */
GLOBAL int find_place(const struct client_key *client, __u64 now)
{
	struct client_group *g;
	struct client_key key;
	__u32 group, *minor;
	__u64 h = cache_seed;
	int taken;

	if (!client)
		return 0;
	key = *client;
	minor = bpf_map_lookup_elem(&clients, &key);
	if (minor)
		return *minor;
	taken = take_place(&key, now);
	if (taken)
		return taken;
	minor = bpf_map_lookup_elem(&clients, &key);
	if (minor)
		return *minor;
	group = key.group;
	g = bpf_map_lookup_elem(&client_groups, &group);
	if (!g || !g->count)
		return 0;
	for (int i = 0; i < 4; i++) {
		h = (h ^ key.address[i]) * 0x9e3779b97f4a7c15ULL;
		h ^= h >> 32;
	}
	return g->first + (__u32)h % g->count;
}

/* Sets the class of a packet in a group with clients to that of its client. The group's class
 * is in p->group_minor. */
static __always_inline void to_client(struct packet *p, struct flow *f)
{
	struct client_key key = {};
	struct client_group *g;
	struct client *c = 0;
	__u32 group = f->class_minor;
	__u64 now;

	if (group >= FIRST_CLIENT) {
		c = place_at(group);
		if (!c)
			return;
		group = c->key.group;
	}
	g = bpf_map_lookup_elem(&client_groups, &group);
	if (!g || !g->count)
		return;
	p->group_minor = group;
	p->above = 0;
	key.group = group;
	client_of(&p->key, g, &key);
	now = bpf_ktime_get_coarse_ns();
	if (!c || !same_client(&c->key, &key)) {
		f->class_minor = find_place(&key, now);
		c = place_at(f->class_minor);
		if (!c)
			return;
	}
	p->above = c->above;
	if (!same_client(&c->key, &key))
		return;
	if ((__s64)(now - c->last_ns) > CLIENT_STEP_NS)
		c->last_ns = now;
}

static __always_inline void count_client(__u32 class_minor, __u32 bytes)
{
	struct client *c;

	if (class_minor < FIRST_CLIENT)
		return;
	c = place_at(class_minor);
	if (c)
		__sync_fetch_and_add(&c->bytes, bytes);
}

#endif
