package usage

import (
	"math"
	"time"

	"headgate/unit"
)

// Counters are a group's, since it was made.
type Counters struct {
	Bytes   uint64 `json:"bytes"`
	Packets uint64 `json:"packets"`
	Drops   uint64 `json:"drops"`
	Marks   uint64 `json:"marks"`
	Backlog uint64 `json:"backlog"` // bytes, now
	// QueuedFor is for how long in all a packet always waited, and Queued the bytes that left meanwhile.
	QueuedFor time.Duration `json:"queued_ns,omitempty"`
	Queued    uint64        `json:"queued,omitempty"`
	// At is when these were read.
	At time.Time `json:"at,omitzero"`
}

// stands is the part of some time in which a queue must have stood. It is not all, because the kernel
// tells by stamps, of which a class that has a tenth of its guarantee has three a second, and a sender
// that is starved on a busy machine does not keep its queue filled.
const stands = 0.5

// again tells whether counters are of a group that was made anew.
func (now Counters) again(was Counters) bool {
	return now.Bytes < was.Bytes || now.Packets < was.Packets || now.QueuedFor < was.QueuedFor
}

// Rate is what left from one reading to the next, in bits per second; 0 if there was no time between
// them.
func Rate(was, now Counters) float64 {
	if now.again(was) {
		return 0
	}
	return Over(now.Bytes-was.Bytes, was.At, now.At)
}

// Over is a number of bytes over the time between two readings, in bits per second.
func Over(bytes uint64, was, now time.Time) float64 {
	took := now.Sub(was).Seconds()
	if took <= 0 {
		return 0
	}
	return float64(bytes) * 8 / took
}

// Unmet tells whether a guarantee was not met from one reading to the next.
func Unmet(was, now Counters, guarantee unit.Rate) bool {
	took := now.At.Sub(was.At)
	if guarantee == 0 || took <= 0 || now.again(was) || unit.Met(Rate(was, now), float64(guarantee)) {
		return false
	}
	if now.Backlog > 0 && now.Bytes-was.Bytes < was.Backlog {
		return true // what waited then waits now
	}
	stood := now.QueuedFor - was.QueuedFor
	if float64(stood) < stands*float64(took) || now.Queued < was.Queued {
		return false
	}
	return !unit.Met(float64(now.Queued-was.Queued)*8/stood.Seconds(), float64(guarantee))
}

// Group is one with its counters at a time; those of one direction of a device are accounted
// together.
type Group struct {
	Name      string // "out/web"
	Leaf      bool
	Guarantee unit.Rate
	Counters
	Delay time.Duration // of the packet that left last; it is not accounted
}

// Usage is what a group had in some time.
type Usage struct {
	Seconds    float64 `json:"seconds"`
	Offered    uint64  `json:"offered"` // bytes, as are these
	Delivered  uint64  `json:"delivered"`
	Guaranteed uint64  `json:"guaranteed"`
	Borrowed   uint64  `json:"borrowed"`
	Lent       uint64  `json:"lent"`
	Drops      uint64  `json:"drops"`
	Marks      uint64  `json:"marks"`
	Unmet      float64 `json:"unmet"` // seconds
}

// Add adds another time's.
func (u *Usage) Add(o Usage) {
	u.Seconds += o.Seconds
	u.Offered += o.Offered
	u.Delivered += o.Delivered
	u.Guaranteed += o.Guaranteed
	u.Borrowed += o.Borrowed
	u.Lent += o.Lent
	u.Drops += o.Drops
	u.Marks += o.Marks
	u.Unmet += o.Unmet
}

// Account is what the groups of one direction had between two readings; before has what the
// last one read, by name.
func Account(before map[string]Counters, now []Group) map[string]Usage {
	out := map[string]Usage{}
	var borrowed, unused float64
	left := make([]float64, len(now)) // unused, by group
	for n, g := range now {
		was := before[g.Name]
		took := g.At.Sub(was.At)
		if was.At.IsZero() { // it is new, and the others tell how long that is at the most
			took = longest(before, now)
		}
		if g.again(was) {
			was = Counters{At: was.At}
		}
		u := Usage{
			Seconds: took.Seconds(), Delivered: g.Bytes - was.Bytes,
			Guaranteed: uint64(float64(g.Guarantee) / 8 * took.Seconds()),
			Drops:      less(g.Drops, was.Drops), Marks: less(g.Marks, was.Marks),
		}
		u.Offered = offered(u, g.Counters, was)
		if u.Delivered > u.Guaranteed {
			u.Borrowed = u.Delivered - u.Guaranteed
		}
		if g.Leaf {
			borrowed += float64(u.Borrowed)
			left[n] = math.Max(0, float64(u.Guaranteed)-float64(u.Delivered))
			unused += left[n]
		}
		if Unmet(was, g.Counters, g.Guarantee) {
			u.Unmet = took.Seconds()
		}
		out[g.Name] = u
	}
	if unused == 0 {
		return out
	}
	part := math.Min(1, borrowed/unused)
	for n, g := range now {
		if left[n] > 0 {
			u := out[g.Name]
			u.Lent = uint64(left[n] * part)
			out[g.Name] = u
		}
	}
	return out
}

// longest is the longest time between two readings of a group.
func longest(before map[string]Counters, now []Group) (most time.Duration) {
	for _, g := range now {
		if was, ok := before[g.Name]; ok {
			most = max(most, g.At.Sub(was.At))
		}
	}
	return most
}

// offered is what was delivered, what waits more than before, and what was dropped, as so many
// packets of the mean length.
func offered(u Usage, now, was Counters) uint64 {
	sum := float64(u.Delivered) + float64(now.Backlog) - float64(was.Backlog)
	if packets := less(now.Packets, was.Packets); packets > 0 {
		sum += float64(u.Drops) * float64(u.Delivered) / float64(packets)
	}
	return uint64(math.Max(0, sum))
}

func less(a, b uint64) uint64 {
	if a < b {
		return 0
	}
	return a - b
}
