package available

import (
	"headgate/probe"
	"headgate/unit"
)

// Constants of paths whose tight link may be a token bucket.
const (
	firstDrain = 64_000 // bytes
	firstIdle  = 3e6    // ns
	shapedHold = 1600
	shapedTime = 100e6
)

// drain makes a train's head so long that it empties the bucket, which has filled again
// since the train before. It gives how many bytes will wait behind it, and how long
// the hold may be: the more is known the longer, because each train drains anew.
func (m Ours) drain(r *reading, available float64, head probe.Part) (_ probe.Part, drop float64, hold int) {
	fast := 2 * r.rate
	if m.Capacity > 0 {
		fast = min(7.0/8*m.Capacity, fast)
	}
	fast = max(fast, 1.2*r.rate)
	met := 0
	for _, t := range r.trains {
		if t.met() {
			met++
		}
	}
	need, drop := float64(firstDrain), float64(headPackets*frame)
	if m.Bucket > 0 {
		need = m.Bucket
	}
	if n := len(r.trains); n > 0 {
		last := r.trains[n-1]
		drained := float64(last.head) * frame * (1 - available/fast)
		switch {
		case last.met():
			idle := max(float64(r.idle), firstIdle)
			need = (available*idle + (available-last.rate)*last.spare) / 8e9
			if m.Bucket > 0 {
				need = min(need, m.Bucket)
			}
			need, drop = max(need, 0), last.start*r.rate/8e9
		case m.Bucket > 0:
			need = 1.4 * drained
		default:
			need = 2 * drained
		}
	}
	head.Count = headPackets + int(1.1*need/(1-available/fast)/frame)
	head.Rate = unit.Rate(fast)
	return head, drop, min(firstHold<<(2*met), shapedHold)
}
