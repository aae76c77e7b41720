//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* The bwaas seed's bandwidth controller (chapter IV; appendix B, incomingChunk,
 * outgoingChunk and timerBytes*) as a policer on a device's two hooks. It is the
 * implementation of share.Quantum in C: a test sends the same packets through both
 * and compares every verdict and every value. See doc.go.
 *
 * There is no timer. Nothing reads the state between two packets, so that the ends of
 * all quanta since the last packet are processed with the next packet, in closed form
 * for any number of them. A bpf_timer would give the same result at a higher cost: the
 * kernel cancels it when neither a process nor a pin refers to its map, and the first
 * packet of a quantum would have to wait for it.
 */
#include "headgate.h"
#include "classify.h"
#include "ipsec.h"

#define GROUPS 64        /* maxGroups in plan.go */
#define FIRST_MINOR 0x10 /* the class of group 0 */

/* The configuration of one quantum in payload bytes: share.QuantumConfig. */
const volatile __u64 limit_bytes;
const volatile __u64 step_bytes = 1;
const volatile __u64 mark_bytes; /* two MTU */
const volatile __u64 configured_bytes[GROUPS];
const volatile __u64 begin_groups; /* bit i: group i is new or does not exist */
const volatile __u64 quantum_ns = 1;
const volatile __u8 overdraft;

const volatile __u32 drop_action = TC_ACT_SHOT;
const volatile __u8 egress;
const volatile __u8 clock_is_tstamp; /* for tests: skb->tstamp is the clock */

struct quantum_group {
	__u64 actual_bytes;
	__u64 passed_bytes;  /* in this quantum */
	__u64 dropped_bytes; /* in this quantum */
};

/* The state of one direction. It is preserved when the configuration changes, as in the
 * thesis, which keeps the counts of the quantum. */
struct quantum {
	struct bpf_spin_lock lock;
	__u32 generation;   /* of the configuration at the last reset */
	__u32 reset_asked;  /* resets_asked at the last reset */
	__u8 overdrawn;     /* an overdraft was granted in this quantum */
	__u8 barred;        /* no overdraft: the previous quantum was overdrawn */
	__u16 pad;
	__u64 ends_ns;
	__u64 used_bytes;
	__u64 pool_bytes;
	__u64 resets;
	__u64 enforced_groups; /* bit i: packets of group i were dropped in the previous quantum */
	struct quantum_group groups[GROUPS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct quantum);
} quantum SEC(".maps");

/* The number of requests to reset this direction. User space requests a reset when it assigns a
 * connection to a group of the direction. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} resets_asked SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, FIRST_MINOR + GROUPS); /* by class minor */
	__type(key, __u32);
	__type(value, __u64);
} drops SEC(".maps");

/* Processes the ends of all quanta until now (timerBytesSent): the first with the counts of
 * its quantum, and the others, in which nothing was sent, in one step. */
static __always_inline void end_quanta(struct quantum *q, __u64 now)
{
	__u64 idle = (now - q->ends_ns) / quantum_ns, enforced = 0;

	for (int i = 0; i < GROUPS; i++) {
		struct quantum_group *g = &q->groups[i];
		__u64 steps;

		if (g->passed_bytes + step_bytes <= g->actual_bytes) {
			g->actual_bytes -= step_bytes;
			q->pool_bytes += step_bytes;
		}
		enforced |= (__u64)(g->dropped_bytes > 0) << i;
		g->passed_bytes = 0;
		g->dropped_bytes = 0;
		steps = g->actual_bytes / step_bytes;
		if (steps > idle)
			steps = idle;
		g->actual_bytes -= steps * step_bytes;
		q->pool_bytes += steps * step_bytes;
	}
	q->used_bytes = 0;
	q->enforced_groups = idle ? 0 : enforced;
	q->barred = idle ? 0 : q->overdrawn;
	q->overdrawn = 0;
	q->ends_ns += (idle + 1) * quantum_ns;
}

/* Resets the limits of all groups and preserves the counts (resetSendGroupLimits). */
static __always_inline void reset(struct quantum *q)
{
	for (int i = 0; i < GROUPS; i++)
		q->groups[i].actual_bytes = configured_bytes[i];
	q->pool_bytes = 0;
	q->resets++;
}

/* Clears the counts of new groups, which may have the number of a removed group. */
static __always_inline void clear_new_groups(struct quantum *q)
{
	for (int i = 0; i < GROUPS; i++) {
		__u64 keep = !(begin_groups >> i & 1);

		q->groups[i].passed_bytes *= keep;
		q->groups[i].dropped_bytes *= keep;
	}
}

#define DROP 1
#define CE 2

/* Returns the verdict for one packet. No helper may be called while the lock is held. */
static __always_inline int police(struct quantum *q, __u32 group, __u64 payload, __u64 now, __u32 reset_asked)
{
	struct quantum_group *g = &q->groups[group];
	__u64 configured = configured_bytes[group];
	int pass = 0, start_over = 0, verdict;

	bpf_spin_lock(&q->lock);
	if (!q->ends_ns || q->ends_ns > now + quantum_ns)
		q->ends_ns = now + quantum_ns; /* the first packet, or quanta have become shorter */
	if (now >= q->ends_ns)
		end_quanta(q, now);
	if (q->generation != generation || q->reset_asked != reset_asked) {
		int first = !q->generation; /* the first configuration does not count as a reset */

		if (q->generation != generation)
			clear_new_groups(q);
		q->generation = generation;
		q->reset_asked = reset_asked;
		reset(q);
		q->resets -= first;
	}
	if (q->used_bytes + payload >= limit_bytes) {
		start_over = 1;
		if (overdraft && !q->barred && g->passed_bytes + payload <= configured)
			pass = q->overdrawn = 1;
	} else if (g->passed_bytes + payload <= g->actual_bytes) {
		pass = 1;
	} else if (payload <= q->pool_bytes) {
		g->actual_bytes += payload;
		q->pool_bytes -= payload;
		pass = 1;
	} else if (g->actual_bytes < configured) {
		start_over = 1;
		pass = g->passed_bytes + payload <= configured;
	}
	if (start_over)
		reset(q);
	if (pass) {
		g->passed_bytes += payload;
		q->used_bytes += payload;
	} else {
		g->dropped_bytes += payload;
	}
	verdict = pass ? 0 : DROP;
	if (q->used_bytes + mark_bytes >= limit_bytes)
		verdict |= CE;
	bpf_spin_unlock(&q->lock);
	return verdict;
}

#define SCTP_DATA 0   /* chunk type with a header of 16 bytes (DATA_CHUNK_HDR_LEN) */
#define SCTP_IDATA 64 /* chunk type of RFC 8260 with a header of 20 bytes */
#define SCTP_CHUNKS 32

/* Returns the bytes of user data in the DATA chunks of an SCTP packet. Control chunks do not
 * count, because they keep connections alive. */
static __always_inline __u32 sctp_payload(struct __sk_buff *skb, const struct packet *p)
{
	/* The SCTP header is four bytes longer than the eight bytes that parse counts: ports, tag
	 * and checksum. */
	__u32 off = p->headers + 4, end = p->headers + p->payload, sum = 0;

	for (int i = 0; i < SCTP_CHUNKS; i++) {
		struct { __u8 type, flags; __u16 length; } chunk;
		__u32 length;

		if (off + sizeof(chunk) > end || bpf_skb_load_bytes(skb, off, &chunk, sizeof(chunk)))
			return sum;
		length = bpf_ntohs(chunk.length);
		if (length < sizeof(chunk))
			return sum;
		if (chunk.type == SCTP_DATA)
			sum += bytes_between(16, length);
		else if (chunk.type == SCTP_IDATA)
			sum += bytes_between(20, length);
		off += (length + 3) & ~3;
	}
	return sum + bytes_between(off, end);
}

/* Returns the number of bytes of a packet that count: its payload. TCP's SYN, FIN and pure
 * acknowledgements, and SCTP's control chunks, therefore pass uncounted. */
static __always_inline __u32 counted(struct __sk_buff *skb, const struct packet *p)
{
	if (p->key.proto == IPPROTO_SCTP && p->headers && !p->fragment)
		return sctp_payload(skb, p);
	return p->payload;
}

/* The properties of a packet that police and the counters need. */
struct packet_info {
	__u32 class_minor;
	__u32 rule;
	__u32 payload_bytes; /* 0: passes uncounted */
	__u32 wire_bytes;
	__u32 ecn;
};

/* Sets the properties of a packet. This is a global function, so that the verifier verifies it
 * separately, and not once for each path through the loops in police. */
__attribute__((noinline)) int inspect(struct __sk_buff *skb, struct packet_info *q)
{
	struct packet p = {};
	struct flow f = {};

	if (!q)
		return 0;
	examine(skb, &p, &f);
	q->wire_bytes = egress ? skb->wire_len : wire_bytes(skb, &p);
	if (p.control && within_budget(skb, p.control, f.class_minor, q->wire_bytes)) {
		f.rule = RULE_DEFAULT;
		f.class_minor = control_class;
	} else {
		q->payload_bytes = counted(skb, &p);
	}
	q->class_minor = f.class_minor;
	q->rule = f.rule;
	q->ecn = p.ecn;
	if (!egress)
		mark_counted(skb, &p);
	return 0;
}

SEC("tc")
int headgate(struct __sk_buff *skb)
{
	struct packet_info p = {};
	__u32 zero = 0, group, *resets;
	struct quantum *q;
	struct counter *c;
	__u64 now, *dropped;
	int verdict = 0, marked = 0;

	if (!egress && already_counted(skb))
		return TC_ACT_UNSPEC;
	inspect(skb, &p);
	group = p.class_minor - FIRST_MINOR;
	q = bpf_map_lookup_elem(&quantum, &zero);
	if (p.payload_bytes && group < GROUPS && q) {
		resets = bpf_map_lookup_elem(&resets_asked, &zero);
		now = clock_is_tstamp ? skb->tstamp : bpf_ktime_get_ns();
		verdict = police(q, group, p.payload_bytes, now, resets ? *resets : 0);
	}
	if (p.ecn != 1 && p.ecn != 2)
		verdict &= ~CE;
	if (verdict & DROP) {
		/* As in the source of the thesis, a mark counts whether or not the packet passes. */
		c = verdict & CE ? bpf_map_lookup_elem(&counters, &p.class_minor) : NULL;
		if (c)
			c->marks++;
		dropped = bpf_map_lookup_elem(&drops, &p.class_minor);
		if (dropped)
			*dropped += segments(skb);
		count_rule(p.rule);
		return drop_action;
	}
	if (verdict & CE)
		marked = bpf_skb_ecn_set_ce(skb);
	count(skb, p.class_minor, p.rule, p.wire_bytes, marked);
	return TC_ACT_UNSPEC;
}

LICENSE;
