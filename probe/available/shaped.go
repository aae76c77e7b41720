package available

import (
	"cmp"
	"math"

	"headgate/probe"
	"headgate/unit"
)

// Constants of paths whose tight link may be a token bucket, ours.
const (
	// drainPart of the capacity is the seed's alpha of drain trains (2.6).
	drainPart = 7.0 / 8
	// linkPart of the capacity is filled at the most: at all of it queues there wander off.
	linkPart = 0.97
	// leastDrain, a part of the capacity, is how much faster than the token rate heads
	// are in any case.
	leastDrain = 0.1
	// The first head drains firstDrain bytes, if the bucket's size is not known, and
	// each one that met no queue is followed by one of morePart times that.
	firstDrain = 64_000
	morePart   = 2.5
	// firstIdle is how long the bucket fills between two trains until that is seen, ns.
	firstIdle = 3e6
	// shapedHold packets, and shapedTime ns, are the longest hold: every train drains
	// the bucket anew, so that few long ones cost least.
	shapedHold = 1600
	shapedTime = 100e6
	// shapedMost is how long a queue a head may make, in ns, if others take most of the
	// bucket's rate.
	shapedMost = 8e6
	// shapedQueue is how much has to wait in ns, and in packets, where the window begins
	// for the bucket to be empty: queues elsewhere are shorter.
	shapedQueue   = 300e3
	shapedPackets = 4
	// settle is the part of a hold that is given to those queues to drain.
	settle = 4
)

// emptied tells whether what waits is the bucket's.
func (r *reading) emptied(queue float64) bool {
	return queue > max(shapedQueue, shapedPackets*frame*8e9/r.rate)
}

// fast is the rate of heads: more than the token rate, and if possible no more than
// what the links leave, so that no queue but the bucket's is seen.
func (m Ours) fast(r *reading) float64 {
	if m.Capacity == 0 {
		return 2 * r.rate
	}
	fast := min(drainPart*m.Capacity, 2*r.rate)
	if taken := r.taken(m.Capacity); taken > 0 {
		fast = min(fast, max(linkPart*m.Capacity-taken, r.rate+leastDrain*m.Capacity))
	}
	return max(fast, r.rate)
}

// taken is what others seem to take of a link of a rate before the bucket is empty, by
// how much slower the begin of a head came than it was sent. Heads that came slower
// than the token rate say nothing of the link. It is 0 if none does.
func (r *reading) taken(link float64) float64 {
	least := link
	for _, t := range r.trains {
		if t.headCame > r.rate {
			least = min(least, max(t.headRate*(link/t.headCame-1), 0))
		}
	}
	if least == link {
		return 0
	}
	return least
}

// assume is what is taken to be available as long as no train met the bucket's queue:
// half of the token rate, and more each time, because the less others take the less a
// head drains; and no less than they leave of the link, if they take it of the bucket.
func (m Ours) assume(r *reading) float64 {
	left := 0.5
	for range r.trains {
		left *= 0.7
	}
	if taken := r.taken(m.Capacity); taken > 0 {
		left = min(left, taken/r.rate)
	}
	return r.rate * max(1-max(left, 0.05), min(m.unemptied(r)/r.rate, 0.95))
}

// unemptied is what must be available, because heads did not empty a bucket of known
// size: what they sent beyond that would have been more than it held.
func (m Ours) unemptied(r *reading) (least float64) {
	for _, t := range r.trains {
		if m.Bucket > 0 && t.headRate > 0 {
			least = max(least, t.headRate-m.Bucket/float64(t.head*frame)*t.headRate)
		}
	}
	return least
}

// missing is how many bytes trains have taken out of the bucket, and it has not got
// back since, if so much is available.
func (r *reading) missing(available float64) (out float64) {
	for _, t := range r.trains {
		out = max(out-available*t.idle/8e9, 0)
		out = max(out+t.bytes-available*t.took/8e9, 0)
	}
	return out
}

// drain makes a train's head so long that it empties the bucket, which has filled again
// since the train before. It gives how many bytes will wait behind it, and how long
// the hold may be.
func (m Ours) drain(r *reading, available float64) (head probe.Part, drop float64, hold int) {
	fast := m.fast(r)
	net := max(1-available/fast, 0.05)
	drop = max(headPackets*frame, 2*shapedQueue*r.rate/8e9)
	need, most := 0.0, math.Inf(1)
	met, found := 0, 0.0 // found is the most that a head found in the bucket
	unmet := 0.0         // in a row
	for _, t := range r.trains {
		unmet++
		if t.met() {
			met++
			unmet = 0
			found = max(found, float64(t.head*frame)*net-t.start*r.rate/8e9)
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
		// What met no queue twice was kept from it by a bucket that fills faster than
		// was assumed: what that is off by adds up, from train to train.
		fills := available
		if unmet >= 2 {
			fills = r.rate
		}
		need = min(max(size-r.missing(fills)+fills*idle/8e9, 0.15*size), size)
		if n == 0 {
			need = min(need, firstDrain)
		}
		// If others take much the head must not make a queue that is too long.
		little := r.rate * (1 - 0.9*math.Pow(0.7, unmet))
		rest := 0.0
		if m.Bucket > 0 {
			rest = max(m.Bucket-r.missing(little), 0)
		}
		most = (rest + shapedMost*math.Pow(2, unmet)*r.rate/8e9) / (1 - little/fast)
	}
	bytes := min((1.05*max(need, 0)+drop)/net, most)
	head = probe.Part{Count: int(bytes/frame) + 1, Size: mtu, Rate: unit.Rate(fast), Pause: r.stood}
	hold = min(firstHold<<min(2*met, 8), shapedHold)
	if unmet > 0 {
		hold = min(hold, 2*firstHold)
	}
	return head, drop, hold
}
