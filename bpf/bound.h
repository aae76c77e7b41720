/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Bounds the sojourn time in a leaf that is a single FIFO, by the current service rate of its
 * class. The FIFO itself is bounded in bytes, computed from the ceiling. A class that other
 * classes hold to its guarantee would hold those bytes for seconds. fq_codel bounds the
 * sojourn time itself.
 *
 * A burst that a program writes at once may wait longer: up to WRITE_BYTES may arrive since
 * the queue was last short. Beyond that, single packets are dropped at the intervals of CoDel
 * (RFC 8289; is_mark_due() in mark.h). If the sender does not slow down, every packet that
 * would wait too long is dropped.
 * docs/decisions/0026-queues-bounded-by-the-present-rate.md has the measurements. */
#ifndef HEADGATE_BOUND_H
#define HEADGATE_BOUND_H

#include "headgate.h"
#include "classify.h"
#include "mark.h"

const volatile __u8 bound_wait; /* which leaves are FIFOs: 0 none, BOUND_CLIENTS those of clients, else all */
#define BOUND_CLIENTS 2 /* boundClients in shaper/htb/diff.go */

static __always_inline int is_bounded(__u32 class_minor)
{
#ifdef CLIENTS
	if (bound_wait == BOUND_CLIENTS)
		return class_minor >= FIRST_CLIENT;
#endif
	return bound_wait;
}

/* The longest acceptable sojourn time: MAX_WAIT_NS, or the service time of four packets and
 * MIN_WAIT_BYTES (more than the bytes between two samples) if that is longer. With less, TCP in
 * a class that borrows fell back to the guarantee: it had 10.3 Mbit/s of a share of 15.6. */
#define MAX_WAIT_NS (100 * 1000 * 1000ULL)
#define MIN_WAIT_BYTES (16 * 1024)

/* The size of one write, which is also the minimum length of a FIFO (writeBytes in
 * shaper/htb/leaf.go). A sender is unresponsive to drops if, since the queue was last short,
 * more than MAX_WRITES writes have arrived and their service time exceeds UNRESPONSIVE_NS. */
#define WRITE_BYTES (320 * 1024)
#define MAX_WRITES 8
#define UNRESPONSIVE_NS (4 * 1000 * 1000 * 1000ULL)

/* A queue without departures for this time accepts a new write of WRITE_BYTES. */
#define IDLE_NS (1000 * 1000 * 1000ULL)

/* If the departure hook has seen no departure for STALE_NS plus the service time of
 * STALE_STAMPS stamps, the backlog is unknown: the packets were lost with a link that was down,
 * or with a qdisc tree that was replaced. */
#define STALE_STAMPS 8
#define STALE_NS (250 * 1000 * 1000ULL)

/* Reports whether the queue is full, so that the packet must be dropped. The FIFO itself is
 * somewhat longer than bound_bytes, because the classifier does not see the FIFO's own drops
 * and would count them as backlog. Acknowledgements may use the rest of the FIFO, so that a
 * flood in their own group does not cause their loss. */
static __always_inline int is_full(const struct queue *q, const struct packet *p, __u32 class_minor, __u32 bytes)
{
	__u32 backlog = q->arrived_bytes - q->departed_bytes;

	if (!is_bounded(class_minor) || !q->bound_bytes || backlog + bytes <= q->bound_bytes || backlog & 0x80000000)
		return 0;
	/* An empty queue accepts any packet, because a super-packet may be longer than bound_bytes.
	 * The backlog is known to within STAMP_EVERY bytes. */
	if (backlog <= STAMP_EVERY || p->control == CONTROL_ACK)
		return 0;
	return bpf_ktime_get_ns() - q->left_at_ns < STALE_NS + (STALE_STAMPS * STAMP_EVERY * q->service_byte_time >> TIME_SHIFT);
}

/* Reports whether this packet must be dropped to bound the sojourn time. before is the number
 * of bytes that arrived for the class before it and were not dropped. */
GLOBAL int exceeds_wait(struct queue *q, const struct service *s, const struct pace *pace, __u32 before, __u32 bytes)
{
	__u64 wait_ns, max_wait_ns;
	__s32 backlog;
	__u32 arrived; /* bytes since the queue was last short */

	if (!bound_wait || !q || !s || !pace)
		return 0;
	backlog = before - q->departed_bytes;
	if (backlog < 0) /* another CPU subtracted the bytes of a packet that it dropped */
		backlog = 0;
	wait_ns = (__u64)backlog * s->real_byte_time >> TIME_SHIFT;
	max_wait_ns = (MIN_WAIT_BYTES + 4 * bytes) * s->real_byte_time >> TIME_SHIFT;
	arrived = before - q->short_at_bytes;
	if (max_wait_ns < MAX_WAIT_NS)
		max_wait_ns = MAX_WAIT_NS;
	if (q->flooded && wait_ns > max_wait_ns / 2)
		return 0;
	q->flooded = 0;
	q->bound_bytes = pace->queue_bytes;
	if (wait_ns <= max_wait_ns) {
		/* A sender that has used up WRITE_BYTES gets them back gradually. Otherwise a
		 * flood would fill the queue again and again. */
		if (wait_ns <= max_wait_ns / 2 && (arrived <= WRITE_BYTES || bpf_ktime_get_ns() - q->left_at_ns > IDLE_NS))
			q->short_at_bytes = before;
		else if (arrived > WRITE_BYTES)
			q->short_at_bytes += arrived / 8;
		return 0;
	}
	if (arrived <= WRITE_BYTES)
		return 0;
	if (arrived > MAX_WRITES * WRITE_BYTES && (arrived * s->real_byte_time >> TIME_SHIFT) > UNRESPONSIVE_NS) {
		q->flooded = 1;
		q->bound_bytes = (max_wait_ns << TIME_SHIFT) / s->real_byte_time;
		return 0;
	}
	return is_mark_due(q, s, bytes, before + bytes);
}

static __always_inline void count_drop(const struct __sk_buff *skb, __u32 class_minor)
{
	struct counter *c = bpf_map_lookup_elem(&counters, &class_minor);

	if (c)
		c->drops += segments(skb);
}

#endif
