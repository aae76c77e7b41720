//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* The filters of the HTB qdiscs, one for each level of groups: they give a qdisc the
 * class that the classifier left in the packet's control block. skb->priority would need
 * no filter, but it leaves the device with the packet: into VLAN priority maps (802.1p)
 * and the qdiscs of the devices below. */
#define CLASS_FILTER
#include "headgate.h"
#include "queue.h"

/* What no classifier has seen has anything there, and gets the default class. */
static __always_inline int of(struct __sk_buff *skb, __u32 major, __u32 minor)
{
	return skb->cb[STAMP_CLASS] >> 16 == QDISC_MAJOR ? major << 16 | minor : 0;
}

SEC("tc")
int headgate_class1(struct __sk_buff *skb)
{
	return of(skb, QDISC_MAJOR, skb->cb[STAMP_LEVELS] & 0xffff);
}

SEC("tc")
int headgate_class2(struct __sk_buff *skb)
{
	return of(skb, INNER_MAJOR | (skb->cb[STAMP_LEVELS] & 0xffff), skb->cb[STAMP_LEVELS] >> 16);
}

SEC("tc")
int headgate_class3(struct __sk_buff *skb)
{
	return of(skb, INNER_MAJOR | skb->cb[STAMP_LEVELS] >> 16, skb->cb[STAMP_CLASS] & 0xffff);
}

LICENSE;
