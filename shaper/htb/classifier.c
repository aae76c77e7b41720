//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* The classifier of the HTB engine: one program for the egress of a device, and the same
 * program with a redirect to an IFB for its ingress. See doc.go. */
#define CLIENTS
#include "headgate.h"
#include "classify.h"
#include "ipsec.h"
#include "queue.h"

const volatile __u32 redirect_ifindex; /* the IFB; 0 at egress */
const volatile __u8 forwards; /* nftables forwards classified packets to the IFB by their priority, instead of this program */
const volatile __s32 pass_verdict = TC_ACT_UNSPEC; /* the return value that passes a packet unchanged */
/* A class that drops its packets. It is set where an action of the filter redirects each packet
 * whatever this program returns, so that TC_ACT_STOLEN has no effect; else 0. */
const volatile __u32 drop_class;

/* Leaves that segment super-packets (TBF) drop a single frame that is longer than their burst,
 * because TBF segments super-packets only. max_frame_bytes is the largest frame at the MTU for which
 * the leaves were created; 0: no leaf segments. Longer frames that a leaf would drop have a
 * class of their own. */
const volatile __u32 max_frame_bytes;
#define LARGE_FRAMES 0x8000 /* shaper/htb/tree.go */

/* Returns the class minor of a packet whose leaf has this minor. If a class of large frames
 * belongs to one leaf only, it gets all packets from the first large frame on, because the two
 * classes together would exceed the ceiling. */
static __always_inline __u32 class_for(const struct __sk_buff *skb, const struct packet *p, struct queue *q, __u32 minor)
{
	__u32 frame = skb->gso_size ? skb->gso_size + p->headers : skb->len;
	struct pace *pace;

	if (!max_frame_bytes)
		return minor;
	if (q && q->large_frame == max_frame_bytes)
		return LARGE_FRAMES | minor;
	if (frame <= max_frame_bytes)
		return minor;
	pace = bpf_map_lookup_elem(&paces, &minor);
	if (!pace || !pace->large_minor || frame <= pace->frame_bytes)
		return minor;
	if (q && pace->large_minor == (LARGE_FRAMES | minor))
		q->large_frame = max_frame_bytes;
	return pace->large_minor;
}

/* Reports whether a priority may be the ID of a class of Headgate. */
static __always_inline int is_own_class(__u32 priority)
{
	return priority >> 16 == QDISC_MAJOR || priority >> 16 & INNER_MAJOR;
}

/* Whether any group has child groups. Each parent group has an HTB of its own, so that a packet
 * passes one HTB for each level of its group. */
const volatile __u8 nested;

/* The ancestor classes of a leaf, encoded as STAMP_LEVELS. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 64); /* by class minor; the loader sets it by the groups */
	__type(key, __u32);
	__type(value, __u32);
} levels SEC(".maps");

/* Returns the value of STAMP_LEVELS for a packet of this leaf; minor is that of its class. */
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

	if (redirect_ifindex && already_counted(skb)) {
		if (is_own_class(skb->priority))
			skb->priority = 0; /* set for the packet that contained this one */
		return pass_verdict;
	}
	examine(skb, &p, &f);
	bytes = redirect_ifindex ? wire_bytes(skb, &p) : skb->wire_len;
	counted = p.group_minor ?: f.class_minor;
	if (p.control && within_budget(skb, p.control, f.class_minor, bytes)) {
		f.rule = RULE_DEFAULT;
		f.class_minor = control_class;
		p.group_minor = 0;
		p.above = 0;
		counted = control_class;
	}
	q = token || max_frame_bytes ? bpf_map_lookup_elem(&queues, &f.class_minor) : 0;
	class = QDISC_MAJOR << 16 | class_for(skb, &p, q, f.class_minor);
	skb->cb[STAMP_CLASS] = class;
	skb->cb[STAMP_LEVELS] = levels_of(&p, f.class_minor, class & 0xffff);
	/* HTB uses a priority that is the ID of one of its classes before it calls its filter
	 * (htb_classify), and any program can set SO_PRIORITY. Such a priority is cleared. Other
	 * priorities are preserved, because they have a meaning for forwarded packets. If nftables
	 * forwards, it selects packets by the priority. */
	if (forwards)
		skb->priority = class;
	else if (is_own_class(skb->priority))
		skb->priority = 0;
	verdict = enqueue(skb, &p, q, f.class_minor, bytes);
	/* TC_ACT_STOLEN looks like a loss on the path to the sender. TC_ACT_SHOT at the sender's
	 * own egress would report a full queue, and its TCP stack would wait for a timer. */
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
		mark_counted(skb, &p);
		if (!forwards)
			return bpf_redirect(redirect_ifindex, 0);
	}
	return TC_ACT_UNSPEC;
}

LICENSE;
