//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* The HTB engine's classifier: one program for a device's egress, and the same
 * with a redirect to an IFB for its ingress. See doc.go. */
#include "headgate.h"
#include "classify.h"
#include "queue.h"

const volatile __u32 qdisc_major;
const volatile __u32 redirect_ifindex; /* the IFB; 0 at egress */

SEC("tc")
int headgate(struct __sk_buff *skb)
{
	struct packet p = {};
	struct flow f = { .rule = RULE_DEFAULT, .class_minor = control_class };
	__u32 bytes;
	int marked;

	parse(skb, &p);
	if (!p.control)
		classify(skb, &p, &f);
	bytes = redirect_ifindex ? wire_bytes(skb, &p) : skb->wire_len;
	/* Always overwritten: a program can set SO_PRIORITY to any class, and the
	 * value outlives the packet's way through one device. */
	skb->priority = qdisc_major << 16 | f.class_minor;
	marked = enqueue(skb, &p, f.class_minor, bytes);
	count(skb, f.class_minor, f.rule, bytes, marked);
	if (redirect_ifindex)
		return bpf_redirect(redirect_ifindex, 0);
	return TC_ACT_UNSPEC;
}

LICENSE;
