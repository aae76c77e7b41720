/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Validation of control traffic.
 *
 * parse.h finds candidates by the headers that it parses for every packet. The functions of
 * this file validate a candidate against its protocol: length, hop limit, addresses and first
 * fields. A packet that fails is treated as data. A packet that passes must also be within the
 * budget of its group (budget.h). Only candidates are validated.
 * docs/decisions/0024-control-traffic.md
 */
#ifndef HEADGATE_CONTROL_H
#define HEADGATE_CONTROL_H

#include "headgate.h"

/* The kind of control packet that the headers suggest, before validation. */
enum candidate {
	CANDIDATE_NONE,
	CANDIDATE_ACK,   /* a pure TCP acknowledgement */
	CANDIDATE_DHCP,  /* DHCPv4 */
	CANDIDATE_DHCP6,
	CANDIDATE_ND,    /* neighbour discovery, RFC 4861 */
	CANDIDATE_IGMP,
	CANDIDATE_MLD,
	CANDIDATE_ARP,
	CANDIDATE_LLDP,
	CANDIDATE_EAPOL,
	CANDIDATE_SLOW,  /* LACP and others, IEEE 802.3 annex 57A */
	CANDIDATE_STP,
	CANDIDATE_GROUP, /* any other frame to a reserved group address of bridges (IEEE 802.1D) */
};

/* The kind of a valid control packet. Each kind has a budget of its own, so that the
 * acknowledgements of a download do not use up the budget of neighbour discovery. */
enum control_kind { CONTROL_NO, CONTROL_ACK, CONTROL_LINK, CONTROL_KINDS };

/* The maximum length of a control message in bytes. It is the limit of DHCP unless a longer one
 * is negotiated (RFC 2131, 2). The other protocols need less. */
#define MAX_MESSAGE 576
#define MAX_GROUP_BODY 256 /* maximum payload of CANDIDATE_GROUP, bytes */
#define MIN_BODY 46        /* minimum payload of an Ethernet frame, bytes; shorter ones are padded */
#define DHCP_MAGIC 0x63825363
#define DHCP_MAGIC_AT 236
#define ND_LAST_TYPE 137

static __always_inline int in_range(__u32 n, __u32 min, __u32 max) { return n >= min && n <= max; }

/* Returns the last byte of a reserved group address of bridges (01:80:c2:00:00:0x), or -1 for
 * any other address. */
static __always_inline int bridge_group(const __u8 *dst)
{
	if (dst[0] != 0x01 || dst[1] != 0x80 || dst[2] != 0xc2 || dst[3] || dst[4] || dst[5] >= 0x10)
		return -1;
	return dst[5];
}

/* Reports whether the ports are those of DHCP: from client to server, from server to client,
 * or between relays and servers. */
static __always_inline int dhcp_ports(__u16 sport, __u16 dport, __u16 client, __u16 server)
{
	__u16 s = bpf_ntohs(sport), d = bpf_ntohs(dport);

	return (s == client && d == server) || (s == server && (d == client || d == server));
}

/* Validates a DHCPv4 message of the given length in bytes, which starts at off. */
static __always_inline int is_dhcp(struct __sk_buff *skb, const struct flow_key *key, __u32 off, __u32 bytes)
{
	struct { __u8 op, htype, hlen, hops; } boot;
	__be32 magic;

	if (!in_range(bytes, DHCP_MAGIC_AT + sizeof(magic), MAX_MESSAGE))
		return 0;
	if (bpf_skb_load_bytes(skb, off, &boot, sizeof(boot)) || bpf_skb_load_bytes(skb, off + DHCP_MAGIC_AT, &magic, sizeof(magic)))
		return 0;
	if (magic != bpf_htonl(DHCP_MAGIC) || !boot.htype || boot.hlen > 16 || boot.hops > 16)
		return 0;
	if (!key->src[3] && key->dst[3] != 0xffffffff)
		return 0; /* a client without an address sends to the broadcast address only */
	if (key->sport == bpf_htons(68))
		return boot.op == 1;
	if (key->dport == bpf_htons(68))
		return boot.op == 2;
	return in_range(boot.op, 1, 2);
}

/* Validates a DHCPv6 message. Its types are those of RFC 8415, section 7.3. */
static __always_inline int is_dhcp6(struct __sk_buff *skb, const struct flow_key *key, __u32 off, __u32 bytes)
{
	__u8 type;

	if (!in_range(bytes, 4, MAX_MESSAGE) || bpf_skb_load_bytes(skb, off, &type, 1))
		return 0;
	if (key->sport == bpf_htons(546))
		return in_range(type, 1, 11) && type != 2 && type != 7 && type != 10;
	if (key->dport == bpf_htons(546))
		return type == 2 || type == 7 || type == 10;
	return in_range(type, 12, 13);
}

/* Validates a neighbour discovery message (RFC 4861, section 4). The minimum lengths are those
 * without options. A hop limit of 255 shows that no router forwarded the message. */
static __always_inline int is_neighbour_discovery(__u8 type, __u8 code, __u8 hop_limit, __u32 bytes)
{
	__u32 min_len = type == 133 ? 8 : type == 134 ? 16 : type == ND_LAST_TYPE ? 40 : 24;

	return hop_limit == 255 && !code && in_range(bytes, min_len, MAX_MESSAGE);
}

/* Validates an MLD message (RFC 2710, section 3, and RFC 3810, section 5): a link-local or
 * unspecified source address, and a hop limit of 1. */
static __always_inline int is_mld(const struct flow_key *key, __u8 type, __u8 hop_limit, __u32 bytes)
{
	__u32 top = bpf_ntohl(key->src[0]);

	if (hop_limit != 1 || bpf_ntohl(key->dst[0]) >> 24 != 0xff)
		return 0;
	if (top >> 22 != 0xfe80 >> 6 && (top | key->src[1] | key->src[2] | key->src[3]))
		return 0;
	return in_range(bytes, type == 143 ? 8 : 24, MAX_MESSAGE);
}

/* Validates an IGMP message: TTL 1, a multicast destination, and a known type. */
static __always_inline int is_igmp(struct __sk_buff *skb, const struct flow_key *key, __u8 ttl, __u32 off, __u32 bytes, __u32 options)
{
	__u8 type;

	if (ttl != 1 || bpf_ntohl(key->dst[3]) >> 28 != 0xe || !in_range(bytes, 8, MAX_MESSAGE - options) || bpf_skb_load_bytes(skb, off, &type, 1))
		return 0;
	return type == 0x11 || type == 0x12 || type == 0x16 || type == 0x17 || type == 0x22;
}

/* Validates an ARP request or reply for IPv4 over Ethernet. body is the length of the payload
 * of the frame in bytes. */
static __always_inline int is_arp(struct __sk_buff *skb, __u32 off, __u32 body)
{
	struct { __be16 hardware, protocol; __u8 hlen, plen; __be16 op; } arp;

	if (!in_range(body, 28, MIN_BODY) || bpf_skb_load_bytes(skb, off, &arp, sizeof(arp)))
		return 0;
	return arp.hardware == bpf_htons(1) && arp.protocol == bpf_htons(0x0800) && arp.hlen == 6 && arp.plen == 4 &&
	       in_range(bpf_ntohs(arp.op), 1, 2);
}

/* Validates an LLDP frame. The first TLV is the chassis ID: a subtype and 1 to 255 bytes (IEEE
 * 802.1AB, 8.5.2). */
static __always_inline int is_lldp(struct __sk_buff *skb, int group, __u32 off, __u32 body)
{
	__be16 first;

	if ((group != 0x0e && group != 0x03 && group != 0x00) || bpf_skb_load_bytes(skb, off, &first, sizeof(first)))
		return 0;
	return bpf_ntohs(first) >> 9 == 1 && in_range(bpf_ntohs(first) & 0x1ff, 2, 256) && 2 + (bpf_ntohs(first) & 0x1ff) <= body;
}

/* Reports whether the payload of a frame has the length of its length field, and beyond that
 * only Ethernet padding. */
static __always_inline int matches_length(__u32 length, __u32 body)
{
	return length <= body && body <= (length > MIN_BODY ? length : MIN_BODY);
}

/* Validates an EAPOL frame (IEEE 802.1X), to its group address or to a unicast address. */
static __always_inline int is_eapol(struct __sk_buff *skb, const __u8 *dst, int group, __u32 off, __u32 body)
{
	struct { __u8 version, type; __be16 bytes; } pae;

	if ((dst[0] & 1 && group != 0x03) || bpf_skb_load_bytes(skb, off, &pae, sizeof(pae)))
		return 0;
	return in_range(pae.version, 1, 3) && pae.type <= 8 && matches_length(sizeof(pae) + bpf_ntohs(pae.bytes), body);
}

/* Validates a frame of a slow protocol. LACP and Marker PDUs (subtypes 1 and 2) have 110 bytes. */
static __always_inline int is_slow(struct __sk_buff *skb, int group, __u32 off, __u32 body)
{
	__u8 subtype;

	if (group != 0x02 || bpf_skb_load_bytes(skb, off, &subtype, 1))
		return 0;
	return subtype <= 2 ? subtype && in_range(body, 110, 128) : subtype <= 10;
}

/* Validates a spanning tree BPDU. */
static __always_inline int is_stp(struct __sk_buff *skb, int group, __u32 off, __u32 body)
{
	struct { __be16 length; __u8 dsap, ssap, control; } llc;

	/* An IEEE 802.3 frame has its length in the position of the EtherType. */
	if (group != 0x00 || bpf_skb_load_bytes(skb, off - 2, &llc, 5))
		return 0;
	return llc.dsap == 0x42 && llc.ssap == 0x42 && llc.control == 3 && matches_length(bpf_ntohs(llc.length), body);
}

/* Validates a candidate without an IP header. off is the offset of the frame's payload. */
static __always_inline int is_link_control(struct __sk_buff *skb, __u8 candidate, __u32 off)
{
	__u32 body = skb->len - off;
	__u8 dst[6];
	int group;

	if (skb->len < off || bpf_skb_load_bytes(skb, 0, dst, sizeof(dst)))
		return 0;
	group = bridge_group(dst);
	switch (candidate) {
	case CANDIDATE_ARP:
		return is_arp(skb, off, body);
	case CANDIDATE_LLDP:
		return is_lldp(skb, group, off, body);
	case CANDIDATE_EAPOL:
		return is_eapol(skb, dst, group, off, body);
	case CANDIDATE_SLOW:
		return is_slow(skb, group, off, body);
	case CANDIDATE_STP:
		return is_stp(skb, group, off, body);
	}
	return group >= 0 && body <= MAX_GROUP_BODY;
}

#endif
