/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The parser: extracts the fields that rules match from a packet. Of a tunnel it reads the
 * outer header only. It reads linear data only; examine() in classify.h pulls headers into the
 * linear part if they are beyond it. */
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
#define MIN_FRAME (ETH_HLEN + 8 + MIN_BODY) /* with two tags */

/* The length of the device's link header in bytes: 14 for Ethernet, 0 for a tunnel device. The
 * loader sets it. */
const volatile __u32 link_header = ETH_HLEN;

/* Whether any rule matches source MAC addresses. The loader sets it. */
const volatile __u8 use_smac;

/* Declares a global function. The verifier verifies it once, for all arguments, and not once
 * for each path that leads to it. It also forgets the values behind the function's pointer
 * arguments, so that paths merge that differ in those values only. A call costs about 10 ns per
 * packet. An instruction that the verifier processes costs 1.1 us whenever a program is loaded. */
#define GLOBAL __attribute__((noinline))

/* The number of bytes that are pulled: enough for Ethernet, two tags, IPv6 with some extension
 * headers, and TCP with options. */
#define HEADROOM 160

/* The maximum offset of a header, which the verifier needs as a bound. The largest possible
 * offset is HEADROOM and one more IPv6 extension header. */
#define MAX_OFFSET 4095

struct packet {
	struct flow_key key;
	__u64 smac;    /* the source MAC address in the first six bytes if use_smac is set; else 0 */
	__u32 frag_id;
	__u32 headers; /* bytes before the transport payload; 0: unknown */
	__u32 body;    /* offset of the transport header, or of the frame's payload without IP */
	__u32 end;     /* end of the packet according to the IP header, as an offset */
	__u32 payload; /* bytes after the last known header; of a super-packet, of all segments together */
	__u8 fragment;       /* the packet is a fragment */
	__u8 frag_proto;     /* protocol in the header of each fragment; IPv6 extension headers may follow in the first */
	__u8 later_fragment; /* the packet is a fragment other than the first, and has no ports */
	__u8 control;        /* enum control_kind: a valid control packet, which is sent first within its budget */
	__u8 candidate;      /* enum candidate */
	__u8 hop_limit;
	__u8 options;        /* bytes between the fixed IP header and the transport header */
	__u8 ecn;            /* the two ECN bits */
	__u8 cwr;            /* TCP's CWR flag: the sender has responded to a mark */
	__u8 truncated;      /* a header extends beyond the linear part */
	__u8 pulled;         /* HEADROOM bytes were pulled into the linear part */
	__u32 group_minor;   /* class minor of the group if each client has a class of its own (client.h); else 0 */
	__u32 above;         /* ancestor classes of the client's class, encoded as STAMP_LEVELS */
};

/* Returns the number of bytes from off to end; 0 if end is before off. It has no branch, which
 * would double the number of paths that the verifier explores. */
static __always_inline __u32 bytes_between(__u32 off, __u32 end)
{
	__s32 n = end - off;

	return n & ~(n >> 31);
}

/* Returns an offset of which the verifier knows only that it is at most MAX_OFFSET. */
static __always_inline __u32 opaque_offset(const __u32 *in_packet)
{
	__u32 n = *(const volatile __u32 *)in_packet;

	return n > MAX_OFFSET ? MAX_OFFSET : n;
}

/* Parses the transport header: ports, payload and the candidate for control traffic. */
static __always_inline void parse_transport(struct __sk_buff *skb, struct packet *p)
{
	void *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;
	__u32 off = opaque_offset(&p->body), end = p->end;

	if (p->key.proto == IPPROTO_TCP) {
		struct tcphdr *tcp = data + off;

		if ((void *)(tcp + 1) > data_end) {
			p->truncated = 1;
			return;
		}
		p->key.sport = tcp->source;
		p->key.dport = tcp->dest;
		p->key.dscp |= HAS_PORTS;
		p->headers = off + tcp->doff * 4;
		p->cwr = tcp->cwr && !tcp->ece && !tcp->syn;
		p->payload = bytes_between(p->headers, end);
		if (end == p->headers && tcp->ack && !tcp->syn && !tcp->fin && !tcp->rst && !tcp->psh && !tcp->urg)
			p->candidate = CANDIDATE_ACK;
	} else if (p->key.proto == IPPROTO_UDP || p->key.proto == IPPROTO_SCTP) {
		struct udphdr *udp = data + off; /* the ports of SCTP are at the same offset */

		if ((void *)(udp + 1) > data_end) {
			p->truncated = 1;
			return;
		}
		p->key.sport = udp->source;
		p->key.dport = udp->dest;
		p->key.dscp |= HAS_PORTS;
		p->headers = off + sizeof(*udp);
		p->payload = bytes_between(p->headers, end);
		if (p->key.proto == IPPROTO_UDP && dhcp_ports(udp->source, udp->dest, 68, 67))
			p->candidate = CANDIDATE_DHCP;
		else if (p->key.proto == IPPROTO_UDP && dhcp_ports(udp->source, udp->dest, 546, 547))
			p->candidate = CANDIDATE_DHCP6;
	} else if (p->key.proto == IPPROTO_ICMPV6 && p->key.family == FAMILY_IPV6) {
		struct icmp6hdr *icmp = data + off;

		if ((void *)(icmp + 1) > data_end) {
			p->truncated = 1;
			return;
		}
		if (icmp->icmp6_type >= 133 && icmp->icmp6_type <= ND_LAST_TYPE)
			p->candidate = CANDIDATE_ND;
		else if ((icmp->icmp6_type >= 130 && icmp->icmp6_type <= 132) || icmp->icmp6_type == 143)
			p->candidate = CANDIDATE_MLD;
	} else if (p->key.proto == IPPROTO_IGMP && p->key.family == FAMILY_IPV4) {
		p->candidate = CANDIDATE_IGMP;
	}
}

/* Returns the candidate of a frame without IP, by its EtherType and destination. */
static __always_inline __u8 link_candidate(__u16 proto, void *data, void *data_end)
{
	struct ethhdr *eth = data;

	switch (bpf_ntohs(proto)) {
	case ETH_P_ARP:
		return CANDIDATE_ARP;
	case ETH_P_LLDP:
		return CANDIDATE_LLDP;
	case ETH_P_PAE:
		return CANDIDATE_EAPOL;
	case ETH_P_SLOW:
		return CANDIDATE_SLOW;
	}
	if ((void *)(eth + 1) > data_end || bridge_group(eth->h_dest) < 0)
		return CANDIDATE_NONE;
	return bpf_ntohs(proto) < ETH_P_802_3_MIN ? CANDIDATE_STP : CANDIDATE_GROUP;
}

/* Reports whether the length in the UDP header at off equals the length of the IP payload. */
static __always_inline int udp_length_matches(struct __sk_buff *skb, __u32 off, __u32 bytes)
{
	__be16 length;

	return !bpf_skb_load_bytes(skb, off + offsetof(struct udphdr, len), &length, sizeof(length)) && bpf_ntohs(length) == bytes;
}

static __always_inline int is_icmp6_control(struct __sk_buff *skb, const struct packet *p, __u32 off, __u32 bytes)
{
	struct { __u8 type, code; } icmp;

	if (bpf_skb_load_bytes(skb, off, &icmp, sizeof(icmp)))
		return 0;
	if (p->candidate == CANDIDATE_ND)
		return is_neighbour_discovery(icmp.type, icmp.code, p->hop_limit, bytes);
	return is_mld(&p->key, icmp.type, p->hop_limit, bytes);
}

/* Parses an IPv4 header. Returns 0 if there is none. */
static __always_inline int parse_ipv4(struct __sk_buff *skb, struct packet *p, __u32 off)
{
	void *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;
	struct iphdr *ip = data + off;
	__u32 end;
	__u16 frag;

	if ((void *)(ip + 1) > data_end) {
		p->truncated = 1;
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
	p->later_fragment = (frag & IP_FRAGMENT_OFFSET) != 0;
	p->fragment = p->later_fragment || (frag & IP_MORE_FRAGMENTS);
	p->frag_id = ip->id;
	p->frag_proto = ip->protocol;
	/* The length of a super-packet above 64 KB is 0 in its header. */
	end = ip->tot_len ? off + bpf_ntohs(ip->tot_len) : skb->len;
	off += ip->ihl * 4;
	p->hop_limit = ip->ttl;
	p->options = (ip->ihl - 5) * 4;
	p->body = off;
	p->end = end;
	p->payload = bytes_between(off, end);
	return 1;
}

/* Reports whether a protocol number is that of an IPv6 extension header that is skipped. */
static __always_inline int is_extension_header(__u8 proto)
{
	return proto == IPPROTO_HOPOPTS || proto == IPPROTO_ROUTING || proto == IPPROTO_DSTOPTS ||
	       proto == IPPROTO_FRAGMENT || proto == PROTO_AUTH;
}

/* Parses one IPv6 extension header. Returns its length in bytes, or 0 if it is truncated, and
 * sets key.proto to the type of the next header. This is a global function because the verifier
 * otherwise verified it about a thousand times in the loop. */
GLOBAL int parse_extension_header(struct __sk_buff *skb, struct packet *p, __u32 off, __u32 proto)
{
	void *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;
	struct { __u8 next, len; __u16 frag; __u32 id; } *ext;

	if (!p || off > MAX_OFFSET)
		return 0;
	ext = data + off;
	if ((void *)(ext + 1) > data_end) {
		p->truncated = 1;
		return 0;
	}
	p->key.proto = ext->next;
	if (proto == PROTO_AUTH)
		return (ext->len + 2) * 4;
	if (proto != IPPROTO_FRAGMENT)
		return (ext->len + 1) * 8;
	p->later_fragment = (bpf_ntohs(ext->frag) & 0xfff8) != 0;
	p->fragment = p->later_fragment || (bpf_ntohs(ext->frag) & 1);
	p->frag_id = ext->id;
	p->frag_proto = ext->next;
	return 8;
}

/* Parses an IPv6 header and its extension headers. Returns 0 if there is no IPv6 header or a
 * header is truncated. */
static __always_inline int parse_ipv6(struct __sk_buff *skb, struct packet *p, __u32 off)
{
	void *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;
	struct ipv6hdr *ip = data + off;
	__u32 end;
	__u8 next;

	if ((void *)(ip + 1) > data_end) {
		p->truncated = 1;
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
	for (int i = 0; i < 6 && is_extension_header(next); i++) {
		__u32 length = parse_extension_header(skb, p, off, next);

		off += length;
		next = p->key.proto;
		p->key.proto = 0;
		if (!length || off > HEADROOM)
			return 0;
		if (p->later_fragment)
			break;
	}
	p->key.proto = next;
	p->options = off - p->body;
	p->body = off;
	p->end = end;
	p->payload = bytes_between(off, end);
	return 1;
}

/* Adds a VLAN tag to the key. Tags are added from the outermost inwards. The VLAN ID is that of
 * the first tag whose ID is not 0; the rest is of the outermost tag. */
static __always_inline void parse_tag(struct packet *p, __u16 tci_host)
{
	if (!(p->key.vlan_host & VLAN_TAGGED))
		p->key.vlan_host = VLAN_TAGGED | (tci_host & (VLAN_ID | VLAN_PCP));
	else if (!(p->key.vlan_host & VLAN_ID))
		p->key.vlan_host |= tci_host & VLAN_ID;
}

/* Parses the link header, the VLAN tags and all headers that follow. */
static __always_inline void parse_link(struct __sk_buff *skb, struct packet *p)
{
	void *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;
	__u32 off = link_header;
	__u16 proto = skb->protocol;
	int ip = 0;

	if (link_header) {
		struct ethhdr *eth = data;

		if ((void *)(eth + 1) > data_end) {
			p->truncated = 1;
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
				p->truncated = 1;
				return;
			}
			parse_tag(p, bpf_ntohs(tag->tci));
			proto = tag->proto;
			off += 4;
		}
	}
	p->payload = bytes_between(off, skb->len);
	p->body = off;
	off = opaque_offset(&p->body);
	if (proto == bpf_htons(ETH_P_IP))
		ip = parse_ipv4(skb, p, off);
	else if (proto == bpf_htons(ETH_P_IPV6))
		ip = parse_ipv6(skb, p, off);
	else if (link_header)
		p->candidate = link_candidate(proto, data, data_end);
	if (ip && !p->later_fragment)
		parse_transport(skb, p);
}

/* Reports whether a candidate is a valid control packet. */
GLOBAL int is_control(struct __sk_buff *skb, const struct packet *p)
{
	__u32 off, bytes;

	if (!p)
		return 0;
	off = p->body;
	if (p->candidate >= CANDIDATE_ARP)
		return is_link_control(skb, p->candidate, off);
	/* A control packet is not a fragment, its frame has only padding after it, and it has no
	 * IP options, because those could carry data. The exceptions are the router alert options
	 * of MLD (always eight bytes) and IGMP (usually four bytes). */
	if (p->fragment || p->end < off || skb->len > (p->end > MIN_FRAME ? p->end : MIN_FRAME))
		return 0;
	if (p->options != (p->candidate == CANDIDATE_MLD ? 8 : 0) && !(p->candidate == CANDIDATE_IGMP && p->options == 4))
		return 0;
	bytes = p->end - off;
	switch (p->candidate) {
	case CANDIDATE_ACK:
		return 1; /* parse_transport has checked flags and payload */
	case CANDIDATE_DHCP:
		return p->key.family == FAMILY_IPV4 && udp_length_matches(skb, off, bytes) && is_dhcp(skb, &p->key, off + 8, bytes - 8);
	case CANDIDATE_DHCP6:
		return p->key.family == FAMILY_IPV6 && udp_length_matches(skb, off, bytes) && is_dhcp6(skb, &p->key, off + 8, bytes - 8);
	case CANDIDATE_IGMP:
		return is_igmp(skb, &p->key, p->hop_limit, off, bytes, p->options);
	}
	return is_icmp6_control(skb, p, off, bytes);
}

/* Sets the members of p, which must be all zero, from the headers in the linear part. */
static __always_inline void parse(struct __sk_buff *skb, struct packet *p)
{
	parse_link(skb, p);
	if (p->candidate && is_control(skb, p))
		p->control = p->candidate == CANDIDATE_ACK ? CONTROL_ACK : CONTROL_LINK;
}

/* Returns the layer-2 bytes of all segments of a packet, as HTB counts them
 * (net/core/dev.c, qdisc_pkt_len_init). At ingress the kernel has not computed that sum yet. */
static __always_inline __u32 wire_bytes(struct __sk_buff *skb, const struct packet *p)
{
	__u32 segs = skb->gso_segs;

	if (segs <= 1 || !p->headers)
		return skb->len;
	return skb->len + (segs - 1) * p->headers;
}

#endif
