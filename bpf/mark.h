/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The rules of marking. The thresholds of a class's queue follow from the round-trip time of
 * the path, which is measured between a mark and the sender's CWR. The interval between marks
 * follows from the service rate.
 * docs/decisions/0007-marking-by-a-virtual-queue.md has the measurements.
 */
#ifndef HEADGATE_MARK_H
#define HEADGATE_MARK_H

#include "headgate.h"

#define FRAME 1514

/* The threshold of the virtual queue. A queue of 3/7 of the round-trip time keeps a link busy
 * while a window falls to 0.7 (CUBIC, RFC 9438: (RTT + queue) * 0.7 >= RTT). The minimum is
 * for bursts of unpaced senders. The maximum, which holds for the real queue as well, is what
 * the real queue can hold. */
#define THRESHOLD_MIN_NS (4800 * 1000ULL)
#define THRESHOLD_MIN_PACKETS 8
#define THRESHOLD_MAX_NS (15 * 1000 * 1000ULL)

/* Thresholds of the real queue. */
#define STANDING_MIN_NS (300 * 1000ULL)
#define STANDING_MIN_PACKETS 5
#define GUARANTEED_MIN_PACKETS 8
#define BURST_NS (1000 * 1000ULL)

/* The period of the adaptation of slack_ns, the idle part of the time (1/IDLE_PART) above which
 * it grows, and its maximum. */
#define PERIOD_NS (8 * 1000 * 1000ULL)
#define IDLE_PART 25
#define MAX_SLACK_NS (4800 * 1000ULL)

/* The interval between marks before a round-trip time has been measured, its maximum in bytes,
 * and the maximum of the count by which it is divided. The first mark comes FIRST_PART times
 * earlier, because a sender in slow start doubles its window in one round-trip time. */
#define INTERVAL_UNKNOWN_NS (100 * 1000 * 1000ULL)
#define MAX_INTERVAL_BYTES (128 << 20)
#define MAX_MARK_COUNT 1024
#define FIRST_PART 8

/* A CWR that arrives later than this is not a response to the mark. */
#define MAX_CWR_WAIT_NS (1000 * 1000 * 1000ULL)

/* The current service of a class. */
struct service {
	__u64 real_byte_time;    /* byte time of the real queue */
	__u64 virtual_byte_time; /* byte time of the virtual queue */
	int borrows;             /* the service rate is above the guarantee */
};

/* Returns 3/7 of a round-trip time, without a division: a division takes up to 10 ns, and a
 * packet needed nine. */
static __always_inline __u64 threshold_part(__u64 rtt_ns)
{
	return rtt_ns * 439 >> 10;
}

/* Starts a measurement of the round-trip time: the sender's CWR arrives one round-trip time
 * after the departure of the marked packet. */
static __always_inline void start_rtt(struct queue *q, __u32 flow, __u32 before, __u64 now)
{
	if (q->asked_at_ns && now - q->asked_at_ns < MAX_CWR_WAIT_NS)
		return;
	q->asked_left_ns = 0;
	q->asked_flow = flow;
	q->asked_bytes = before;
	q->asked_at_ns = now;
}

/* Finishes the measurement when a packet with CWR arrives. */
static __always_inline void finish_rtt(struct queue *q, __u32 flow, __u64 now)
{
	__u64 rtt = now - q->asked_left_ns;

	if (!q->asked_at_ns || !q->asked_left_ns || q->asked_flow != flow)
		return;
	q->asked_at_ns = 0;
	if (rtt > MAX_CWR_WAIT_NS)
		return;
	/* The average falls fast and rises slowly, because a late CWR is mostly not due to the path. */
	if (!q->rtt_ns)
		q->rtt_ns = rtt;
	else if (rtt < q->rtt_ns)
		q->rtt_ns -= (q->rtt_ns - rtt) / 4;
	else
		q->rtt_ns += (rtt - q->rtt_ns) / 32;
}

/* Returns the threshold of the virtual queue in ns of service time. */
static __always_inline __u64 threshold(const struct queue *q, const struct service *s)
{
	__u64 t = threshold_part(q->rtt_ns);
	__u64 packets = THRESHOLD_MIN_PACKETS * FRAME * s->real_byte_time >> TIME_SHIFT;

	if (t > THRESHOLD_MAX_NS)
		t = THRESHOLD_MAX_NS;
	if (t < THRESHOLD_MIN_NS)
		t = THRESHOLD_MIN_NS;
	return (t > packets ? t : packets) + q->slack_ns;
}

/* Adapts the thresholds to the scheduling latency of the machine, which the rules do not know.
 * If marks leave the link idle for more than 4 % of the time, all thresholds grow by two
 * packets per period until they do not. With other work on all cores one CUBIC connection over
 * 0.1 ms had 82 to 89 % of the link without this rule, and 93 to 95 % with it. */
static __always_inline void adapt(struct queue *q, const struct service *s, __u64 now)
{
	__s64 period = now - q->period_at_ns;

	if (period < (__s64)PERIOD_NS || period < (__s64)(4 * q->rtt_ns))
		return;
	if (q->period_marks && q->idle_ns > period / IDLE_PART && period < (__s64)(16 * (PERIOD_NS + q->rtt_ns))) {
		q->slack_ns += q->slack_ns / 8 + (2 * FRAME * s->real_byte_time >> TIME_SHIFT);
		if (q->slack_ns > MAX_SLACK_NS)
			q->slack_ns = MAX_SLACK_NS;
	} else {
		q->slack_ns -= q->slack_ns / 32;
	}
	q->period_at_ns = now;
	q->period_marks = 0;
	q->idle_ns = 0;
}

/* Reports whether the real queue is long enough to keep the link busy while a window is
 * reduced. With the virtual queue alone, which fills by 1 % of the time, one CUBIC connection
 * over 10 ms had 90 % of the link. */
static __always_inline int is_filled(const struct queue *q)
{
	return q->sojourn_ns >= THRESHOLD_MAX_NS || q->sojourn_ns >= threshold_part(q->rtt_ns);
}

/* Reports whether the real queue is a standing queue that is too long. The virtual queue does
 * not show this if the path holds less than one packet: then the arrival rate never exceeds the
 * service rate. The threshold allows for bursts: those of an unpaced sender are up to one
 * millisecond of its rate (net/ipv4/tcp_output.c, tcp_tso_autosize). */
static __always_inline int has_standing_queue(const struct queue *q, const struct service *s, __u64 now)
{
	__u64 packet = FRAME * s->real_byte_time >> TIME_SHIFT;
	__u64 burst = q->rtt_ns < BURST_NS ? q->rtt_ns : BURST_NS;
	__u64 t = threshold_part(q->rtt_ns) + 2 * burst;

	if (!q->rtt_ns || t > THRESHOLD_MAX_NS)
		t = THRESHOLD_MAX_NS;
	if (t < STANDING_MIN_NS)
		t = STANDING_MIN_NS;
	if (s->borrows) {
		if (t < STANDING_MIN_PACKETS * packet)
			t = STANDING_MIN_PACKETS * packet;
		/* The minimum window of two packets fills the path. Then every packet may be
		 * marked, which also prevents delayed acknowledgements of the receiver. */
		if (q->rtt_ns && q->rtt_ns < 3 * packet)
			t = packet * 3 / 2;
	} else if (t < GUARANTEED_MIN_PACKETS * packet) {
		/* A group that gets no more than its guarantee must always have packets queued
		 * when HTB serves it. When it was marked by the virtual queue, or with a
		 * threshold of two packets, it had 34 of 40 %. */
		t = GUARANTEED_MIN_PACKETS * packet;
	}
	return q->sojourn_ns > t + q->slack_ns && now - q->departed_at_ns < q->sojourn_ns;
}

/* Returns a random number from n/2 to 3n/2. */
static __always_inline __u32 randomize(__u32 n)
{
	return n / 2 + ((__u64)n * bpf_get_prandom_u32() >> 32);
}

/* Reports whether this packet must be marked, given that the queue is too long. As in CoDel
 * (RFC 8289, 3.2) the interval shrinks with each mark. It starts with two measured round-trip
 * times instead of 100 ms: the effect of a mark is visible after one round-trip time, and a
 * second mark before that would reduce the sender twice. Intervals are counted in bytes that
 * arrive while the queue is too long, and have a random length around their mean. With
 * intervals in time, and a mark for the first packet after each, the same senders were marked
 * again and again: of four connections over 10 ms one had 88 %. */
static __always_inline int is_mark_due(struct queue *q, const struct service *s, __u32 bytes, __u32 arrived)
{
	__u64 ns = q->rtt_ns ? 2 * (q->rtt_ns + q->sojourn_ns) : INTERVAL_UNKNOWN_NS;
	__u64 interval = (ns << TIME_SHIFT) / s->real_byte_time;
	__s32 since = arrived - q->long_at_bytes; /* negative if another CPU was here with a later packet */

	if (interval > MAX_INTERVAL_BYTES)
		interval = MAX_INTERVAL_BYTES;
	if (since > (__s64)interval) { /* the queue was short in between */
		q->mark_count = q->mark_count > 2 && since < (__s64)(8 * interval) ? q->mark_count - 2 : 0;
		q->long_bytes = 0;
		q->mark_at_bytes = randomize(interval / FIRST_PART);
	}
	q->long_at_bytes = arrived;
	q->long_bytes += bytes;
	if (q->long_bytes < q->mark_at_bytes)
		return 0;
	q->long_bytes = 0;
	if (q->mark_count < MAX_MARK_COUNT)
		q->mark_count++;
	q->mark_at_bytes = randomize(interval / q->mark_count);
	return 1;
}

#endif
