//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* The HTB engine's classifier: one program for a device's egress, and the same
 * with a redirect to an IFB for its ingress. See doc.go. */
#define CLIENTS
#include "headgate.h"
#include "classify.h"
#include "ipsec.h"
#include "queue.h"

const volatile __u32 redirect_ifindex; /* the IFB; 0 at egress */
const volatile __u8 forwards; /* nftables sends packets of our priority there, and not this program */
const volatile __s32 pass_verdict = TC_ACT_UNSPEC; /* what leaves a packet on its way */
const volatile __u32 drop_class; /* what is sent there is dropped: where each packet is redirected, whatever is said; else 0 */

/* Leaves that split packets drop a frame that is longer than what they pass whole, because
 * TBF splits super-packets only. No frame is longer than this at the MTU for which the leaves
 * were made; 0: no leaf splits. Where a longer one does not fit there is a class for it. */
const volatile __u32 frame_most;
#define LARGE_FRAMES 0x8000 /* shaper/htb/tree.go */

/* The class of a packet whose leaf has this minor. A class that is beside one leaf alone has
 * all its packets from the first large one on: the two together would pass the ceiling. */
static __always_inline __u32 class_for(const struct __sk_buff *skb, const struct packet *p, struct queue *q, __u32 minor)
{
	__u32 frame = skb->gso_size ? skb->gso_size + p->headers : skb->len;
	struct pace *pace;

	if (!frame_most)
		return minor;
	if (q && q->large_frame == frame_most)
		return LARGE_FRAMES | minor;
	if (frame <= frame_most)
		return minor;
	pace = bpf_map_lookup_elem(&paces, &minor);
	if (!pace || !pace->large_minor || frame <= pace->frame_bytes)
		return minor;
	if (q && pace->large_minor == (LARGE_FRAMES | minor))
		q->large_frame = frame_most;
	return pace->large_minor;
}

/* Whether a priority may name a class of ours. */
static __always_inline int names_class(__u32 priority)
{
	return priority >> 16 == QDISC_MAJOR || priority >> 16 & INNER_MAJOR;
}

/* Groups that have groups have an HTB of their own, so that a packet passes as many as its
 * group is deep. The classes above a leaf, as STAMP_LEVELS has them. */
const volatile __u8 nested;
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 64); /* by class minor; the loader sets it by the groups */
	__type(key, __u32);
	__type(value, __u32);
} levels SEC(".maps");

static __always_inline __u32 levels_of(const struct packet *p, __u32 leaf, __u32 minor)
{
	__u32 above = p->above, *found;

	if (nested && !p->group_minor) {
		found = bpf_map_lookup_elem(&levels, &leaf);
		above = found ? *found : 0;
	}
	if (!above)
		return minor;
	return above >> 16 ? above : above | minor << 16;
}

SEC("tc")
int headgate(struct __sk_buff *skb)
{
	struct packet p = {};
	struct flow f = {};
	__u32 bytes, class, counted;
	enum verdict verdict;
	struct queue *q;

	if (redirect_ifindex && counted_before(skb)) {
		if (names_class(skb->priority))
			skb->priority = 0; /* of the packet that this one was in */
		return pass_verdict;
	}
	examine(skb, &p, &f);
	bytes = redirect_ifindex ? wire_bytes(skb, &p) : skb->wire_len;
	counted = p.group_minor ?: f.class_minor;
	if (p.control && goes_ahead(skb, p.control, f.class_minor, bytes)) {
		f.rule = RULE_DEFAULT;
		f.class_minor = control_class;
		p.group_minor = 0;
		p.above = 0;
		counted = control_class;
	}
	q = token || frame_most ? bpf_map_lookup_elem(&queues, &f.class_minor) : 0;
	class = QDISC_MAJOR << 16 | class_for(skb, &p, q, f.class_minor);
	skb->cb[STAMP_CLASS] = class;
	skb->cb[STAMP_LEVELS] = levels_of(&p, f.class_minor, class & 0xffff);
	/* HTB takes a priority that names one of its classes before it asks its filter
	 * (htb_classify), and a program can set SO_PRIORITY to any. All else is left as
	 * it is: what is sent on has its priority. nftables knows what to forward by it. */
	if (forwards)
		skb->priority = class;
	else if (names_class(skb->priority))
		skb->priority = 0;
	verdict = enqueue(skb, &p, q, f.class_minor, bytes);
	/* STOLEN is a loss to the sender; SHOT at its own egress would tell it that its
	 * queue is full, and its stack waits for a timer. */
	if (verdict == DROP) {
		count_drop(skb, counted);
		skb->cb[STAMP_CLASS] = QDISC_MAJOR << 16 | drop_class;
		skb->cb[STAMP_LEVELS] = drop_class;
		return TC_ACT_STOLEN;
	}
	count(skb, counted, f.rule, bytes, verdict == SEND_MARKED);
	if (p.group_minor)
		count_client(f.class_minor, bytes);
	if (redirect_ifindex) {
		remember(skb, &p);
		if (!forwards)
			return bpf_redirect(redirect_ifindex, 0);
	}
	return TC_ACT_UNSPEC;
}

LICENSE;
