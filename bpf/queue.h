/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The marker: sets CE on ECN-capable packets whose class has a queue, by a virtual
 * queue and by the waiting time that the departure hook (shaper/htb/departures.c)
 * measures. It never drops. The rules are in mark.h.
 *
 * The stamp goes into the upper three words of cb, which survive from the filter
 * hook through the qdiscs to the device (HTB does not use them, TBF's segments
 * copy them, fq_codel uses the lower two). The classes are in the two words below, which
 * the filters of HTB (shaper/htb/class.c) read before fq_codel writes there. */
#ifndef HEADGATE_QUEUE_H
#define HEADGATE_QUEUE_H

#include "headgate.h"

#define STAMP_LEVELS 0 /* class minors of the first level of groups, and of the second in the upper half */
#define STAMP_CLASS 1 /* qdisc handle and the leaf's class minor */
#define STAMP_TOKEN 2 /* the token, and the class minor in the lower half; 0: no stamp */
#define STAMP_TIME 3
#define STAMP_BYTES 4 /* what had come for the class before */
#define STAMP_SHIFT 8 /* 256 ns units: wraps after 18 minutes */

/* The major number of our qdiscs: "HG" (shaper/htb/tree.go). */
#define QDISC_MAJOR 0x4847

/* With the minor of a group that has groups, the major number of its own HTB (shaper/htb/tree.go). */
#define INNER_MAJOR 0x8000

/* Waits below this are those of an empty queue: the way from the filter hook to
 * the device takes a few microseconds, and a timer some more. */
#define NO_WAIT_NS (20 * 1000ULL)

#if !defined(DEPARTURES) && !defined(CLASS_FILTER)

/* How often a class's packets are looked at, in bytes: those that can be marked, and
 * the others. Of those that can be, as many as take LOOK_NS cost no more than one: up to
 * 400 Mbit/s that is a full frame, and beyond a part of what a queue may be (mark.h). */
#define LOOK_EVERY 1024
#define LOOK_NS (20 * 1000ULL)
#define STAMP_EVERY 8192
#define STAMP_LEAST 128
#define STAMP_WITHIN ((1000 * 1000 * 1000ULL << TIME_SHIFT) / 32)
#define NO_GUARANTEE (1000 * 1000 * 1000ULL << TIME_SHIFT) /* a byte a second */

#include "mark.h"
#include "bound.h"

const volatile __u32 token; /* this device and direction, to the departure hook, in the upper half; 0: no hook */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 64); /* by class minor; the loader sets it by the groups */
	__uint(map_flags, BPF_F_INNER_MAP | ALIGNED); /* the departure hook holds it in a map of maps */
	__type(key, __u32);
	__type(value, struct queue);
} queues SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 64); /* as queues */
	__type(key, __u32);
	__type(value, struct pace);
} paces SEC(".maps");

/* The virtual queue is served at 127/128 of the rate at which the real one is, so
 * that senders settle just below it and the real one stays empty. */
#define SPARE_SHIFT 7

/* A longer pause is the application's, and says nothing of the path. */
#define GAP_MOST_NS (100 * 1000 * 1000ULL)
#define GAP_MEMORY 16

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

/* How fast a class is served: as measured, but no faster than its ceiling allows. */
static __always_inline void serve(struct service *s, const struct queue *q, const struct pace *p)
{
	s->real_byte_time = (q->service_byte_time > p->ceiling_byte_time ? q->service_byte_time : p->ceiling_byte_time) ?: 1;
	s->virtual_byte_time = s->real_byte_time + (s->real_byte_time >> SPARE_SHIFT);
	s->borrows = s->real_byte_time < p->guarantee_byte_time - p->guarantee_byte_time / 8;
}

/* How many bytes there are from one stamp to the next. By stamps it is known how long a
 * queue stands and how fast it is served, of a class that may have less than its
 * guarantee. A slow one has a stamp in about 1/32 s; and a short queue, in which one
 * packet must come before the other has left, has more: TCP of this host keeps two
 * packets in a queue. A class that borrows is served fast enough. */
static __always_inline __u32 stamp_every(const struct queue *q, const struct service *s, const struct pace *p)
{
	__u64 byte_time = p->guarantee_byte_time;

	if (s->borrows || byte_time >= NO_GUARANTEE)
		return STAMP_EVERY;
	if (byte_time * STAMP_EVERY <= STAMP_WITHIN)
		return q->sojourn_ns > NO_WAIT_NS && q->sojourn_ns << TIME_SHIFT < 2 * STAMP_EVERY * q->service_byte_time ?
			LOOK_EVERY : STAMP_EVERY;
	if (byte_time * LOOK_EVERY <= STAMP_WITHIN)
		return LOOK_EVERY;
	return byte_time * STAMP_LEAST <= STAMP_WITHIN ? STAMP_LEAST : 1;
}

static __always_inline __u32 look_every(const struct service *s)
{
	if (8 * LOOK_EVERY * s->real_byte_time <= LOOK_NS << TIME_SHIFT)
		return 8 * LOOK_EVERY;
	if (4 * LOOK_EVERY * s->real_byte_time <= LOOK_NS << TIME_SHIFT)
		return 4 * LOOK_EVERY;
	return 2 * LOOK_EVERY * s->real_byte_time <= LOOK_NS << TIME_SHIFT ? 2 * LOOK_EVERY : LOOK_EVERY;
}

/* Brings the virtual queue up to date: what came since the last time, before this
 * packet, what was served, and this packet. CPUs that send to one class come here
 * in another order than that of their bytes and times; what is late counts once. */
static __always_inline void advance(struct queue *q, const struct service *s, __u32 before, __u32 bytes, __u64 now, __u64 most)
{
	__s64 served = now - q->arrived_at_ns;
	__s32 came = before + bytes - q->counted_bytes;
	__u64 earlier, queued;

	if (came <= 0)
		return; /* counted with a packet that was faster here */
	if ((__u32)came < bytes)
		bytes = came;
	earlier = came - bytes;
	queued = q->virtual_ns + (earlier * s->virtual_byte_time >> TIME_SHIFT);
	q->counted_bytes += came;
	if (served > 0) {
		q->arrived_at_ns = now;
		if ((__u64)served >= queued) {
			pause(q, served - queued, now);
			queued = 0;
		} else {
			queued -= served;
		}
	}
	queued += ((__u64)bytes * s->virtual_byte_time >> TIME_SHIFT);
	q->virtual_ns = queued < 2 * most ? queued : 2 * most;
}

/* What is rarely called, or has many ways through it, is a function of its own to the
 * verifier (GLOBAL in parse.h). */
GLOBAL int stands_now(const struct queue *q, const struct service *s, __u64 now)
{
	return q && s && stands(q, s, now);
}

GLOBAL int due_now(struct queue *q, const struct service *s, __u32 bytes, __u32 arrived)
{
	return q && s && due(q, s, bytes, arrived);
}

enum verdict { SEND, SEND_MARKED, DROP };

/* What look needs to know of a packet, besides its headers. */
struct arrival {
	__u32 class_minor;
	__u32 bytes;
	__u32 before; /* bytes that came for the class before it and were not dropped */
};

/* Looks at one packet in LOOK_EVERY or STAMP_EVERY bytes: asks for the time, leaves a
 * stamp, and brings the virtual queue up to date. A function of its own to the verifier,
 * too. */
GLOBAL int look(struct __sk_buff *skb, const struct packet *p, struct queue *q, const struct pace *pace, const struct arrival *at)
{
	__u32 before, bytes, every;
	__u64 now, most;
	struct service s;

	if (!p || !q || !pace || !at)
		return SEND;
	before = at->before;
	bytes = at->bytes;
	now = bpf_ktime_get_ns();
	skb->cb[STAMP_TOKEN] = token | at->class_minor;
	skb->cb[STAMP_TIME] = (__u32)(now >> STAMP_SHIFT);
	skb->cb[STAMP_BYTES] = before;
	serve(&s, q, pace);
	every = stamp_every(q, &s, pace);
	if (q->stamp_every != every)
		q->stamp_every = every;
	if (q->look_every != look_every(&s))
		q->look_every = look_every(&s);
	if (every > q->look_every)
		every = q->look_every;
	most = threshold(q, &s);
	advance(q, &s, before, bytes, now, most);
	if (!p->ecn) {
		if (!is_bounded(at->class_minor) || !overdue(q, &s, pace, before, bytes) || p->control == CONTROL_ACK)
			return SEND;
		__sync_fetch_and_add(&q->arrived_bytes, -bytes);
		return DROP;
	}
	q->short_at_bytes = before; /* what comes marked is no flood of what cannot be (bound.h) */
	adapt(q, &s, now);
	if (p->answers)
		learn_rtt(q, bpf_get_hash_recalc(skb), now);
	/* A group that has no more than its guarantee is not held below it. */
	if (!(s.borrows && q->virtual_ns > most && is_filled(q)) && !stands_now(q, &s, now))
		return SEND;
	if (is_burst(q, now) || !due_now(q, &s, bytes < every ? every : bytes, before + bytes) || !bpf_skb_ecn_set_ce(skb))
		return SEND;
	q->period_marks++;
	ask_rtt(q, bpf_get_hash_recalc(skb), before, now);
	return SEND_MARKED;
}

/* Adds the packet to its class's virtual queue and marks it if that is too long; one
 * that cannot be marked is dropped if the real one is (bound.h). Only one packet in LOOK_EVERY or STAMP_EVERY
 * bytes asks for the time and gets a stamp: with a stamp on each, a flood of small
 * packets paid 140 ns in the departure hook and as much here. */
static __always_inline enum verdict enqueue(struct __sk_buff *skb, const struct packet *p, struct queue *q, __u32 class_minor, __u32 bytes)
{
	struct arrival at = { class_minor, bytes };
	struct pace *pace;
	__u32 every;

	skb->cb[STAMP_TOKEN] = 0;
	if (!token || !q)
		return SEND;
	if (is_full(q, p, class_minor, bytes))
		return DROP;
	at.before = __sync_fetch_and_add(&q->arrived_bytes, bytes);
	every = q->stamp_every;
	if (p->ecn && q->look_every < every)
		every = q->look_every;
	if ((at.before ^ (at.before + bytes)) < every && !p->answers)
		return SEND;
	pace = bpf_map_lookup_elem(&paces, &class_minor);
	return pace ? look(skb, p, q, pace, &at) : SEND;
}

#endif
#endif
