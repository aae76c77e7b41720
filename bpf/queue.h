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
#define STAMP_BYTES 4 /* what had come for the class before */
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

/* The virtual queue is served at 99 % of the rate at which the real one is, so
 * that senders settle just below it and the real one stays empty. */
#define SPARE_PART 100

#define STAMP_EVERY 8192

/* The threshold: what keeps a link full through a reduction to 0.7 (CUBIC, RFC
 * 9438: (RTT + queue) * 0.7 >= RTT); never less than bursts of unpaced senders
 * take, nor more than the real queue holds. */
#define THRESHOLD_MIN_NS (4800 * 1000ULL)
#define THRESHOLD_MIN_PACKETS 8
#define THRESHOLD_MAX_NS (15 * 1000 * 1000ULL)

/* The same for the real queue. */
#define STANDING_MIN_NS (300 * 1000ULL)
#define STANDING_MIN_PACKETS 9
#define BURST_NS (1000 * 1000ULL)

/* A longer pause is the application's, and says nothing of the path. */
#define GAP_MOST_NS (100 * 1000 * 1000ULL)
#define GAP_MEMORY 16

/* Before a round trip has been measured, and the shortest spacing of marks. */
#define INTERVAL_UNKNOWN_NS (100 * 1000 * 1000ULL)
#define MARK_COUNT_MOST 1024

/* The virtual queue had nothing to send. The longest pause is remembered for
 * GAP_MEMORY times its length: with a window below the path's capacity there is
 * one a round trip. */
static __always_inline void pause(struct queue *q, __u64 idle, __u64 now)
{
	if (idle > GAP_MOST_NS)
		idle = GAP_MOST_NS;
	if (idle > q->gap_ns / 8)
		q->busy_since_ns = now;
	if (idle > q->gap_next_ns)
		q->gap_next_ns = idle;
	if (now - q->gap_at_ns > GAP_MEMORY * q->gap_ns) {
		q->gap_ns = q->gap_next_ns;
		q->gap_next_ns = 0;
		q->gap_at_ns = now;
	} else if (idle > q->gap_ns) {
		q->gap_ns = idle;
		q->gap_at_ns = now;
	}
}

/* Whether the queue is a burst in a window that does not fill the path: then no
 * queue would be there if the sender spread it over the round trip. */
static __always_inline int is_burst(const struct queue *q, __u64 now)
{
	return now - q->gap_at_ns < GAP_MEMORY * q->gap_ns && now - q->busy_since_ns < 2 * q->gap_ns;
}

/* A sender's CWR answers a mark after one round trip and the wait in this queue. */
static __always_inline void learn_rtt(struct queue *q, __u64 now)
{
	__u64 rtt = now - q->marked_at_ns;

	if (!q->marked_at_ns)
		return;
	q->marked_at_ns = 0;
	if (rtt < 1000 * 1000 * 1000ULL)
		/* Down at once and up slowly: what makes an answer late is mostly not
		 * the path. */
		q->rtt_ns = !q->rtt_ns || rtt < q->rtt_ns ? rtt : q->rtt_ns - q->rtt_ns / 32 + rtt / 32;
}

static __always_inline __u64 threshold(const struct queue *q)
{
	__u64 t = q->rtt_ns * 3 / 7;
	__u64 packets = THRESHOLD_MIN_PACKETS * 1514 * q->service_ps_byte / 1000;

	if (t > THRESHOLD_MAX_NS)
		t = THRESHOLD_MAX_NS;
	if (t < THRESHOLD_MIN_NS)
		t = THRESHOLD_MIN_NS;
	return t > packets ? t : packets;
}

/* Whether the real queue stands too long. A window can be below one packet over
 * the path, and then what arrives is only ever as much as is served, and a
 * virtual queue says nothing; a burst of an unpaced sender is up to a
 * millisecond of its rate (net/ipv4/tcp_output.c, tcp_tso_autosize). */
static __always_inline int stands(const struct queue *q, __u64 now)
{
	__u64 packet = 1514 * q->service_ps_byte / 1000;
	__u64 burst = q->rtt_ns < BURST_NS ? q->rtt_ns : BURST_NS;
	__u64 t = q->rtt_ns * 3 / 7 + 2 * burst;

	if (!q->rtt_ns || t > THRESHOLD_MAX_NS)
		t = THRESHOLD_MAX_NS;
	if (t < STANDING_MIN_NS)
		t = STANDING_MIN_NS;
	if (t < STANDING_MIN_PACKETS * packet)
		t = STANDING_MIN_PACKETS * packet;
	/* The least window, of two packets, fills the path: every mark is right, and
	 * keeps the receiver from delaying acknowledgements. */
	if (q->rtt_ns && q->rtt_ns < 3 * packet)
		t = packet * 3 / 2;
	return q->sojourn_ns > t && now - q->departed_at_ns < q->sojourn_ns;
}

/* One mark, then others at intervals that shrink with each, as CoDel's do (RFC
 * 8289, 3.2), but of two measured round trips instead of 100 ms: what a sender
 * does about a mark shows after one, and a second mark before that would halve
 * it twice. */
static __always_inline int due(struct queue *q, __u64 now)
{
	__u64 interval = q->rtt_ns ? 2 * q->rtt_ns : INTERVAL_UNKNOWN_NS;

	if (!q->marking) {
		q->marking = 1;
		q->mark_count = q->mark_count > 2 && now < q->next_mark_ns + 8 * interval ? q->mark_count - 2 : 1;
	} else if (now < q->next_mark_ns) {
		return 0;
	} else if (q->mark_count < MARK_COUNT_MOST) {
		q->mark_count++;
	}
	q->next_mark_ns = now + interval / q->mark_count;
	return 1;
}

/* Brings the virtual queue up to date: what came since the last time, before this
 * packet, what was served, and this packet. */
static __always_inline void advance(struct queue *q, __u32 before, __u32 bytes, __u64 now, __u64 most)
{
	__u64 served = now - q->arrived_at_ns;
	__u64 queued = q->virtual_ns + (__u64)(before - q->counted_bytes) * q->service_ps_byte / 1000;

	served -= served / SPARE_PART;
	q->arrived_at_ns = now;
	q->counted_bytes = before + bytes;
	if (served >= queued) {
		pause(q, served - queued, now);
		queued = 0;
	} else {
		queued -= served;
	}
	queued += bytes * q->service_ps_byte / 1000;
	q->virtual_ns = queued < 2 * most ? queued : 2 * most;
}

/* Adds the packet to its class's virtual queue and marks it if that is too long.
 * Returns whether it was marked. Only packets that can be marked, and one at
 * every STAMP_EVERY bytes of others, ask for the time and get a stamp: with a
 * stamp on each, a flood of small packets paid 140 ns in the departure hook. */
static __always_inline int enqueue(struct __sk_buff *skb, const struct packet *p, __u32 class_minor, __u32 bytes)
{
	__u32 before;
	__u64 now, most;
	struct queue *q;

	skb->cb[STAMP_TOKEN] = 0;
	if (!token)
		return 0;
	q = bpf_map_lookup_elem(&queues, &class_minor);
	if (!q)
		return 0;
	before = __sync_fetch_and_add(&q->arrived_bytes, bytes);
	if (!p->ecn && (before ^ (before + bytes)) < STAMP_EVERY)
		return 0;
	now = bpf_ktime_get_ns();
	skb->cb[STAMP_TOKEN] = token;
	skb->cb[STAMP_TIME] = (__u32)(now >> STAMP_SHIFT);
	skb->cb[STAMP_BYTES] = before;
	most = threshold(q);
	advance(q, before, bytes, now, most);
	if (!p->ecn)
		return 0;
	if (p->answers)
		learn_rtt(q, now);
	if ((q->virtual_ns <= most && !stands(q, now)) || is_burst(q, now)) {
		q->marking = 0;
		return 0;
	}
	if (!due(q, now) || !bpf_skb_ecn_set_ce(skb))
		return 0;
	if (!q->marked_at_ns)
		q->marked_at_ns = now + q->sojourn_ns;
	return 1;
}

#endif
#endif
