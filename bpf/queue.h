/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The marker: sets CE on ECN-capable packets whose class has a queue, by the
 * waiting time that the departure hook (shaper/htb/departures.c) measures. It
 * never drops.
 *
 * The stamp goes into the upper three words of cb, which survive from the filter
 * hook through the qdiscs to the device (HTB does not use them, TBF's segments
 * copy them, fq_codel uses the lower two). */
#ifndef HEADGATE_QUEUE_H
#define HEADGATE_QUEUE_H

#include "headgate.h"

#define STAMP_TOKEN 2
#define STAMP_TIME 3
#define STAMP_SHIFT 8 /* 256 ns units: wraps after 18 minutes */

#ifndef DEPARTURES

const volatile __u32 token; /* this device and direction, to the departure hook; 0: no hook */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 64); /* by class minor; the loader sets it by the groups */
	__uint(map_flags, BPF_F_INNER_MAP); /* the departure hook holds it in a map of maps */
	__type(key, __u32);
	__type(value, struct queue);
} queues SEC(".maps");

/* Ours, measured: see docs/decisions. */
#define THRESHOLD_MIN_NS  (300 * 1000ULL)
#define THRESHOLD_MAX_NS  (15 * 1000 * 1000ULL)

/* Time lost for want of packets, over the time since the last mark: above it the
 * threshold was too low for the path, and grows by a part of what was lost. */
#define IDLE_TOLERATED 256 /* one part in 256 */
#define IDLE_GAIN 8
#define DECAY 64

/* Stamps the packet and marks it if its class has waited too long. Returns
 * whether it was marked. */
static __always_inline int enqueue(struct __sk_buff *skb, const struct packet *p, __u32 class_minor)
{
	__u64 now, cycle, threshold;
	struct queue *q;

	if (!token)
		return 0;
	q = bpf_map_lookup_elem(&queues, &class_minor);
	if (!q)
		return 0;
	now = bpf_ktime_get_ns();
	skb->cb[STAMP_TOKEN] = token;
	skb->cb[STAMP_TIME] = (__u32)(now >> STAMP_SHIFT);
	threshold = q->threshold_ns;
	if (threshold < THRESHOLD_MIN_NS)
		threshold = THRESHOLD_MIN_NS;
	if (q->sojourn_ns <= threshold || !p->ecn)
		return 0;
	/* A queue that has stood still is not the one that was measured. */
	if (now - q->departed_at_ns > q->sojourn_ns + 100 * 1000 * 1000ULL)
		return 0;
	if (!bpf_skb_ecn_set_ce(skb))
		return 0;
	cycle = now - q->cycle_began_ns;
	if (cycle > 2 * q->sojourn_ns) {
		if (q->idle_ns > cycle / IDLE_TOLERATED)
			threshold += q->idle_ns / IDLE_GAIN;
		else
			threshold -= threshold / DECAY;
		if (threshold > THRESHOLD_MAX_NS)
			threshold = THRESHOLD_MAX_NS;
		q->threshold_ns = threshold;
		q->idle_ns = 0;
		q->cycle_began_ns = now;
	}
	return 1;
}

#endif
#endif
