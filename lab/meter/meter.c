//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
//
// Counts the layer-2 bytes that arrive per flow and per bin of time. There are two
// programs: a classifier at a device's ingress, and a filter on a receiving socket.

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define VLAN_BYTES 4
#define IP6_BYTES 40
#define TCP_DOFF_AT 12
#define UDP_BYTES 8

// Set before loading.
volatile const __u64 bin_ns = 1000000;
volatile const __u32 bins_per_flow = 1;

struct totals {
	__u64 bytes;
	__u64 packets; // segments, as on the wire
	__u64 skbs;    // as received: a super-packet counts once
	__u64 outside_bytes; // before the start or after the last bin; not in bytes
};

// The key of flow_of_port.
struct port_key {
	__u16 port; // host order
	__u8 proto;
	__u8 dst; // 1: port is the destination port, 0: the source port
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct port_key);
	__type(value, __u32);
} flow_of_port SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64); // socket cookie
	__type(value, __u32);
} flow_of_socket SEC(".maps");

// The start of bin 0 (bpf_ktime_get_ns); 0: not started.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} start_ns SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); // flows * bins_per_flow, set before loading
	__type(key, __u32);
	__type(value, __u64); // bytes
} bins SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); // flows, set before loading
	__type(key, __u32);
	__type(value, struct totals);
} flow_totals SEC(".maps");

static __always_inline void count(__u32 flow, __u64 bytes, __u64 packets)
{
	__u32 zero = 0;
	__u64 *start = bpf_map_lookup_elem(&start_ns, &zero);
	struct totals *t = bpf_map_lookup_elem(&flow_totals, &flow);
	if (!start || !t)
		return;
	__u64 now = bpf_ktime_get_ns();
	__u64 bin = (now - *start) / bin_ns;
	if (!*start || now < *start || bin >= bins_per_flow) {
		__sync_fetch_and_add(&t->outside_bytes, bytes);
		return;
	}
	__u32 at = flow * bins_per_flow + (__u32)bin;
	__u64 *b = bpf_map_lookup_elem(&bins, &at);
	if (!b)
		return;
	__sync_fetch_and_add(b, bytes);
	__sync_fetch_and_add(&t->bytes, bytes);
	__sync_fetch_and_add(&t->packets, packets);
	__sync_fetch_and_add(&t->skbs, 1);
}

// Returns the number of segments of a packet with this payload in bytes. It does not
// use gso_segs, which is 0 in packets from a TAP device (SKB_GSO_DODGY).
static __always_inline __u64 segments(struct __sk_buff *skb, __u64 payload)
{
	__u64 size = skb->gso_size;
	return size && payload > size ? (payload + size - 1) / size : 1;
}

// The result of parse.
struct headers {
	__u32 bytes; // of the network and transport headers
	__u8 proto;
	__u16 sport, dport;
};

// Parses the network and transport headers. Returns -1 for a packet that is neither TCP
// nor UDP over IP, and for later fragments, which have no ports. IPv6 extension headers
// are not parsed, because lab traffic has none.
static __always_inline int parse(struct __sk_buff *skb, struct headers *h)
{
	__u8 first, doff;
	__be16 ports[2];
	__u32 ip;
	if (bpf_skb_load_bytes_relative(skb, 0, &first, 1, BPF_HDR_START_NET))
		return -1;
	if (first >> 4 == 4) {
		__be16 frag;
		ip = (first & 0xf) * 4;
		if (bpf_skb_load_bytes_relative(skb, 6, &frag, 2, BPF_HDR_START_NET) ||
		    bpf_skb_load_bytes_relative(skb, 9, &h->proto, 1, BPF_HDR_START_NET))
			return -1;
		if (frag & bpf_htons(0x1fff))
			return -1;
	} else {
		ip = IP6_BYTES;
		if (bpf_skb_load_bytes_relative(skb, 6, &h->proto, 1, BPF_HDR_START_NET))
			return -1;
	}
	if (h->proto != IPPROTO_TCP && h->proto != IPPROTO_UDP)
		return -1;
	if (bpf_skb_load_bytes_relative(skb, ip, ports, sizeof(ports), BPF_HDR_START_NET))
		return -1;
	h->sport = bpf_ntohs(ports[0]);
	h->dport = bpf_ntohs(ports[1]);
	h->bytes = ip + UDP_BYTES;
	if (h->proto == IPPROTO_TCP) {
		if (bpf_skb_load_bytes_relative(skb, ip + TCP_DOFF_AT, &doff, 1, BPF_HDR_START_NET))
			return -1;
		h->bytes = ip + (doff >> 4) * 4;
	}
	return 0;
}

// At ingress the packet of cls_bpf starts with the Ethernet header, so that len
// includes the headers once. Every further segment repeats all headers.
SEC("tc")
int meter_device(struct __sk_buff *skb)
{
	struct headers h = {};
	if (skb->protocol != bpf_htons(ETH_P_IP) && skb->protocol != bpf_htons(ETH_P_IPV6))
		return TC_ACT_UNSPEC;
	if (parse(skb, &h))
		return TC_ACT_UNSPEC;
	struct port_key k = { .port = h.dport, .proto = h.proto, .dst = 1 };
	__u32 *flow = bpf_map_lookup_elem(&flow_of_port, &k);
	if (!flow) {
		k.port = h.sport;
		k.dst = 0;
		flow = bpf_map_lookup_elem(&flow_of_port, &k);
	}
	if (!flow)
		return TC_ACT_UNSPEC;
	__u64 each = ETH_HLEN + h.bytes + (skb->vlan_present ? VLAN_BYTES : 0);
	__u64 payload = skb->len - ETH_HLEN - h.bytes;
	__u64 n = segments(skb, payload);
	count(*flow, payload + n * each, n);
	return TC_ACT_UNSPEC;
}

// The packet of a socket filter starts with the transport header (tcp_filter,
// udp_queue_rcv_one_skb). The filter runs in the softirq that received the packet, and
// is independent of the application.
SEC("socket")
int meter_socket(struct __sk_buff *skb)
{
	__u64 cookie = bpf_get_socket_cookie(skb);
	__u32 *flow = bpf_map_lookup_elem(&flow_of_socket, &cookie);
	struct headers h = {};
	if (!flow || parse(skb, &h))
		return -1; // keep the whole packet
	__u8 first;
	if (bpf_skb_load_bytes_relative(skb, 0, &first, 1, BPF_HDR_START_NET))
		return -1;
	__u32 ip = first >> 4 == 4 ? (first & 0xf) * 4 : IP6_BYTES;
	__u64 payload = skb->len - (h.bytes - ip);
	__u64 n = segments(skb, payload);
	count(*flow, payload + n * (ETH_HLEN + h.bytes), n);
	return -1;
}
