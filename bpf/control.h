/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Control traffic: what a packet must be to count as it.
 *
 * parse.h says what a packet claims to be, by what it has read anyway. Here the
 * claim is held to what the protocol allows: length, hop limit, addresses, the first
 * fields. What fails is a packet as any other. What passes still has to be within
 * its group's budget (budget.h). Only packets with a claim come here.
 * docs/decisions/0024-control-traffic.md
 */
#ifndef HEADGATE_CONTROL_H
#define HEADGATE_CONTROL_H

#include "headgate.h"

/* What a packet claims to be. */
enum claim {
	CLAIM_NONE,
	CLAIM_ACK,   /* a TCP segment that acknowledges and does nothing else */
	CLAIM_DHCP,  /* of IPv4 */
	CLAIM_DHCP6,
	CLAIM_ND,    /* neighbour discovery, RFC 4861 */
	CLAIM_IGMP,
	CLAIM_MLD,
	CLAIM_ARP,
	CLAIM_LLDP,
	CLAIM_EAPOL,
	CLAIM_SLOW,  /* LACP and others, IEEE 802.3 annex 57A */
	CLAIM_STP,
	CLAIM_GROUP, /* anything else to a group address of the bridges' own */
};

/* What it is found to be; each kind has a budget of its own, so that a download's
 * acknowledgements do not use up what neighbour discovery needs. */
enum control_kind { CONTROL_NO, CONTROL_ACK, CONTROL_LINK, CONTROL_KINDS };

#define MOST_MESSAGE 576 /* of DHCP unless more is agreed on (RFC 2131, 2), and more than others need */
#define MOST_GROUP 256   /* of protocols that are not known here */
#define LEAST_BODY 46    /* Ethernet pads shorter ones */
#define DHCP_MAGIC 0x63825363
#define DHCP_MAGIC_AT 236
#define ND_LAST 137

static __always_inline int between(__u32 n, __u32 least, __u32 most) { return n >= least && n <= most; }

/* The last byte of a bridges' group address 01:80:c2:00:00:0x, or -1. */
static __always_inline int bridge_group(const __u8 *dst)
{
	if (dst[0] != 0x01 || dst[1] != 0x80 || dst[2] != 0xc2 || dst[3] || dst[4] || dst[5] >= 0x10)
		return -1;
	return dst[5];
}

/* Between DHCP's own ports: from a client, from a server, or between relays. */
static __always_inline int dhcp_ports(__u16 sport, __u16 dport, __u16 client, __u16 server)
{
	__u16 s = bpf_ntohs(sport), d = bpf_ntohs(dport);

	return (s == client && d == server) || (s == server && (d == client || d == server));
}

/* The message has so many bytes from off on. */
static __always_inline int is_dhcp(struct __sk_buff *skb, const struct flow_key *key, __u32 off, __u32 bytes)
{
	struct { __u8 op, htype, hlen, hops; } boot;
	__be32 magic;

	if (!between(bytes, DHCP_MAGIC_AT + sizeof(magic), MOST_MESSAGE))
		return 0;
	if (bpf_skb_load_bytes(skb, off, &boot, sizeof(boot)) || bpf_skb_load_bytes(skb, off + DHCP_MAGIC_AT, &magic, sizeof(magic)))
		return 0;
	if (magic != bpf_htonl(DHCP_MAGIC) || !boot.htype || boot.hlen > 16 || boot.hops > 16)
		return 0;
	if (!key->src[3] && key->dst[3] != 0xffffffff)
		return 0; /* who has no address yet can only broadcast */
	if (key->sport == bpf_htons(68))
		return boot.op == 1;
	if (key->dport == bpf_htons(68))
		return boot.op == 2;
	return between(boot.op, 1, 2);
}

/* Types of RFC 8415, 7.3. */
static __always_inline int is_dhcp6(struct __sk_buff *skb, const struct flow_key *key, __u32 off, __u32 bytes)
{
	__u8 type;

	if (!between(bytes, 4, MOST_MESSAGE) || bpf_skb_load_bytes(skb, off, &type, 1))
		return 0;
	if (key->sport == bpf_htons(546))
		return between(type, 1, 11) && type != 2 && type != 7 && type != 10;
	if (key->dport == bpf_htons(546))
		return type == 2 || type == 7 || type == 10;
	return between(type, 12, 13);
}

/* RFC 4861, 4: lengths without options, and no router between. */
static __always_inline int is_nd(__u8 type, __u8 code, __u8 hop_limit, __u32 bytes)
{
	__u32 least = type == 133 ? 8 : type == 134 ? 16 : type == ND_LAST ? 40 : 24;

	return hop_limit == 255 && !code && between(bytes, least, MOST_MESSAGE);
}

/* RFC 2710, 3 and RFC 3810, 5: link-local or no source, and a hop limit of 1. */
static __always_inline int is_mld(const struct flow_key *key, __u8 type, __u8 hop_limit, __u32 bytes)
{
	__u32 top = bpf_ntohl(key->src[0]);

	if (hop_limit != 1 || bpf_ntohl(key->dst[0]) >> 24 != 0xff)
		return 0;
	if (top >> 22 != 0xfe80 >> 6 && (top | key->src[1] | key->src[2] | key->src[3]))
		return 0;
	return between(bytes, type == 143 ? 8 : 24, MOST_MESSAGE);
}

static __always_inline int is_igmp(struct __sk_buff *skb, const struct flow_key *key, __u8 ttl, __u32 off, __u32 bytes, __u32 options)
{
	__u8 type;

	if (ttl != 1 || bpf_ntohl(key->dst[3]) >> 28 != 0xe || !between(bytes, 8, MOST_MESSAGE - options) || bpf_skb_load_bytes(skb, off, &type, 1))
		return 0;
	return type == 0x11 || type == 0x12 || type == 0x16 || type == 0x17 || type == 0x22;
}

/* Of Ethernet and IPv4, which is all that it is used for. body is what follows
 * the link's header. */
static __always_inline int is_arp(struct __sk_buff *skb, __u32 off, __u32 body)
{
	struct { __be16 hardware, protocol; __u8 hlen, plen; __be16 op; } arp;

	if (!between(body, 28, LEAST_BODY) || bpf_skb_load_bytes(skb, off, &arp, sizeof(arp)))
		return 0;
	return arp.hardware == bpf_htons(1) && arp.protocol == bpf_htons(0x0800) && arp.hlen == 6 && arp.plen == 4 &&
	       between(bpf_ntohs(arp.op), 1, 2);
}

/* The first element says who sends: a kind and 1 to 255 bytes (IEEE 802.1AB, 8.5.2). */
static __always_inline int is_lldp(struct __sk_buff *skb, int group, __u32 off, __u32 body)
{
	__be16 first;

	if ((group != 0x0e && group != 0x03 && group != 0x00) || bpf_skb_load_bytes(skb, off, &first, sizeof(first)))
		return 0;
	return bpf_ntohs(first) >> 9 == 1 && between(bpf_ntohs(first) & 0x1ff, 2, 256) && 2 + (bpf_ntohs(first) & 0x1ff) <= body;
}

/* A body of so many bytes by what it says itself, and no more but padding. */
static __always_inline int fills(__u32 says, __u32 body)
{
	return says <= body && body <= (says > LEAST_BODY ? says : LEAST_BODY);
}

static __always_inline int is_eapol(struct __sk_buff *skb, const __u8 *dst, int group, __u32 off, __u32 body)
{
	struct { __u8 version, type; __be16 bytes; } pae;

	if ((dst[0] & 1 && group != 0x03) || bpf_skb_load_bytes(skb, off, &pae, sizeof(pae)))
		return 0;
	return between(pae.version, 1, 3) && pae.type <= 8 && fills(sizeof(pae) + bpf_ntohs(pae.bytes), body);
}

/* LACP and its marker have 110 bytes. */
static __always_inline int is_slow(struct __sk_buff *skb, int group, __u32 off, __u32 body)
{
	__u8 subtype;

	if (group != 0x02 || bpf_skb_load_bytes(skb, off, &subtype, 1))
		return 0;
	return subtype <= 2 ? subtype && between(body, 110, 128) : subtype <= 10;
}

static __always_inline int is_stp(struct __sk_buff *skb, int group, __u32 off, __u32 body)
{
	struct { __be16 length; __u8 dsap, ssap, control; } llc;

	/* The length stands where others have a type. */
	if (group != 0x00 || bpf_skb_load_bytes(skb, off - 2, &llc, 5))
		return 0;
	return llc.dsap == 0x42 && llc.ssap == 0x42 && llc.control == 3 && fills(bpf_ntohs(llc.length), body);
}

static __always_inline int is_link_control(struct __sk_buff *skb, __u8 claim, __u32 off)
{
	__u32 body = skb->len - off;
	__u8 dst[6];
	int group;

	if (skb->len < off || bpf_skb_load_bytes(skb, 0, dst, sizeof(dst)))
		return 0;
	group = bridge_group(dst);
	switch (claim) {
	case CLAIM_ARP:
		return is_arp(skb, off, body);
	case CLAIM_LLDP:
		return is_lldp(skb, group, off, body);
	case CLAIM_EAPOL:
		return is_eapol(skb, dst, group, off, body);
	case CLAIM_SLOW:
		return is_slow(skb, group, off, body);
	case CLAIM_STP:
		return is_stp(skb, group, off, body);
	}
	return group >= 0 && body <= MOST_GROUP;
}

#endif
