//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
//
// A token bucket without a queue: packets that exceed it are dropped. It decides once per
// packet of the kernel, so that a super-packet passes or is dropped whole, as with
// act_police.

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

volatile const __u64 rate_bytes_per_s = 1;
volatile const __u64 burst_bytes = 1;

struct bucket {
	struct bpf_spin_lock lock;
	__u32 pad;
	__u64 tokens_ns; // tokens as time at the rate
	__u64 filled_at_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bucket);
} buckets SEC(".maps");

SEC("tc")
int policer(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct bucket *b = bpf_map_lookup_elem(&buckets, &zero);
	__u64 now = bpf_ktime_get_ns();
	__u64 depth = burst_bytes * 1000000000 / rate_bytes_per_s;
	__u64 cost = (__u64)skb->wire_len * 1000000000 / rate_bytes_per_s;
	int fits;

	if (!b)
		return TC_ACT_UNSPEC;
	bpf_spin_lock(&b->lock);
	b->tokens_ns += now - b->filled_at_ns;
	b->filled_at_ns = now;
	if (b->tokens_ns > depth)
		b->tokens_ns = depth;
	fits = b->tokens_ns >= cost;
	if (fits)
		b->tokens_ns -= cost;
	bpf_spin_unlock(&b->lock);
	// TC_ACT_STOLEN looks like a loss on the path. TC_ACT_SHOT at the sender's own egress
	// makes TCP wait for timers.
	return fits ? TC_ACT_UNSPEC : TC_ACT_STOLEN;
}
