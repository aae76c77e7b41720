/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Bounds the wait in a queue that is one FIFO by the rate that its class has now. The
 * FIFO is bounded in bytes, by the ceiling; a class that is held to its guarantee by
 * others would keep those bytes for seconds. fq_codel bounds the wait by itself.
 *
 * What a program writes at once may wait as long as it takes: WRITE_BYTES may come
 * after the queue was short last. Then packets are dropped as CoDel does it (RFC
 * 8289, by due() in mark.h), one at a time; and if that does not help, all that would
 * wait too long.
 * docs/decisions/0026-queues-bounded-by-the-present-rate.md has the measurements. */
#ifndef HEADGATE_BOUND_H
#define HEADGATE_BOUND_H

#include "headgate.h"
#include "classify.h"
#include "mark.h"

const volatile __u8 bound_wait; /* the leaves are FIFOs: all, or BOUND_CLIENTS */
#define BOUND_CLIENTS 2 /* boundClients in shaper/htb/diff.go */

static __always_inline int is_bounded(__u32 class_minor)
{
#ifdef CLIENTS
	if (bound_wait == BOUND_CLIENTS)
		return class_minor >= FIRST_CLIENT;
#endif
	return bound_wait;
}

/* A queue is short that takes no longer than this, or than some packets and the bytes
 * between two looks. With less for a class that borrows, TCP in it fell back to its
 * guarantee: it had 10.3 Mbit/s of a share of 15.6. */
#define WAIT_MOST_NS (100 * 1000 * 1000ULL)
#define WAIT_LEAST_BYTES (16 * 1024)

/* One write, the least that a FIFO holds (shaper/htb/leaf.go, writeBytes), and after how
 * many of them, and how long, the sender has shown that single drops do not slow it down. */
#define WRITE_BYTES (320 * 1024)
#define WRITES_MOST 8
#define PATIENCE_NS (4 * 1000 * 1000 * 1000ULL)

/* Whoever has sent nothing for so long may write anew. */
#define REST_NS (1000 * 1000 * 1000ULL)

/* A hook that has seen nothing leave for as long as so many stamps take, and this, does not
 * know how long the queue is: its packets have gone with a link that was down, or with
 * another tree. */
#define STALE_STAMPS 8
#define STALE_NS (250 * 1000 * 1000ULL)

/* Whether the queue is full, so that the packet is to be dropped. The FIFO itself is
 * somewhat longer: what it drops is not known here. Acknowledgements have the rest, and
 * so are not lost behind a flood of their own group. */
static __always_inline int is_full(const struct queue *q, const struct packet *p, __u32 class_minor, __u32 bytes)
{
	__u32 backlog = q->arrived_bytes - q->departed_bytes;

	if (!is_bounded(class_minor) || !q->bound_bytes || backlog + bytes <= q->bound_bytes || backlog & 0x80000000)
		return 0;
	/* An empty queue takes any packet: a super-packet may be longer than what it holds. Of what
	 * has left it is known to a stamp. */
	if (backlog <= STAMP_EVERY || p->control == CONTROL_ACK)
		return 0;
	return bpf_ktime_get_ns() - q->left_at_ns < STALE_NS + (STALE_STAMPS * STAMP_EVERY * q->service_byte_time >> TIME_SHIFT);
}

/* Whether this packet is to be dropped; before is what came for the class before it and
 * was not dropped. */
GLOBAL int overdue(struct queue *q, const struct service *s, const struct pace *pace, __u32 before, __u32 bytes)
{
	__u64 waits, most;
	__s32 waiting;
	__u32 came;

	if (!bound_wait || !q || !s || !pace)
		return 0;
	waiting = before - q->departed_bytes;
	if (waiting < 0) /* another processor took back what it had added */
		waiting = 0;
	waits = (__u64)waiting * s->real_byte_time >> TIME_SHIFT;
	most = (WAIT_LEAST_BYTES + 4 * bytes) * s->real_byte_time >> TIME_SHIFT;
	came = before - q->short_at_bytes;
	if (most < WAIT_MOST_NS)
		most = WAIT_MOST_NS;
	if (q->flooded && waits > most / 2)
		return 0;
	q->flooded = 0;
	q->bound_bytes = pace->queue_bytes;
	if (waits <= most) {
		/* Whoever has filled it has a new write only after a while: a flood would
		 * fill it again and again. */
		if (waits <= most / 2 && (came <= WRITE_BYTES || bpf_ktime_get_ns() - q->left_at_ns > REST_NS))
			q->short_at_bytes = before;
		else if (came > WRITE_BYTES)
			q->short_at_bytes += came / 8;
		return 0;
	}
	if (came <= WRITE_BYTES)
		return 0;
	if (came > WRITES_MOST * WRITE_BYTES && (came * s->real_byte_time >> TIME_SHIFT) > PATIENCE_NS) {
		q->flooded = 1;
		q->bound_bytes = (most << TIME_SHIFT) / s->real_byte_time;
		return 0;
	}
	return due(q, s, bytes, before + bytes);
}

static __always_inline void count_drop(const struct __sk_buff *skb, __u32 class_minor)
{
	struct counter *c = bpf_map_lookup_elem(&counters, &class_minor);

	if (c)
		c->drops += segments(skb);
}

#endif
