/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* From a packet to the fields that rules ask for. Tunnels are seen by their outer
 * header. Reads linear data only, after pulling in what a header needs. */
#ifndef HEADGATE_PARSE_H
#define HEADGATE_PARSE_H

#include "headgate.h"

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <linux/icmpv6.h>
#include <stddef.h>

#define VLAN_VID_MASK 0x0fff
#define IP_FRAGMENT_OFFSET 0x1fff
#define IP_MORE_FRAGMENTS 0x2000
#define PROTO_AUTH 51

/* The device's: 14 for Ethernet, 0 for a tunnel device. Written by the loader. */
const volatile __u32 link_header = ETH_HLEN;

/* The verifier looks at a global function once, with any argument, and not once
 * more for each way that leads to it. What follows a parser with some hundred ways
 * through it would else have to be verified as often. */
#define GLOBAL __attribute__((noinline))

/* Enough for Ethernet, two tags, IPv6 with some options, and TCP with options. */
#define HEADROOM 160

struct packet {
	struct flow_key key;
	__u32 frag_id;
	__u32 headers; /* bytes before the transport payload; 0 if unknown */
	__u32 payload; /* bytes after the last header that is known; a super-packet's whole, once */
	__u8 fragment; /* part of a datagram that was cut up */
	__u8 part_of;  /* its protocol by each of its parts; a first part with options shows another */
	__u8 later;    /* and not its first part, so without ports */
	__u8 control;  /* must not be starved: see doc.go of shaper/htb */
	__u8 ecn;      /* the two ECN bits */
	__u8 answers;  /* TCP's CWR: the sender has slowed down for a mark */
	__u8 cut;      /* a header goes on beyond the linear data */
};

/* Link-level control: ARP, LLDP, EAPOL, slow protocols (LACP), and whatever goes
 * to the bridges' own group addresses (STP, 01:80:c2:00:00:0x). */
static __always_inline int link_control(__u16 proto_host, const struct ethhdr *eth)
{
	if (proto_host == ETH_P_ARP || proto_host == ETH_P_LLDP || proto_host == ETH_P_PAE || proto_host == ETH_P_SLOW)
		return 1;
	return eth && eth->h_dest[0] == 0x01 && eth->h_dest[1] == 0x80 && eth->h_dest[2] == 0xc2 &&
	       eth->h_dest[3] == 0 && eth->h_dest[4] == 0 && eth->h_dest[5] < 0x10;
}

/* DHCP for IPv4 (67, 68) and IPv6 (546, 547), between its own ports only. */
static __always_inline int dhcp(__u16 sport, __u16 dport)
{
	__u16 s = bpf_ntohs(sport), d = bpf_ntohs(dport);

	return ((s == 67 || s == 68) && (d == 67 || d == 68)) || ((s == 546 || s == 547) && (d == 546 || d == 547));
}

static __always_inline __u32 from(__u32 off, __u32 end) { return end > off ? end - off : 0; }

/* Ports, pure acknowledgements and DHCP. end is the offset of the packet's end
 * by its IP header. */
static __always_inline void parse_transport(struct __sk_buff *skb, struct packet *p, __u32 off, __u32 end)
{
	void *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;

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
		p->control = tcp->ack && !tcp->syn && !tcp->fin && !tcp->rst && !p->fragment && end == p->headers;
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
		if (p->key.proto == IPPROTO_UDP)
			p->control = dhcp(udp->source, udp->dest);
	} else if (p->key.proto == IPPROTO_ICMPV6 && p->key.family == FAMILY_IPV6) {
		struct icmp6hdr *icmp = data + off;

		if ((void *)(icmp + 1) > data_end) {
			p->cut = 1;
			return;
		}
		/* Router and neighbour solicitation, advertisement, redirect (RFC 4861). */
		p->control = icmp->icmp6_type >= 133 && icmp->icmp6_type <= 137;
	}
}

static __always_inline void parse_ipv4(struct __sk_buff *skb, struct packet *p, __u32 off)
{
	void *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;
	struct iphdr *ip = data + off;
	__u32 end;
	__u16 frag;

	if ((void *)(ip + 1) > data_end) {
		p->cut = 1;
		return;
	}
	if (ip->version != 4 || ip->ihl < 5)
		return;
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
	p->payload = from(off, end);
	if (!p->later)
		parse_transport(skb, p, off, end);
}

static __always_inline void parse_ipv6(struct __sk_buff *skb, struct packet *p, __u32 off)
{
	void *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;
	struct ipv6hdr *ip = data + off;
	__u32 end;
	__u8 next;

	if ((void *)(ip + 1) > data_end) {
		p->cut = 1;
		return;
	}
	if (ip->version != 6)
		return;
	p->key.family = FAMILY_IPV6;
	__builtin_memcpy(p->key.src, &ip->saddr, 16);
	__builtin_memcpy(p->key.dst, &ip->daddr, 16);
	p->key.dscp = (ip->priority << 2) | (ip->flow_lbl[0] >> 6);
	p->ecn = (ip->flow_lbl[0] >> 4) & 3;
	next = ip->nexthdr;
	end = ip->payload_len ? off + sizeof(*ip) + bpf_ntohs(ip->payload_len) : skb->len;
	off += sizeof(*ip);
	for (int i = 0; i < 6; i++) {
		struct { __u8 next, len; __u16 frag; __u32 id; } *ext = data + off;

		if (next != IPPROTO_HOPOPTS && next != IPPROTO_ROUTING && next != IPPROTO_DSTOPTS &&
		    next != IPPROTO_FRAGMENT && next != PROTO_AUTH)
			break;
		if ((void *)(ext + 1) > data_end) {
			p->cut = 1;
			return;
		}
		if (next == IPPROTO_FRAGMENT) {
			p->later = (bpf_ntohs(ext->frag) & 0xfff8) != 0;
			p->fragment = p->later || (bpf_ntohs(ext->frag) & 1);
			p->frag_id = ext->id;
			p->part_of = ext->next;
			off += 8;
		} else if (next == PROTO_AUTH) {
			off += (ext->len + 2) * 4;
		} else {
			off += (ext->len + 1) * 8;
		}
		next = ext->next;
		if (off > HEADROOM)
			return;
		if (p->later)
			break;
	}
	p->key.proto = next;
	p->payload = from(off, end);
	if (!p->later)
		parse_transport(skb, p, off, end);
}

static __always_inline void parse_link(struct __sk_buff *skb, struct packet *p)
{
	void *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;
	__u32 off = link_header;
	__u16 proto = skb->protocol;

	if (link_header) {
		struct ethhdr *eth = data;

		if ((void *)(eth + 1) > data_end) {
			p->cut = 1;
			return;
		}
		proto = eth->h_proto;
		if (skb->vlan_present)
			p->key.vlan_host = skb->vlan_tci & VLAN_VID_MASK;
		for (int i = 0; i < 2; i++) {
			struct { __u16 tci, proto; } *tag = data + off;

			if (proto != bpf_htons(ETH_P_8021Q) && proto != bpf_htons(ETH_P_8021AD))
				break;
			if ((void *)(tag + 1) > data_end) {
				p->cut = 1;
				return;
			}
			if (!p->key.vlan_host)
				p->key.vlan_host = bpf_ntohs(tag->tci) & VLAN_VID_MASK;
			proto = tag->proto;
			off += 4;
		}
		if (link_control(bpf_ntohs(proto), eth)) {
			p->control = 1;
			return;
		}
	}
	p->payload = from(off, skb->len);
	if (proto == bpf_htons(ETH_P_IP))
		parse_ipv4(skb, p, off);
	else if (proto == bpf_htons(ETH_P_IPV6))
		parse_ipv6(skb, p, off);
}

/* Fills in a packet that is all zero. Headers nearly always lie in the linear
 * part of a packet; to pull more into it copies the packet's head, which took 14
 * of 100 parts of one connection's throughput, so that is done only after one was
 * found cut. */
GLOBAL int parse(struct __sk_buff *skb, struct packet *p)
{
	if (!p)
		return 0;
	parse_link(skb, p);
	if (p->cut) {
		__builtin_memset(p, 0, sizeof(*p));
		bpf_skb_pull_data(skb, skb->len < HEADROOM ? skb->len : HEADROOM);
		parse_link(skb, p);
	}
	return 0;
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
