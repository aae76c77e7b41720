/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Avoids counting a packet twice at ingress. A packet that IPsec decapsulates (in tunnel mode)
 * or that the ESP offload code decrypts is received a second time on the same device, in the
 * same sk_buff (net/xfrm/xfrm_input.c, gro_cells_receive), although it crossed the device once.
 *
 * The classifier sets tc_index, which is preserved in the sk_buff meanwhile. It sets it only
 * for packets that may contain another packet. An IPsec state (xfrm) alone does not prove that
 * the classifier has seen the packet before: GRO decrypts ahead of the filters if esp4_offload
 * is loaded, and so do some network cards.
 */
#ifndef HEADGATE_IPSEC_H
#define HEADGATE_IPSEC_H

#include "headgate.h"
#include "parse.h"

const volatile __u8 use_xfrm; /* the kernel supports bpf_skb_get_xfrm_state */

/* Reports whether the packet was counted on this device while it was encapsulated in another. */
static __always_inline int already_counted(struct __sk_buff *skb)
{
	__u16 here = skb->ifindex;
	struct bpf_xfrm_state state;

	if (!use_xfrm || !here || (__u16)skb->tc_index != here)
		return 0;
	return !bpf_skb_get_xfrm_state(skb, 0, &state, sizeof(state), 0);
}

/* Marks a packet, so that already_counted recognizes the packet that it may contain. */
static __always_inline void mark_counted(struct __sk_buff *skb, const struct packet *p)
{
	if (use_xfrm && p->key.proto != IPPROTO_TCP)
		skb->tc_index = (__u16)skb->ifindex;
}

#endif
