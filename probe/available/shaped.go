package available

import (
	"cmp"
	"math"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// Constants of paths whose tight link may be a token bucket, chosen by Headgate.
const (
	// drainPart of the capacity is alpha of the seed's drain trains (2.6).
	drainPart = 7.0 / 8
	// linkPart of the capacity is the maximum load: at the full capacity queues grow.
	linkPart = 0.97
	// minDrain, a fraction of the capacity, is the minimum by which heads are faster
	// than the token rate.
	minDrain = 0.1
	// The first head drains firstDrain bytes if the bucket size is unknown. After a head
	// that found no queue, the next drains morePart times that.
	firstDrain = 64_000
	morePart   = 2.5
	// firstIdle is the assumed pause between two trains until it is measured, in ns.
	firstIdle = 3e6
	// shapedHold packets, and shapedTime ns, are the longest hold. Every train drains the
	// bucket again, so that few long trains cost least.
	shapedHold = 1600
	shapedTime = 100e6
	// shapedMaxDelay is the maximum queue delay of a head, in ns, if cross traffic uses most
	// of the token rate.
	shapedMaxDelay = 8e6
	// shapedQueue and shapedPackets are the minimum queue at the begin of the window, in
	// ns and in packets, that shows an empty bucket: queues at other links are shorter.
	shapedQueue   = 300e3
	shapedPackets = 4
	// settle: one of settle parts of a hold is given to those queues to drain.
	settle = 4
)

// bucketEmpty reports whether the queue is that of the empty bucket.
func (r *evaluation) bucketEmpty(queue float64) bool {
	return queue > max(shapedQueue, shapedPackets*r.frame*8e9/r.rate)
}

// fast returns the rate of heads: more than the token rate, but if possible no more than
// what the links have available, so that only the bucket has a queue.
func (m HoldTrains) fast(r *evaluation) float64 {
	if m.Capacity == 0 {
		return 2 * r.rate
	}
	fast := min(drainPart*m.Capacity, 2*r.rate)
	if taken := r.taken(m.Capacity); taken > 0 {
		fast = min(fast, max(linkPart*m.Capacity-taken, r.rate+minDrain*m.Capacity))
	}
	return max(fast, r.rate)
}

// taken estimates the cross traffic on a link of a given rate before the bucket is empty,
// from how much slower the begin of a head arrived than it was sent. Heads that arrived
// slower than the token rate show nothing of the link. The result is 0 if no head shows
// it.
func (r *evaluation) taken(link float64) float64 {
	lowest := link
	for _, t := range r.trains {
		if t.headCame > r.rate {
			lowest = min(lowest, max(t.headRate*(link/t.headCame-1), 0))
		}
	}
	if lowest == link {
		return 0
	}
	return lowest
}

// assume returns the available bandwidth to assume while no train has found the bucket's
// queue: half of the token rate, and more after each train, because a head drains less
// the less cross traffic there is. It is no less than the link has available, if the
// cross traffic there also passes the bucket.
func (m HoldTrains) assume(r *evaluation) float64 {
	left := 0.5
	for range r.trains {
		left *= 0.7
	}
	if taken := r.taken(m.Capacity); taken > 0 {
		left = min(left, taken/r.rate)
	}
	return r.rate * max(1-max(left, 0.05), min(m.lowerBound(r)/r.rate, 0.95))
}

// lowerBound returns a lower bound of the available bandwidth, from heads that did not
// empty a bucket of known size: the rest of what they sent would have been more than the
// bucket held.
func (m HoldTrains) lowerBound(r *evaluation) (bound float64) {
	for _, t := range r.trains {
		if m.Bucket > 0 && t.headRate > 0 {
			bound = max(bound, t.headRate-m.Bucket/(float64(t.head)*r.frame)*t.headRate)
		}
	}
	return bound
}

// unfilled returns the bytes that trains have taken from the bucket and that have not been
// refilled, at the given available bandwidth.
func (r *evaluation) unfilled(available float64) (out float64) {
	for _, t := range r.trains {
		out = max(out-available*t.idle/8e9, 0)
		out = max(out+t.bytes-available*t.took/8e9, 0)
	}
	return out
}

// drain returns a head that is long enough to empty the bucket, which has refilled since
// the previous train. drop is the queue behind the head in bytes, hold the maximum length
// of the hold.
func (m HoldTrains) drain(r *evaluation, available float64) (head probe.Part, drop float64, hold int) {
	fast := m.fast(r)
	net := max(1-available/fast, 0.05)
	drop = max(headPackets*r.frame, 2*shapedQueue*r.rate/8e9)
	need, maxBytes := 0.0, math.Inf(1)
	met, found := 0, 0.0 // found is the maximum that a head found in the bucket
	unmet := 0.0         // trains in a row without a queue
	for _, t := range r.trains {
		unmet++
		if t.met() {
			met++
			unmet = 0
			found = max(found, (float64(t.head)*r.frame)*net-t.start*r.rate/8e9)
		}
	}
	size := cmp.Or(m.Bucket, math.Inf(1))
	idle := max(float64(r.idle), firstIdle)
	if n := len(r.trains); met > 0 && unmet == 0 {
		last := r.trains[n-1]
		need = min((available*idle+max(available-last.rate, 0)*last.spare)/8e9, 1.2*found, size)
	} else {
		if m.Bucket == 0 {
			size = firstDrain * math.Pow(morePart, unmet)
		}
		if met > 0 {
			size = min(size, 1.2*found)
		}
		// If two trains found no queue, the bucket refills faster than assumed: the error
		// adds up over the trains.
		fills := available
		if unmet >= 2 {
			fills = r.rate
		}
		need = min(max(size-r.unfilled(fills)+fills*idle/8e9, 0.15*size), size)
		if n == 0 {
			need = min(need, firstDrain)
		}
		// With much cross traffic the head must not make a queue that is too long.
		little := r.rate * (1 - 0.9*math.Pow(0.7, unmet))
		rest := 0.0
		if m.Bucket > 0 {
			rest = max(m.Bucket-r.unfilled(little), 0)
		}
		maxBytes = (rest + shapedMaxDelay*math.Pow(2, unmet)*r.rate/8e9) / (1 - little/fast)
	}
	bytes := min((1.05*max(need, 0)+drop)/net, maxBytes)
	head = probe.Part{Count: int(bytes/r.frame) + 1, Size: m.packet(), Rate: unit.Rate(fast), Pause: r.receiverStall}
	hold = min(firstHold<<min(2*met, 8), shapedHold)
	if unmet > 0 {
		hold = min(hold, 2*firstHold)
	}
	return head, drop, hold
}
