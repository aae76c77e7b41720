/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* From a packet to the fields that rules ask for. Tunnels are seen by their outer
 * header. Reads linear data only, after pulling in what a header needs. */
#ifndef HEADGATE_PARSE_H
#define HEADGATE_PARSE_H

#include "headgate.h"
#include "control.h"

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <linux/icmpv6.h>
#include <stddef.h>

#define IP_FRAGMENT_OFFSET 0x1fff
#define IP_MORE_FRAGMENTS 0x2000
#define PROTO_AUTH 51
#define LEAST_FRAME (ETH_HLEN + 8 + LEAST_BODY) /* with two tags */

/* The device's: 14 for Ethernet, 0 for a tunnel device. Written by the loader. */
const volatile __u32 link_header = ETH_HLEN;

/* Whether a rule asks for source MAC addresses. Written by the loader. */
const volatile __u8 use_smac;

/* The verifier looks at a global function once, with any argument, and not once
 * more for each way that leads to it; and of what its pointers point to it keeps no
 * values, so that ways meet again which differ in them alone. A call costs a packet
 * some 10 ns, and an instruction that the verifier looks at costs 1.1 us whenever a
 * device is divided. */
#define GLOBAL __attribute__((noinline))

/* Enough for Ethernet, two tags, IPv6 with some options, and TCP with options. */
#define HEADROOM 160

/* No header that is read begins beyond this, which the verifier wants to hear:
 * HEADROOM and one more of IPv6's options is the farthest. */
#define FARTHEST 4095

struct packet {
	struct flow_key key;
	__u64 smac;    /* the source MAC address in its first six bytes, if a rule asks for any */
	__u32 frag_id;
	__u32 headers; /* bytes before the transport payload; 0 if unknown */
	__u32 body;    /* where the transport's header begins; of what is not IP, what follows the link's */
	__u32 end;     /* of the packet, by its IP header */
	__u32 payload; /* bytes after the last header that is known; a super-packet's whole, once */
	__u8 fragment; /* part of a datagram that was cut up */
	__u8 part_of;  /* its protocol by each of its parts; a first part with options shows another */
	__u8 later;    /* and not its first part, so without ports */
	__u8 control;  /* enum control_kind: may go before others, within its budget */
	__u8 claim;    /* enum claim: what it says that it is */
	__u8 hop_limit;
	__u8 options;  /* bytes between the IP header and the transport's */
	__u8 ecn;      /* the two ECN bits */
	__u8 answers;  /* TCP's CWR: the sender has slowed down for a mark */
	__u8 cut;      /* a header goes on beyond the linear data, */
	__u8 pulled;   /* into which there was pulled what was asked for */
	__u32 group_minor; /* the group's class, if each client has one of its own (client.h); else 0, */
	__u32 above;       /* and what is above that client's class */
};

/* Bytes from off to end, 0 if there are none; without a branch, which would double the
 * ways through all that follows. */
static __always_inline __u32 from(__u32 off, __u32 end)
{
	__s32 n = end - off;

	return n & ~(n >> 31);
}

/* A number that the verifier knows nothing of but that it is below FARTHEST. */
static __always_inline __u32 unknown(const __u32 *in_packet)
{
	__u32 n = *(const volatile __u32 *)in_packet;

	return n > FARTHEST ? FARTHEST : n;
}

/* Ports, and what the packet claims to be. */
static __always_inline void parse_transport(struct __sk_buff *skb, struct packet *p)
{
	void *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;
	__u32 off = unknown(&p->body), end = p->end;

	if (p->key.proto == IPPROTO_TCP) {
		struct tcphdr *tcp = data + off;

		if ((void *)(tcp + 1) > data_end) {
			p->cut = 1;
			return;
		}
		p->key.sport = tcp->source;
		p->key.dport = tcp->dest;
		p->key.dscp |= HAS_PORTS;
		p->headers = off + tcp->doff * 4;
		p->answers = tcp->cwr && !tcp->ece && !tcp->syn;
		p->payload = from(p->headers, end);
		if (end == p->headers && tcp->ack && !tcp->syn && !tcp->fin && !tcp->rst && !tcp->psh && !tcp->urg)
			p->claim = CLAIM_ACK;
	} else if (p->key.proto == IPPROTO_UDP || p->key.proto == IPPROTO_SCTP) {
		struct udphdr *udp = data + off; /* SCTP's ports are at the same place */

		if ((void *)(udp + 1) > data_end) {
			p->cut = 1;
			return;
		}
		p->key.sport = udp->source;
		p->key.dport = udp->dest;
		p->key.dscp |= HAS_PORTS;
		p->headers = off + sizeof(*udp);
		p->payload = from(p->headers, end);
		if (p->key.proto == IPPROTO_UDP && dhcp_ports(udp->source, udp->dest, 68, 67))
			p->claim = CLAIM_DHCP;
		else if (p->key.proto == IPPROTO_UDP && dhcp_ports(udp->source, udp->dest, 546, 547))
			p->claim = CLAIM_DHCP6;
	} else if (p->key.proto == IPPROTO_ICMPV6 && p->key.family == FAMILY_IPV6) {
		struct icmp6hdr *icmp = data + off;

		if ((void *)(icmp + 1) > data_end) {
			p->cut = 1;
			return;
		}
		if (icmp->icmp6_type >= 133 && icmp->icmp6_type <= ND_LAST)
			p->claim = CLAIM_ND;
		else if ((icmp->icmp6_type >= 130 && icmp->icmp6_type <= 132) || icmp->icmp6_type == 143)
			p->claim = CLAIM_MLD;
	} else if (p->key.proto == IPPROTO_IGMP && p->key.family == FAMILY_IPV4) {
		p->claim = CLAIM_IGMP;
	}
}

/* What a frame without IP claims to be. */
static __always_inline __u8 link_claim(__u16 proto, void *data, void *data_end)
{
	struct ethhdr *eth = data;

	switch (bpf_ntohs(proto)) {
	case ETH_P_ARP:
		return CLAIM_ARP;
	case ETH_P_LLDP:
		return CLAIM_LLDP;
	case ETH_P_PAE:
		return CLAIM_EAPOL;
	case ETH_P_SLOW:
		return CLAIM_SLOW;
	}
	if ((void *)(eth + 1) > data_end || bridge_group(eth->h_dest) < 0)
		return CLAIM_NONE;
	return bpf_ntohs(proto) < ETH_P_802_3_MIN ? CLAIM_STP : CLAIM_GROUP;
}

/* The datagram is as long as its packet says. */
static __always_inline int udp_fills(struct __sk_buff *skb, __u32 off, __u32 bytes)
{
	__be16 length;

	return !bpf_skb_load_bytes(skb, off + offsetof(struct udphdr, len), &length, sizeof(length)) && bpf_ntohs(length) == bytes;
}

static __always_inline int is_icmp6_control(struct __sk_buff *skb, const struct packet *p, __u32 off, __u32 bytes)
{
	struct { __u8 type, code; } icmp;

	if (bpf_skb_load_bytes(skb, off, &icmp, sizeof(icmp)))
		return 0;
	if (p->claim == CLAIM_ND)
		return is_nd(icmp.type, icmp.code, p->hop_limit, bytes);
	return is_mld(&p->key, icmp.type, p->hop_limit, bytes);
}

/* Whether there is an IPv4 header: then p->body is what follows it. */
static __always_inline int parse_ipv4(struct __sk_buff *skb, struct packet *p, __u32 off)
{
	void *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;
	struct iphdr *ip = data + off;
	__u32 end;
	__u16 frag;

	if ((void *)(ip + 1) > data_end) {
		p->cut = 1;
		return 0;
	}
	if (ip->version != 4 || ip->ihl < 5)
		return 0;
	p->key.family = FAMILY_IPV4;
	p->key.proto = ip->protocol;
	p->key.src[3] = ip->saddr;
	p->key.dst[3] = ip->daddr;
	p->key.dscp = ip->tos >> 2;
	p->ecn = ip->tos & 3;
	frag = bpf_ntohs(ip->frag_off);
	p->later = (frag & IP_FRAGMENT_OFFSET) != 0;
	p->fragment = p->later || (frag & IP_MORE_FRAGMENTS);
	p->frag_id = ip->id;
	p->part_of = ip->protocol;
	/* A super-packet above 64 KB has no length. */
	end = ip->tot_len ? off + bpf_ntohs(ip->tot_len) : skb->len;
	off += ip->ihl * 4;
	p->hop_limit = ip->ttl;
	p->options = (ip->ihl - 5) * 4;
	p->body = off;
	p->end = end;
	p->payload = from(off, end);
	return 1;
}

static __always_inline int is_option(__u8 proto)
{
	return proto == IPPROTO_HOPOPTS || proto == IPPROTO_ROUTING || proto == IPPROTO_DSTOPTS ||
	       proto == IPPROTO_FRAGMENT || proto == PROTO_AUTH;
}

/* One header between IPv6's and the transport's: gives its length, 0 if it is cut,
 * and leaves in the key what follows it. A function of its own because the verifier
 * looked at a loop over all of it some thousand times. */
GLOBAL int ipv6_option(struct __sk_buff *skb, struct packet *p, __u32 off, __u32 proto)
{
	void *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;
	struct { __u8 next, len; __u16 frag; __u32 id; } *ext;

	if (!p || off > FARTHEST)
		return 0;
	ext = data + off;
	if ((void *)(ext + 1) > data_end) {
		p->cut = 1;
		return 0;
	}
	p->key.proto = ext->next;
	if (proto == PROTO_AUTH)
		return (ext->len + 2) * 4;
	if (proto != IPPROTO_FRAGMENT)
		return (ext->len + 1) * 8;
	p->later = (bpf_ntohs(ext->frag) & 0xfff8) != 0;
	p->fragment = p->later || (bpf_ntohs(ext->frag) & 1);
	p->frag_id = ext->id;
	p->part_of = ext->next;
	return 8;
}

/* The same of IPv6's header and its options. */
static __always_inline int parse_ipv6(struct __sk_buff *skb, struct packet *p, __u32 off)
{
	void *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;
	struct ipv6hdr *ip = data + off;
	__u32 end;
	__u8 next;

	if ((void *)(ip + 1) > data_end) {
		p->cut = 1;
		return 0;
	}
	if (ip->version != 6)
		return 0;
	p->key.family = FAMILY_IPV6;
	__builtin_memcpy(p->key.src, &ip->saddr, 16);
	__builtin_memcpy(p->key.dst, &ip->daddr, 16);
	p->key.dscp = (ip->priority << 2) | (ip->flow_lbl[0] >> 6);
	p->ecn = (ip->flow_lbl[0] >> 4) & 3;
	p->hop_limit = ip->hop_limit;
	next = ip->nexthdr;
	end = ip->payload_len ? off + sizeof(*ip) + bpf_ntohs(ip->payload_len) : skb->len;
	off += sizeof(*ip);
	p->body = off;
	for (int i = 0; i < 6 && is_option(next); i++) {
		__u32 length = ipv6_option(skb, p, off, next);

		off += length;
		next = p->key.proto;
		p->key.proto = 0;
		if (!length || off > HEADROOM)
			return 0;
		if (p->later)
			break;
	}
	p->key.proto = next;
	p->options = off - p->body;
	p->body = off;
	p->end = end;
	p->payload = from(off, end);
	return 1;
}

/* Takes in a tag from outside inwards: the id of the first that has one, and all else
 * of the outermost. */
static __always_inline void parse_tag(struct packet *p, __u16 tci_host)
{
	if (!(p->key.vlan_host & VLAN_TAGGED))
		p->key.vlan_host = VLAN_TAGGED | (tci_host & (VLAN_ID | VLAN_PCP));
	else if (!(p->key.vlan_host & VLAN_ID))
		p->key.vlan_host |= tci_host & VLAN_ID;
}

static __always_inline void parse_link(struct __sk_buff *skb, struct packet *p)
{
	void *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;
	__u32 off = link_header;
	__u16 proto = skb->protocol;
	int ip = 0;

	if (link_header) {
		struct ethhdr *eth = data;

		if ((void *)(eth + 1) > data_end) {
			p->cut = 1;
			return;
		}
		proto = eth->h_proto;
		if (use_smac)
			__builtin_memcpy(&p->smac, eth->h_source, ETH_ALEN);
		if (skb->vlan_present)
			parse_tag(p, skb->vlan_tci);
		for (int i = 0; i < 2; i++) {
			struct { __u16 tci, proto; } *tag = data + off;

			if (proto != bpf_htons(ETH_P_8021Q) && proto != bpf_htons(ETH_P_8021AD))
				break;
			if ((void *)(tag + 1) > data_end) {
				p->cut = 1;
				return;
			}
			parse_tag(p, bpf_ntohs(tag->tci));
			proto = tag->proto;
			off += 4;
		}
	}
	p->payload = from(off, skb->len);
	p->body = off;
	off = unknown(&p->body);
	if (proto == bpf_htons(ETH_P_IP))
		ip = parse_ipv4(skb, p, off);
	else if (proto == bpf_htons(ETH_P_IPV6))
		ip = parse_ipv6(skb, p, off);
	else if (link_header)
		p->claim = link_claim(proto, data, data_end);
	if (ip && !p->later)
		parse_transport(skb, p);
}

/* Whether a packet is what it claims to be. */
GLOBAL int is_control(struct __sk_buff *skb, const struct packet *p)
{
	__u32 off, bytes;

	if (!p)
		return 0;
	off = p->body;
	if (p->claim >= CLAIM_ARP)
		return is_link_control(skb, p->claim, off);
	/* In one part, alone in its frame, and without options, which are room: but MLD
	 * always has one of eight bytes, and IGMP mostly one of four. */
	if (p->fragment || p->end < off || skb->len > (p->end > LEAST_FRAME ? p->end : LEAST_FRAME))
		return 0;
	if (p->options != (p->claim == CLAIM_MLD ? 8 : 0) && !(p->claim == CLAIM_IGMP && p->options == 4))
		return 0;
	bytes = p->end - off;
	switch (p->claim) {
	case CLAIM_ACK:
		return 1; /* and nothing else: parse_transport has seen it */
	case CLAIM_DHCP:
		return p->key.family == FAMILY_IPV4 && udp_fills(skb, off, bytes) && is_dhcp(skb, &p->key, off + 8, bytes - 8);
	case CLAIM_DHCP6:
		return p->key.family == FAMILY_IPV6 && udp_fills(skb, off, bytes) && is_dhcp6(skb, &p->key, off + 8, bytes - 8);
	case CLAIM_IGMP:
		return is_igmp(skb, &p->key, p->hop_limit, off, bytes, p->options);
	}
	return is_icmp6_control(skb, p, off, bytes);
}

/* Fills in a packet that is all zero, as far as it lies in the linear part. */
static __always_inline void parse(struct __sk_buff *skb, struct packet *p)
{
	parse_link(skb, p);
	if (p->claim && is_control(skb, p))
		p->control = p->claim == CLAIM_ACK ? CONTROL_ACK : CONTROL_LINK;
}

/* Layer-2 bytes of a packet and all the segments that it stands for, as HTB
 * counts them (net/core/dev.c, qdisc_pkt_len_init). At ingress the kernel has
 * not done that sum yet, so it is done here. */
static __always_inline __u32 wire_bytes(struct __sk_buff *skb, const struct packet *p)
{
	__u32 segs = skb->gso_segs;

	if (segs <= 1 || !p->headers)
		return skb->len;
	return skb->len + (segs - 1) * p->headers;
}

#endif
