/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The marker: sets CE on ECN-capable packets of a class that has a queue, by a virtual queue
 * and by the sojourn time that the departure hook (shaper/htb/departures.c) measures. Packets
 * that cannot be marked are dropped by the rules of bound.h. The rules of marking are in mark.h.
 *
 * The stamp is in the upper three words of cb, which are preserved from the filter hook through
 * the qdiscs to the device: HTB does not use them, TBF copies them to the segments, and fq_codel
 * uses the lower two. The classes are in the two words below, which the filters of HTB
 * (shaper/htb/class.c) read before fq_codel writes there. */
#ifndef HEADGATE_QUEUE_H
#define HEADGATE_QUEUE_H

#include "headgate.h"

#define STAMP_LEVELS 0 /* class minors: of the first level of groups in the lower half, of the second in the upper */
#define STAMP_CLASS 1 /* class ID of the leaf: major number in the upper half, minor number in the lower */
#define STAMP_TOKEN 2 /* the token in the upper half, the class minor in the lower; 0: no stamp */
#define STAMP_TIME 3 /* arrival time in units of 256 ns (STAMP_SHIFT); wraps after 18 minutes */
#define STAMP_BYTES 4 /* arrived_bytes of the class before the packet */
#define STAMP_SHIFT 8

/* The major number of our qdiscs: "HG" (shaper/htb/tree.go). */
#define QDISC_MAJOR 0x4847

/* A flag: with the minor number of a parent group it is the major number of the group's own HTB
 * (shaper/htb/tree.go). */
#define INNER_MAJOR 0x8000

/* A sojourn time below this is that of an empty queue: the path from the filter hook to the
 * device takes a few microseconds, and a timer somewhat more. */
#define NO_WAIT_NS (20 * 1000ULL)

#if !defined(DEPARTURES) && !defined(CLASS_FILTER)

/* The sampling interval of a class's packets in bytes: LOOK_EVERY for packets that can be
 * marked, STAMP_EVERY for the others. At high rates the interval of packets that can be marked
 * grows up to LOOK_NS of service time: up to 400 Mbit/s each full frame is sampled, and above
 * that the interval is a fraction of the thresholds (mark.h). */
#define LOOK_EVERY 1024
#define LOOK_NS (20 * 1000ULL)
#define STAMP_EVERY 8192
#define MIN_STAMP 128
#define STAMP_INTERVAL ((1000 * 1000 * 1000ULL << TIME_SHIFT) / 32)
#define NO_GUARANTEE (1000 * 1000 * 1000ULL << TIME_SHIFT) /* the byte time of one byte per second */

#include "mark.h"
#include "bound.h"

const volatile __u32 token; /* identifies device and direction to the departure hook, in the upper half; 0: no hook */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 64); /* by class minor; the loader sets it by the groups */
	__uint(map_flags, BPF_F_INNER_MAP | ALIGNED); /* the departure hook has it in a map of maps */
	__type(key, __u32);
	__type(value, struct queue);
} queues SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 64); /* the same as for queues */
	__type(key, __u32);
	__type(value, struct pace);
} paces SEC(".maps");

/* The virtual queue is served at 127/128 of the service rate of the real queue, so that senders
 * converge to a rate just below that, and the real queue stays empty. */
#define SPARE_SHIFT 7

/* The maximum recorded pause: a longer one is due to the application and not to the path. */
#define MAX_GAP_NS (100 * 1000 * 1000ULL)
#define GAP_MEMORY 16

/* Records a pause in which the virtual queue was empty. The longest pause is stored for
 * GAP_MEMORY times its length. A sender whose window is below the bandwidth-delay product of
 * the path makes one pause per round-trip time. */
static __always_inline void record_gap(struct queue *q, __u64 idle, __u64 now)
{
	if (idle > MAX_GAP_NS)
		idle = MAX_GAP_NS;
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

/* Reports whether the queue is a burst of a sender whose window does not fill the path. Such a
 * sender would cause no queue if it paced the window over the round-trip time. */
static __always_inline int is_burst(const struct queue *q, __u64 now)
{
	return now - q->gap_at_ns < GAP_MEMORY * q->gap_ns && now - q->busy_since_ns < 2 * q->gap_ns;
}

/* Sets the service of a class: the measured service rate, bounded by the ceiling. */
static __always_inline void service_of(struct service *s, const struct queue *q, const struct pace *p)
{
	s->real_byte_time = (q->service_byte_time > p->ceiling_byte_time ? q->service_byte_time : p->ceiling_byte_time) ?: 1;
	s->virtual_byte_time = s->real_byte_time + (s->real_byte_time >> SPARE_SHIFT);
	s->borrows = s->real_byte_time < p->guarantee_byte_time - p->guarantee_byte_time / 8;
}

/* Returns the number of bytes between two stamps. The stamps measure the sojourn time and the
 * service rate, which matter for a class that may get less than its guarantee. A class with a
 * low guarantee has a stamp about every 1/32 s. A short queue has more stamps, because the
 * service rate is measured only if a stamped packet arrives before the one before it has left:
 * TCP of the same host keeps only two packets in the queue. A class that borrows is served fast
 * enough for STAMP_EVERY. */
static __always_inline __u32 stamp_every(const struct queue *q, const struct service *s, const struct pace *p)
{
	__u64 byte_time = p->guarantee_byte_time;

	if (s->borrows || byte_time >= NO_GUARANTEE)
		return STAMP_EVERY;
	if (byte_time * STAMP_EVERY <= STAMP_INTERVAL)
		return q->sojourn_ns > NO_WAIT_NS && q->sojourn_ns << TIME_SHIFT < 2 * STAMP_EVERY * q->service_byte_time ?
			LOOK_EVERY : STAMP_EVERY;
	if (byte_time * LOOK_EVERY <= STAMP_INTERVAL)
		return LOOK_EVERY;
	return byte_time * MIN_STAMP <= STAMP_INTERVAL ? MIN_STAMP : 1;
}

/* Returns the number of bytes between two samples of packets that can be marked. */
static __always_inline __u32 look_every(const struct service *s)
{
	if (8 * LOOK_EVERY * s->real_byte_time <= LOOK_NS << TIME_SHIFT)
		return 8 * LOOK_EVERY;
	if (4 * LOOK_EVERY * s->real_byte_time <= LOOK_NS << TIME_SHIFT)
		return 4 * LOOK_EVERY;
	return 2 * LOOK_EVERY * s->real_byte_time <= LOOK_NS << TIME_SHIFT ? 2 * LOOK_EVERY : LOOK_EVERY;
}

/* Updates the virtual queue: adds the bytes that arrived since the last update, subtracts the
 * time of service, and adds this packet. CPUs that send to one class may call this in a
 * different order than that of their bytes and times; each byte counts once. */
static __always_inline void advance(struct queue *q, const struct service *s, __u32 before, __u32 bytes, __u64 now, __u64 max_ns)
{
	__s64 served = now - q->arrived_at_ns;
	__s32 arrived = before + bytes - q->counted_bytes;
	__u64 earlier, queued;

	if (arrived <= 0)
		return; /* counted with a later packet of another CPU */
	if ((__u32)arrived < bytes)
		bytes = arrived;
	earlier = arrived - bytes;
	queued = q->virtual_ns + (earlier * s->virtual_byte_time >> TIME_SHIFT);
	q->counted_bytes += arrived;
	if (served > 0) {
		q->arrived_at_ns = now;
		if ((__u64)served >= queued) {
			record_gap(q, served - queued, now);
			queued = 0;
		} else {
			queued -= served;
		}
	}
	queued += ((__u64)bytes * s->virtual_byte_time >> TIME_SHIFT);
	q->virtual_ns = queued < 2 * max_ns ? queued : 2 * max_ns;
}

/* Functions that are called rarely or have many paths are global functions (GLOBAL in
 * parse.h). */
GLOBAL int has_standing_queue_noinline(const struct queue *q, const struct service *s, __u64 now)
{
	return q && s && has_standing_queue(q, s, now);
}

GLOBAL int is_mark_due_noinline(struct queue *q, const struct service *s, __u32 bytes, __u32 arrived)
{
	return q && s && is_mark_due(q, s, bytes, arrived);
}

enum verdict { SEND, SEND_MARKED, DROP };

/* Arguments of sample. */
struct arrival {
	__u32 class_minor;
	__u32 bytes;
	__u32 before; /* bytes that arrived for the class before the packet and were not dropped */
};

/* Samples one packet in LOOK_EVERY or STAMP_EVERY bytes: reads the clock, sets a stamp, updates
 * the virtual queue, and decides whether the packet is marked or dropped. */
GLOBAL int sample(struct __sk_buff *skb, const struct packet *p, struct queue *q, const struct pace *pace, const struct arrival *at)
{
	__u32 before, bytes, every;
	__u64 now, max_ns;
	struct service s;

	if (!p || !q || !pace || !at)
		return SEND;
	before = at->before;
	bytes = at->bytes;
	now = bpf_ktime_get_ns();
	skb->cb[STAMP_TOKEN] = token | at->class_minor;
	skb->cb[STAMP_TIME] = (__u32)(now >> STAMP_SHIFT);
	skb->cb[STAMP_BYTES] = before;
	service_of(&s, q, pace);
	every = stamp_every(q, &s, pace);
	if (q->stamp_every != every)
		q->stamp_every = every;
	if (q->look_every != look_every(&s))
		q->look_every = look_every(&s);
	if (every > q->look_every)
		every = q->look_every;
	max_ns = threshold(q, &s);
	advance(q, &s, before, bytes, now, max_ns);
	if (!p->ecn) {
		if (!is_bounded(at->class_minor) || !exceeds_wait(q, &s, pace, before, bytes) || p->control == CONTROL_ACK)
			return SEND;
		__sync_fetch_and_add(&q->arrived_bytes, -bytes);
		return DROP;
	}
	q->short_at_bytes = before; /* packets that can be marked are no flood (bound.h) */
	adapt(q, &s, now);
	if (p->cwr)
		finish_rtt(q, bpf_get_hash_recalc(skb), now);
	/* The virtual queue would hold a group that gets only its guarantee below the guarantee. */
	if (!(s.borrows && q->virtual_ns > max_ns && is_filled(q)) && !has_standing_queue_noinline(q, &s, now))
		return SEND;
	if (is_burst(q, now) || !is_mark_due_noinline(q, &s, bytes < every ? every : bytes, before + bytes) || !bpf_skb_ecn_set_ce(skb))
		return SEND;
	q->period_marks++;
	start_rtt(q, bpf_get_hash_recalc(skb), before, now);
	return SEND_MARKED;
}

/* Adds the packet to the queues of its class, and marks it if they are too long. A packet that
 * cannot be marked is dropped if the sojourn time in the real queue is too long (bound.h). Only
 * one packet in LOOK_EVERY or STAMP_EVERY bytes reads the clock and gets a stamp: with a stamp
 * on each packet, a flood of small packets took 140 ns per packet in the departure hook and as
 * much here. */
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
	if ((at.before ^ (at.before + bytes)) < every && !p->cwr)
		return SEND;
	pace = bpf_map_lookup_elem(&paces, &class_minor);
	return pace ? sample(skb, p, q, pace, &at) : SEND;
}

#endif
#endif
