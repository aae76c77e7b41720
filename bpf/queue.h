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
#define STANDING_MIN_PACKETS 5
#define BURST_NS (1000 * 1000ULL)

/* A longer pause is the application's, and says nothing of the path. */
#define GAP_MOST_NS (100 * 1000 * 1000ULL)
#define GAP_MEMORY 16

/* Before a round trip has been measured, and the shortest spacing of marks. */
#define INTERVAL_UNKNOWN_NS (100 * 1000 * 1000ULL)
/* The first mark comes earlier: a sender in slow start has half a round trip. */
#define FIRST_PART 8
#define INTERVAL_MOST_BYTES (128 << 20)
#define MARK_COUNT_MOST 1024

#define PERIOD_NS (8 * 1000 * 1000ULL)
#define IDLE_PART 25
#define SLACK_MOST_NS (4800 * 1000ULL)

/* An answer that comes later is not one. */
#define ANSWER_MOST_NS (1000 * 1000 * 1000ULL)

/* The virtual queue had nothing to send. The longest pause is remembered for
 * GAP_MEMORY times its length: with a window below the path's capacity there is
 * one a round trip. */
static __always_inline void pause(struct queue *q, __u64 idle, __u64 now)
{
	if (idle > GAP_MOST_NS)
		idle = GAP_MOST_NS;
	q->idle_ns += idle;
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

/* A sender's CWR answers a mark one round trip after the packet left. */
static __always_inline void ask_rtt(struct queue *q, __u32 flow, __u32 before, __u64 now)
{
	if (q->asked_at_ns && now - q->asked_at_ns < ANSWER_MOST_NS)
		return;
	q->asked_left_ns = 0;
	q->asked_flow = flow;
	q->asked_bytes = before;
	q->asked_at_ns = now;
}

static __always_inline void learn_rtt(struct queue *q, __u32 flow, __u64 now)
{
	__u64 rtt = now - q->asked_left_ns;

	if (!q->asked_at_ns || !q->asked_left_ns || q->asked_flow != flow)
		return;
	q->asked_at_ns = 0;
	if (rtt > ANSWER_MOST_NS)
		return;
	/* Down fast and up slowly: what makes an answer late is mostly not the path. */
	if (!q->rtt_ns)
		q->rtt_ns = rtt;
	else if (rtt < q->rtt_ns)
		q->rtt_ns -= (q->rtt_ns - rtt) / 4;
	else
		q->rtt_ns += (rtt - q->rtt_ns) / 32;
}

static __always_inline __u64 threshold(const struct queue *q)
{
	__u64 t = q->rtt_ns * 3 / 7;
	__u64 packets = THRESHOLD_MIN_PACKETS * 1514 * q->service_ps_byte / 1000;

	if (t > THRESHOLD_MAX_NS)
		t = THRESHOLD_MAX_NS;
	if (t < THRESHOLD_MIN_NS)
		t = THRESHOLD_MIN_NS;
	return (t > packets ? t : packets) + q->slack_ns;
}

/* What the rules do not know: machines that are late. Where marks leave the link
 * idle the queue may be longer, packet by packet, until they do not. */
static __always_inline void adapt(struct queue *q, __u64 now)
{
	__u64 period = now - q->period_at_ns;

	if (period < PERIOD_NS || period < 4 * q->rtt_ns)
		return;
	if (q->period_marks && q->idle_ns > period / IDLE_PART && period < 16 * (PERIOD_NS + q->rtt_ns)) {
		q->slack_ns += q->slack_ns / 8 + 2 * 1514 * q->service_ps_byte / 1000;
		if (q->slack_ns > SLACK_MOST_NS)
			q->slack_ns = SLACK_MOST_NS;
	} else {
		q->slack_ns -= q->slack_ns / 32;
	}
	q->period_at_ns = now;
	q->period_marks = 0;
	q->idle_ns = 0;
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
	if (q->rtt_ns && q->rtt_ns < 3 * packet && q->service_ps_byte < q->guarantee_ps_byte - q->guarantee_ps_byte / 8)
		t = packet * 3 / 2;
	return q->sojourn_ns > t + q->slack_ns && now - q->departed_at_ns < q->sojourn_ns;
}

/* A random number from half to one and a half of n. */
static __always_inline __u32 around(__u32 n)
{
	return n / 2 + ((__u64)n * bpf_get_prandom_u32() >> 32);
}

/* Whether this packet is to be marked, of a queue that is too long. As CoDel's
 * (RFC 8289, 3.2) intervals between marks shrink with each, but from two measured
 * round trips instead of 100 ms: what a sender does about a mark shows after one,
 * and a second mark before that would halve it twice. They are counted in bytes
 * that find the queue too long, and drawn at random around their length: by time,
 * and with a mark for whoever came first, the same senders were hit again and
 * again, and of four connections over 10 ms one took 88 %. */
static __always_inline int due(struct queue *q, __u32 bytes, __u32 arrived)
{
	__u64 ns = q->rtt_ns ? 2 * (q->rtt_ns + q->sojourn_ns) : INTERVAL_UNKNOWN_NS;
	__u64 interval = ns * 1000 / (q->service_ps_byte ?: 1);
	__u32 since = arrived - q->long_at_bytes;

	if (interval > INTERVAL_MOST_BYTES)
		interval = INTERVAL_MOST_BYTES;
	if (since > interval) { /* not too long any more, and now again */
		q->mark_count = q->mark_count > 2 && since < 8 * interval ? q->mark_count - 2 : 0;
		q->long_bytes = 0;
		q->mark_at_bytes = around(interval / FIRST_PART);
	}
	q->long_at_bytes = arrived;
	q->long_bytes += bytes;
	if (q->long_bytes < q->mark_at_bytes)
		return 0;
	q->long_bytes = 0;
	if (q->mark_count < MARK_COUNT_MOST)
		q->mark_count++;
	q->mark_at_bytes = around(interval / q->mark_count);
	return 1;
}

static __always_inline __u64 virtual_ps_byte(const struct queue *q)
{
	__u64 ps = q->service_ps_byte + q->service_ps_byte / SPARE_PART;

	return ps < q->guarantee_ps_byte ? ps : q->guarantee_ps_byte;
}

/* Brings the virtual queue up to date: what came since the last time, before this
 * packet, what was served, and this packet. */
static __always_inline void advance(struct queue *q, __u32 before, __u32 bytes, __u64 now, __u64 most)
{
	__u64 served = now - q->arrived_at_ns;
	__u64 ps_byte = virtual_ps_byte(q);
	__u64 queued = q->virtual_ns + (__u64)(before - q->counted_bytes) * ps_byte / 1000;

	q->arrived_at_ns = now;
	q->counted_bytes = before + bytes;
	if (served >= queued) {
		pause(q, served - queued, now);
		queued = 0;
	} else {
		queued -= served;
	}
	queued += bytes * ps_byte / 1000;
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
	adapt(q, now);
	if (p->answers)
		learn_rtt(q, bpf_get_hash_recalc(skb), now);
	if (((q->virtual_ns <= most || (q->sojourn_ns < THRESHOLD_MAX_NS && q->sojourn_ns < q->rtt_ns * 3 / 7)) && !stands(q, now)) || is_burst(q, now))
		return 0;
	if (!due(q, bytes, before + bytes) || !bpf_skb_ecn_set_ce(skb))
		return 0;
	q->period_marks++;
	ask_rtt(q, bpf_get_hash_recalc(skb), before, now);
	return 1;
}

#endif
#endif
