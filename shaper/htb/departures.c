//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* The departure hook. It is called for every packet that a device starts to transmit, and
 * recognizes classified packets by the classifier's stamp. For each class it measures the
 * sojourn time and the service rate of the queue. One program serves all shaped devices of the
 * machine. */
#define DEPARTURES
#include "headgate.h"
#include "queue.h"
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct net_device {
	int ifindex;
};
struct sk_buff {
	char cb[48];
};
struct qdisc_skb_cb { /* the layout of skb->cb in the qdisc layer (include/net/sch_generic.h) */
	unsigned char data[20]; /* __sk_buff's cb[5] */
};
#pragma clang attribute pop

/* Makes the compiler emit the full BTF of the type, to which the map below has only a pointer. */
const struct queue *described __attribute__((unused));

/* The service rate is a mean over 16 to 32 ms of busy time and at least 32 KB. An occasional
 * stall of the machine for some milliseconds then changes it by a few per cent only. */
#define MAX_BUSY_NS (32 * 1000 * 1000ULL)
#define MIN_BUSY_BYTES (4 * 1024)
#define MAX_BUSY_BYTES (64 * 1024)

/* A larger distance between two stamps means that the counter was reset. */
#define MAX_STAMP_BYTES (64 * 1024 * 1024)

struct inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 64);
	__uint(map_flags, BPF_F_INNER_MAP | ALIGNED);
	__type(key, __u32);
	__type(value, struct queue);
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, 4096);
	__type(key, __u32); /* token, in the upper half */
	__array(values, struct inner);
} devices SEC(".maps");

SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(headgate_departures, const struct sk_buff *skb, const struct net_device *dev)
{
	/* Nearly all packets have no stamp, and the program ends early. */
	const __u32 *cb = (const __u32 *)((const struct qdisc_skb_cb *)skb->cb)->data;
	__u32 token = cb[STAMP_TOKEN] & 0xffff0000;
	__u32 minor = cb[STAMP_TOKEN] & 0xffff;
	__u64 now, waited;
	__s32 bytes;
	struct queue *q;
	void *queues;

	if (!token)
		return 0;
	queues = bpf_map_lookup_elem(&devices, &token);
	if (!queues)
		return 0;
	q = bpf_map_lookup_elem(queues, &minor);
	if (!q || q->ifindex != (__u32)dev->ifindex)
		return 0;

	now = bpf_ktime_get_ns();
	waited = (__u64)((__u32)(now >> STAMP_SHIFT) - cb[STAMP_TIME]) << STAMP_SHIFT;
	bytes = cb[STAMP_BYTES] - q->departed_bytes;
	if (!bytes && q->departures) {
		q->left_at_ns = now; /* another segment of the same packet */
		return 0;
	}
	/* If the later of two stamped packets was queued, and arrived before the earlier one had
	 * departed completely, the queue was busy between the two departures, and the time between
	 * them is service time. If fq_codel reorders flows, bytes can be negative; the sum is
	 * correct. */
	if (waited > NO_WAIT_NS && now - waited < q->left_at_ns && bytes < MAX_STAMP_BYTES && bytes > -MAX_STAMP_BYTES) {
		if (q->busy_ns > MAX_BUSY_NS && q->busy_bytes > MAX_BUSY_BYTES) {
			q->busy_ns /= 2;
			q->busy_bytes /= 2;
		}
		q->queued_ns += now - q->departed_at_ns;
		q->queued_bytes += bytes;
		q->busy_ns += now - q->departed_at_ns;
		q->busy_bytes += bytes;
		if (q->busy_bytes > MIN_BUSY_BYTES)
			q->service_byte_time = (q->busy_ns << TIME_SHIFT) / (__u64)q->busy_bytes;
	}
	if (q->asked_bytes == cb[STAMP_BYTES] && q->asked_at_ns && !q->asked_left_ns)
		q->asked_left_ns = now;
	q->sojourn_ns = waited;
	q->departed_at_ns = now;
	q->left_at_ns = now;
	q->departed_bytes = cb[STAMP_BYTES];
	q->waited_ns += waited;
	q->departures++;
	return 0;
}

LICENSE;
