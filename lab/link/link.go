package link

import (
	"math"
	"math/rand/v2"
	"reflect"
)

// Packet is one segment that arrives at the link.
type Packet struct {
	Size int    // layer-2 bytes
	DSCP uint8  // 0 to 63
	ECN  uint8  // the two bits: 0 not capable, 1 and 2 capable, 3 marked
	Ref  uint32 // chosen by the caller
}

// Fate is the outcome of a packet.
type Fate uint8

// The outcomes.
const (
	Delivered  Fate = iota
	Lost            // on the wire, after serialisation
	Overflowed      // the queue was full
	Early           // RED or CoDel
	Policed         // no tokens
)

// Result is a packet with its outcome and its times in ns; a time is 0 if the packet did not get that
// far.
type Result struct {
	Packet
	Number   uint64 // in order of arrival, including cross traffic
	Arrived  int64  // at the queue
	Departed int64  // from the serialiser
	Released int64  // at the receiver; cross traffic leaves the link earlier
	Fate     Fate
	Marked   bool // CE is to be set
	Cross    bool // virtual
}

// Link is one direction. It is not safe for concurrent use.
type Link struct {
	spec Spec
	seed uint64
	zero int64
	// count numbers arrivals, streams the random number streams of cross traffic.
	count, streams uint64

	asleep   deque[Result] // arrived while the sender sleeps
	waiting  deque[Result]
	bytes    int     // of waiting
	maxQueue float64 // limit of waiting, in bytes or segments
	mark     float64 // marking threshold of waiting, in the same unit
	start    int64   // when the first of waiting begins
	busy     int64   // when the serialiser becomes free
	carry    int64   // picoseconds to add to busy

	limit    limiter
	policer  *bucket
	red      *red
	redDice  *rand.Rand
	codel    *codel
	cross    []*source
	noise    noise
	flight   flight
	receiver receiver
	gone     deque[Result] // dropped, lost or virtual
}

// New returns a link that starts at now, with a full bucket and an awake sender.
func New(s Spec, seed uint64, now int64) *Link {
	l := &Link{seed: seed, zero: now}
	dice := func(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }
	l.noise.loss, l.noise.jitter, l.redDice = dice(1), dice(2), dice(3)
	l.streams = 4
	l.use(s, now)
	return l
}

// use applies a Spec. Unchanged parts keep their state.
func (l *Link) use(s Spec, now int64) {
	old := l.spec
	l.spec = s
	if !reflect.DeepEqual(old.Bucket, s.Bucket) || !reflect.DeepEqual(old.Xen, s.Xen) {
		l.useLimiter(s, now)
	}
	if s.RED == nil {
		l.red = nil
	} else {
		l.red = newRED(&s, l.red)
	}
	if s.CoDel == nil {
		l.codel = nil
	} else {
		l.codel = newCoDel(*s.CoDel, l.codel)
	}
	if !reflect.DeepEqual(old.Cross, s.Cross) {
		l.cross = nil
		for _, c := range s.Cross {
			l.cross = append(l.cross, newSource(c, l.seed, l.streams, l.zero, now))
			l.streams++
		}
	}
	l.mark = s.Mark.count(s.Slowest())
	switch rate := s.Slowest(); {
	case s.Queue.Segments > 0:
		l.maxQueue = float64(s.Queue.Segments)
	case s.Queue != Amount{}:
		l.maxQueue = max(s.Queue.bytes(rate), LargestFrame)
	default:
		l.maxQueue = max(Amount{Time: DefaultQueue}.bytes(rate), minQueue)
	}
}

// useLimiter applies a limiter. A new bucket keeps the tokens of the former one.
func (l *Link) useLimiter(s Spec, now int64) {
	before := l.policer
	if b, ok := l.limit.(*bucket); ok {
		before = b
	}
	l.limit, l.policer = nil, nil
	if s.Xen != nil {
		l.limit = newXen(*s.Xen, l.zero, now)
	}
	if s.Bucket == nil {
		return
	}
	b := newBucket(*s.Bucket, l.zero, now)
	if before != nil {
		before.refill(now)
		b.tokens, b.gift = min(before.tokens, float64(b.Size)), min(before.gift, float64(b.Gift))
	}
	if b.Police {
		l.policer = b
	} else {
		l.limit = b
	}
}

// Change changes the properties of the link from now on. Segments in the serialiser or on the wire are
// not affected; queued segments are sent with the new properties.
func (l *Link) Change(now int64, s Spec) {
	l.advance(now)
	l.use(s, now)
	if l.waiting.n > 0 {
		l.start = l.begins(now)
	}
	// A sender that is awake now sends what it has held since before; nothing arrives before now.
	for i := range l.asleep.n {
		l.asleep.at(i).Arrived = now
	}
	for l.asleep.n > 0 && (s.Active == nil || s.Active.wake(l.zero, now) == now) {
		l.admit(now, l.asleep.pop())
		l.serve(now)
	}
}

// Offer makes a packet arrive at now. Times of calls must not decrease.
func (l *Link) Offer(now int64, p Packet) {
	l.advance(now)
	l.count++
	r := Result{Packet: p, Number: l.count, Arrived: now}
	if a := l.spec.Active; a != nil && a.wake(l.zero, now) > now {
		l.asleep.push(r)
		return
	}
	l.admit(now, r)
	l.serve(now)
}

// advance processes everything until now: packets begin, senders wake, cross traffic arrives.
func (l *Link) advance(now int64) {
	if len(l.cross) == 0 && l.asleep.n == 0 {
		l.serve(now)
		return
	}
	for {
		at, from := int64(math.MaxInt64), -1
		for i, s := range l.cross {
			if t := s.at(); t < at {
				at, from = t, i
			}
		}
		wake := int64(math.MaxInt64)
		if l.asleep.n > 0 {
			wake = l.spec.Active.wake(l.zero, l.asleep.first().Arrived)
		}
		if min(at, wake) > now {
			l.serve(now)
			return
		}
		l.serve(min(at, wake))
		if wake <= at {
			r := l.asleep.pop()
			r.Arrived = wake
			l.admit(wake, r)
			continue
		}
		s := l.cross[from]
		l.count++
		l.admit(at, Result{Packet: s.packet(), Number: l.count, Arrived: at, Cross: true})
		s.step()
	}
}

// admit drops, marks or queues an arrival.
func (l *Link) admit(at int64, r Result) {
	if l.policer != nil {
		if !l.policer.admits(at, r.Size) {
			l.drop(r, Policed)
			return
		}
		l.policer.spend(at, r.Size)
	}
	capable := r.ECN != 0
	if l.red != nil && l.red.verdict(at, r.DSCP, l.bytes, l.waiting.n, l.redDice) {
		if !l.red.spec.ECN || !capable {
			l.drop(r, Early)
			return
		}
		r.Marked = true
	}
	if l.waiting.n > 0 && l.full(r.Size) {
		l.drop(r, Overflowed)
		return
	}
	if capable && l.mark > 0 && l.marks() {
		r.Marked = true
	}
	l.waiting.push(r)
	l.bytes += r.Size
	if l.waiting.n == 1 {
		l.start = l.begins(at)
	}
}

// full reports whether size more bytes would exceed the queue limit. Segments that begin at once and
// the one in the serialiser are not in the queue.
func (l *Link) full(size int) bool {
	if l.spec.Queue.Segments > 0 {
		return float64(l.waiting.n+1) > l.maxQueue
	}
	return float64(l.bytes+size) > l.maxQueue
}

// marks reports whether the queue has reached the marking threshold.
func (l *Link) marks() bool {
	if l.spec.Mark.Segments > 0 {
		return float64(l.waiting.n) >= l.mark
	}
	return float64(l.bytes) >= l.mark
}

func (l *Link) drop(r Result, why Fate) {
	r.Fate = why
	l.gone.push(r)
}

// begins returns when the first of waiting can begin, at or later.
func (l *Link) begins(at int64) int64 {
	at = max(at, l.busy)
	if l.limit != nil {
		at = l.limit.conform(at, l.waiting.first().Size)
	}
	return at
}

// serve starts all segments that can begin until now.
func (l *Link) serve(now int64) {
	for l.waiting.n > 0 && l.start <= now {
		at, r := l.start, l.waiting.pop()
		l.bytes -= r.Size
		if l.codel != nil && l.codel.verdict(at, at-r.Arrived, l.bytes) {
			if !l.codel.ecn || r.ECN == 0 {
				l.drop(r, Early)
				if l.waiting.n > 0 {
					l.start = l.begins(at)
				}
				continue
			}
			r.Marked = true
		}
		if l.limit != nil {
			l.limit.spend(at, r.Size)
		}
		l.serialise(at, r.Size)
		r.Departed = l.busy
		l.leave(r)
		switch {
		case l.waiting.n > 0:
			l.start = l.begins(at)
		case l.red != nil:
			l.red.qTime = at
		}
	}
}

// serialise computes departure = max(now, busy) + size/rate, in picoseconds.
func (l *Link) serialise(at int64, size int) {
	if at > l.busy {
		l.carry = 0
	}
	if l.spec.Rate == 0 {
		l.busy = at
		return
	}
	ps := l.carry + int64(size)*8e12/int64(l.spec.Rate)
	l.busy, l.carry = at+ps/1000, ps%1000
}

// leave puts a segment on the wire that has left the serialiser.
func (l *Link) leave(r Result) {
	switch {
	case r.Cross:
		r.Released = r.Departed
		l.gone.push(r)
	case l.noise.loses(l.spec.Loss):
		l.drop(r, Lost)
	default:
		r.Released = r.Departed + l.noise.delay(&l.spec)
		l.flight.add(r, l.spec.Jitter.Reorder)
	}
}

// Take returns the next result that is final at now. Dropped and virtual packets are final at once and
// come first; others are final when they are released, and come in that order.
func (l *Link) Take(now int64) (Result, bool) {
	l.advance(now)
	if l.gone.n > 0 {
		return l.gone.pop(), true
	}
	r := l.flight.first()
	if r == nil || l.released(r) > now {
		return Result{}, false
	}
	at := l.released(r)
	out := l.flight.pop()
	out.Released = at
	l.receiver.took(l.spec.Suspension, at)
	return out, true
}

func (l *Link) released(r *Result) int64 { return max(r.Released, l.receiver.until) }

// Next returns when Take should be called again if nothing arrives before; ok is false if the link
// holds nothing. It does not consider virtual packets.
func (l *Link) Next() (at int64, ok bool) {
	at = math.MaxInt64
	r := l.flight.first()
	if r != nil {
		at = l.released(r)
	}
	if l.waiting.n > 0 && (r == nil || l.spec.Jitter.Reorder || len(l.flight.loose) > 0) {
		at = min(at, l.start)
	}
	if l.asleep.n > 0 {
		at = min(at, l.spec.Active.wake(l.zero, l.asleep.first().Arrived))
	}
	return at, at != math.MaxInt64
}

// Waiting returns the contents of the queue: layer-2 bytes and segments, including cross traffic.
func (l *Link) Waiting() (bytes, segments int) { return l.bytes, l.waiting.n }
