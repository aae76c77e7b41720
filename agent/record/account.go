package record

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

// account is what the groups of one direction had between two readings; before has what the
// last one read, by name.
func account(before map[string]Counters, now []Group, took time.Duration) map[string]Usage {
	out := map[string]Usage{}
	var borrowed, unused float64
	left := make([]float64, len(now)) // unused, by group
	for n, g := range now {
		was := before[g.Name]
		if g.Bytes < was.Bytes || g.Packets < was.Packets {
			was = Counters{}
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
		if was.Backlog > 0 && g.Backlog > 0 && !unit.Met(float64(u.Delivered), float64(u.Guaranteed)) {
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
