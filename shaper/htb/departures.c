//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* The departure hook: sees every packet that a device begins to send, knows ours
 * by the stamp that the classifier left in it, and keeps for its class how long
 * it waited, how fast the queue is served, and how long it had nothing to send.
 * One program serves all shaped devices of the machine. */
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
struct qdisc_skb_cb { /* what skb->cb is inside the qdisc layer (include/net/sch_generic.h) */
	unsigned char data[20]; /* __sk_buff's cb[5] */
};
#pragma clang attribute pop

/* Makes the compiler describe the whole type, which the map below only points to. */
const struct queue *described __attribute__((unused));

/* The rate of service is the mean of 16 to 32 ms, and of at least 32 KB: a stall of
 * the machine, of some milliseconds every now and then, is then a few per cent. */
#define BUSY_MOST_NS (32 * 1000 * 1000ULL)
#define BUSY_LEAST_BYTES (4 * 1024)
#define BUSY_MOST_BYTES (64 * 1024)

/* More between two stamps than this is a counter that was set anew. */
#define BYTES_MOST (64 * 1024 * 1024)

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
	/* Nearly all packets carry no stamp, and leave here. */
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
	/* Two stamps of which the later one waited, and came before all of the other left:
	 * the queue was busy between them, and the time is that of its service. Where
	 * fq_codel lets one flow overtake another bytes go back and forth, and are
	 * right in sum. */
	if (waited > NO_WAIT_NS && now - waited < q->left_at_ns && bytes < BYTES_MOST && bytes > -BYTES_MOST) {
		if (q->busy_ns > BUSY_MOST_NS && q->busy_bytes > BUSY_MOST_BYTES) {
			q->busy_ns /= 2;
			q->busy_bytes /= 2;
		}
		q->queued_ns += now - q->departed_at_ns;
		q->queued_bytes += bytes;
		q->busy_ns += now - q->departed_at_ns;
		q->busy_bytes += bytes;
		if (q->busy_bytes > BUSY_LEAST_BYTES)
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
