/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* When a packet of a class is to be marked: how long its queue may be, by the
 * path's round trip, which is learnt from the answers to marks; and how often, by
 * the rate. docs/decisions/0007 has the measurements.
 */
#ifndef HEADGATE_MARK_H
#define HEADGATE_MARK_H

#include "headgate.h"

#define FRAME 1514

/* The threshold: what keeps a link full through a reduction to 0.7 (CUBIC, RFC
 * 9438: (RTT + queue) * 0.7 >= RTT), which is 3/7 of the round trip; of the virtual
 * queue never less than bursts of unpaced senders take, and of either not more
 * than the real queue holds. */
#define THRESHOLD_MIN_NS (4800 * 1000ULL)
#define THRESHOLD_MIN_PACKETS 8
#define THRESHOLD_MAX_NS (15 * 1000 * 1000ULL)

/* The same for the real queue alone. */
#define STANDING_MIN_NS (300 * 1000ULL)
#define STANDING_MIN_PACKETS 5
#define GUARANTEED_MIN_PACKETS 8
#define BURST_NS (1000 * 1000ULL)

/* How often the slack is adapted, at what idle time it grows, and its most. */
#define PERIOD_NS (8 * 1000 * 1000ULL)
#define IDLE_PART 25
#define SLACK_MOST_NS (4800 * 1000ULL)

/* Before a round trip has been measured, and the shortest spacing of marks. The
 * first mark comes earlier: a sender in slow start doubles in one round trip. */
#define INTERVAL_UNKNOWN_NS (100 * 1000 * 1000ULL)
#define INTERVAL_MOST_BYTES (128 << 20)
#define MARK_COUNT_MOST 1024
#define FIRST_PART 8

/* An answer that comes later is not one. */
#define ANSWER_MOST_NS (1000 * 1000 * 1000ULL)

/* A class as the rules see it. */
struct service {
	__u64 real_byte_time;    /* time that one byte takes in the real queue, */
	__u64 virtual_byte_time; /* and in the virtual one */
	int borrows;             /* it is served faster than its guarantee says */
};

/* 3/7, without a division: each costs up to 10 ns, and a packet needed nine. */
static __always_inline __u64 part(__u64 rtt_ns)
{
	return rtt_ns * 439 >> 10;
}

/* Asks for the round trip: a sender's CWR answers a mark one round trip after the
 * marked packet left. */
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

/* How long the virtual queue may be. */
static __always_inline __u64 threshold(const struct queue *q, const struct service *s)
{
	__u64 t = part(q->rtt_ns);
	__u64 packets = THRESHOLD_MIN_PACKETS * FRAME * s->real_byte_time >> TIME_SHIFT;

	if (t > THRESHOLD_MAX_NS)
		t = THRESHOLD_MAX_NS;
	if (t < THRESHOLD_MIN_NS)
		t = THRESHOLD_MIN_NS;
	return (t > packets ? t : packets) + q->slack_ns;
}

/* What the rules do not know is how late the machine is. Where marks leave the
 * link idle for more than 4 % of the time queues may be longer, by two packets a
 * period, until they do not. With other work on all cores one CUBIC over 0.1 ms
 * had 82 to 89 % of the link without this, and 93 to 95 with it. */
static __always_inline void adapt(struct queue *q, const struct service *s, __u64 now)
{
	__s64 period = now - q->period_at_ns;

	if (period < (__s64)PERIOD_NS || period < (__s64)(4 * q->rtt_ns))
		return;
	if (q->period_marks && q->idle_ns > period / IDLE_PART && period < (__s64)(16 * (PERIOD_NS + q->rtt_ns))) {
		q->slack_ns += q->slack_ns / 8 + (2 * FRAME * s->real_byte_time >> TIME_SHIFT);
		if (q->slack_ns > SLACK_MOST_NS)
			q->slack_ns = SLACK_MOST_NS;
	} else {
		q->slack_ns -= q->slack_ns / 32;
	}
	q->period_at_ns = now;
	q->period_marks = 0;
	q->idle_ns = 0;
}

/* Whether the real queue fills the path through a reduction. The virtual queue
 * alone, which fills by 1 % of the time, had one CUBIC over 10 ms at 90 %. */
static __always_inline int is_filled(const struct queue *q)
{
	return q->sojourn_ns >= THRESHOLD_MAX_NS || q->sojourn_ns >= part(q->rtt_ns);
}

/* Whether the real queue stands too long. A window can be below one packet over
 * the path, and then what arrives is only ever as much as is served, and a
 * virtual queue says nothing; a burst of an unpaced sender is up to a
 * millisecond of its rate (net/ipv4/tcp_output.c, tcp_tso_autosize). */
static __always_inline int stands(const struct queue *q, const struct service *s, __u64 now)
{
	__u64 packet = FRAME * s->real_byte_time >> TIME_SHIFT;
	__u64 burst = q->rtt_ns < BURST_NS ? q->rtt_ns : BURST_NS;
	__u64 t = part(q->rtt_ns) + 2 * burst;

	if (!q->rtt_ns || t > THRESHOLD_MAX_NS)
		t = THRESHOLD_MAX_NS;
	if (t < STANDING_MIN_NS)
		t = STANDING_MIN_NS;
	if (s->borrows) {
		if (t < STANDING_MIN_PACKETS * packet)
			t = STANDING_MIN_PACKETS * packet;
		/* The least window, of two packets, fills the path: every mark is right,
		 * and keeps the receiver from delaying acknowledgements. */
		if (q->rtt_ns && q->rtt_ns < 3 * packet)
			t = packet * 3 / 2;
	} else if (t < GUARANTEED_MIN_PACKETS * packet) {
		/* A group that has no more than its guarantee must always have something
		 * to send when its turn comes: held below by the virtual queue, or with
		 * two packets, it had 34 of 40 %. */
		t = GUARANTEED_MIN_PACKETS * packet;
	}
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
static __always_inline int due(struct queue *q, const struct service *s, __u32 bytes, __u32 arrived)
{
	__u64 ns = q->rtt_ns ? 2 * (q->rtt_ns + q->sojourn_ns) : INTERVAL_UNKNOWN_NS;
	__u64 interval = (ns << TIME_SHIFT) / s->real_byte_time;
	__s32 since = arrived - q->long_at_bytes; /* below 0: another CPU was faster here */

	if (interval > INTERVAL_MOST_BYTES)
		interval = INTERVAL_MOST_BYTES;
	if (since > (__s64)interval) { /* not too long any more, and now again */
		q->mark_count = q->mark_count > 2 && since < (__s64)(8 * interval) ? q->mark_count - 2 : 0;
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

#endif
