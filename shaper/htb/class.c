//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* The filters of the HTB qdiscs, one for each level of groups. They return the class that the
 * classifier stored in the packet's control block (cb). skb->priority would need no filter, but
 * it has effects beyond the device: in VLAN priority maps (802.1p) and in the qdiscs of lower
 * devices. */
#define CLASS_FILTER
#include "headgate.h"
#include "queue.h"

/* Returns a class ID, or 0 (the default class) for a packet that was not classified, whose cb
 * has arbitrary content. */
static __always_inline int class_id(struct __sk_buff *skb, __u32 major, __u32 minor)
{
	return skb->cb[STAMP_CLASS] >> 16 == QDISC_MAJOR ? major << 16 | minor : 0;
}

SEC("tc")
int headgate_class1(struct __sk_buff *skb)
{
	return class_id(skb, QDISC_MAJOR, skb->cb[STAMP_LEVELS] & 0xffff);
}

SEC("tc")
int headgate_class2(struct __sk_buff *skb)
{
	return class_id(skb, INNER_MAJOR | (skb->cb[STAMP_LEVELS] & 0xffff), skb->cb[STAMP_LEVELS] >> 16);
}

SEC("tc")
int headgate_class3(struct __sk_buff *skb)
{
	return class_id(skb, INNER_MAJOR | skb->cb[STAMP_LEVELS] >> 16, skb->cb[STAMP_CLASS] & 0xffff);
}

LICENSE;
