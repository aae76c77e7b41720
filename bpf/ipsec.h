/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* A packet that IPsec takes out of another (a tunnel's, or whatever the ESP offload
 * code decrypts) comes in a second time on the same device, in the same sk_buff
 * (net/xfrm/xfrm_input.c, gro_cells_receive): the device has carried it once.
 *
 * tc_index stays with the packet meanwhile; only what may hold another is given one.
 * That a packet has been through IPsec alone does not say that the classifier saw it
 * before: GRO decrypts ahead of the filters where esp4_offload is loaded, and so do
 * some network cards.
 */
#ifndef HEADGATE_IPSEC_H
#define HEADGATE_IPSEC_H

#include "headgate.h"
#include "parse.h"

const volatile __u8 use_xfrm; /* the kernel has bpf_skb_get_xfrm_state */

/* True for a packet that was counted here when it was still in another. */
static __always_inline int counted_before(struct __sk_buff *skb)
{
	__u16 here = skb->ifindex;
	struct bpf_xfrm_state state;

	if (!use_xfrm || !here || (__u16)skb->tc_index != here)
		return 0;
	return !bpf_skb_get_xfrm_state(skb, 0, &state, sizeof(state), 0);
}

/* Lets counted_before know what is in this packet. */
static __always_inline void remember(struct __sk_buff *skb, const struct packet *p)
{
	if (use_xfrm && p->key.proto != IPPROTO_TCP)
		skb->tc_index = (__u16)skb->ifindex;
}

#endif
