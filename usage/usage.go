package usage

import (
	"math"
	"time"

	"headgate.dev/headgate/unit"
)

// Counters are a group's counters since its creation.
type Counters struct {
	// Class is the object of the kernel that counts, where there is such: counters of another begin at 0.
	Class   string `json:"class,omitempty"`
	Bytes   uint64 `json:"bytes"`
	Packets uint64 `json:"packets"`
	Drops   uint64 `json:"drops"`
	Marks   uint64 `json:"marks"`
	Backlog uint64 `json:"backlog"` // bytes in the queue, at the time At
	// QueuedFor is the total time in which the queue was never empty, and Queued the bytes that
	// left in that time.
	QueuedFor time.Duration `json:"queued_ns,omitempty"`
	Queued    uint64        `json:"queued,omitempty"`
	// At is the time of the reading.
	At time.Time `json:"at,omitzero"`
}

// standingFraction is the part of an interval in which a queue must have been standing. It is less than 1
// because the kernel measures with timestamps, of which a class that gets a tenth of its guarantee
// has three per second, and because a starved sender on a busy machine does not keep its queue
// filled.
const standingFraction = 0.5

// recreated reports whether the group was recreated between two readings.
func (now Counters) recreated(was Counters) bool {
	return now.Bytes < was.Bytes || now.Packets < was.Packets || now.Drops < was.Drops || now.Marks < was.Marks ||
		now.QueuedFor < was.QueuedFor || was.Class != "" && now.Class != was.Class
}

// Rate returns the delivered rate between two readings in bits per second, 0 if no time is between
// them. The counters of a group that was recreated count from 0.
func Rate(was, now Counters) float64 {
	if now.recreated(was) {
		was.Bytes = 0
	}
	return RateOver(now.Bytes-was.Bytes, was.At, now.At)
}

// RateOver returns the rate of bytes between two times, in bits per second.
func RateOver(bytes uint64, was, now time.Time) float64 {
	took := now.Sub(was).Seconds()
	if took <= 0 {
		return 0
	}
	return float64(bytes) * 8 / took
}

// Unmet reports whether a guarantee was unmet between two readings.
func Unmet(was, now Counters, guarantee unit.Rate) bool {
	took := now.At.Sub(was.At)
	if guarantee == 0 || took <= 0 || now.recreated(was) || unit.Met(Rate(was, now), float64(guarantee)) {
		return false
	}
	if now.Backlog > 0 && now.Bytes-was.Bytes < was.Backlog {
		return true // less left than the backlog at the first reading
	}
	stood := now.QueuedFor - was.QueuedFor
	if float64(stood) < standingFraction*float64(took) || now.Queued < was.Queued {
		return false
	}
	return !unit.Met(float64(now.Queued-was.Queued)*8/stood.Seconds(), float64(guarantee))
}

// Direction is one direction of a device at one reading.
type Direction struct {
	Name  string    // "out" or "in"
	Limit unit.Rate // 0 if it is not known
	// Control counts control traffic, which belongs to no group.
	Control Counters
	// Groups are in the order of the tree: parents before their children.
	Groups []Group
}

// Key is the name of a group among those of a device: "out/web".
func (d Direction) Key(g Group) string { return d.Name + "/" + g.Path }

// Counters returns the counters of the groups by path, and those of control traffic by ControlPath.
func (d Direction) Counters() map[string]Counters {
	out := make(map[string]Counters, len(d.Groups)+1)
	for _, g := range d.Groups {
		out[g.Path] = g.Counters
	}
	out[ControlPath] = d.Control
	return out
}

// ControlPath is the path of control traffic among those of groups.
const ControlPath = "(control)"

// Group is a group with its counters at a time.
type Group struct {
	Path      string // "tenant/web"
	Parent    int    // index in Direction.Groups, -1 at the top
	Leaf      bool
	Guarantee unit.Rate
	Counters
	Delay time.Duration // sojourn time of the last packet that left; not accounted
}

// Usage is the usage of a group in an interval. Offered to Lent are bytes.
type Usage struct {
	Seconds    float64 `json:"seconds"`
	Offered    uint64  `json:"offered"`
	Delivered  uint64  `json:"delivered"`
	Guaranteed uint64  `json:"guaranteed"`
	Borrowed   uint64  `json:"borrowed"`
	Lent       uint64  `json:"lent"`
	Drops      uint64  `json:"drops"`
	Marks      uint64  `json:"marks"`
	Unmet      float64 `json:"unmet"` // seconds
}

// Add adds the usage of another interval.
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

// Unused returns the bytes of the guarantee that the group did not use.
func (u Usage) Unused() uint64 { return subtractSaturating(u.Guaranteed, u.Delivered) }

// Rate returns a number of bytes of the interval in bits per second; 0 if the interval is empty.
func (u Usage) Rate(bytes uint64) float64 {
	if u.Seconds <= 0 {
		return 0
	}
	return float64(bytes) * 8 / u.Seconds
}

// Account returns the usage of each group of a direction since a former reading, in the order of the groups.
// before has the counters of that reading by path (Direction.Counters). A parent's delivered and offered bytes,
// drops and marks are those of its leaves, whatever the engine counts for it.
//
// A group borrows what it delivers beyond its guarantee. Siblings borrow alike from what each of them leaves
// unused and from what their parent's guarantee (at the top: the limit without control traffic) has
// unallocated: a group lent its unused bytes times the part of all these that was borrowed. What a parent
// borrowed itself comes from its own siblings.
func Account(before map[string]Counters, now Direction) []Usage {
	all := make([]Usage, len(now.Groups))
	interval := longest(before, now.Groups)
	for n, g := range now.Groups {
		all[n] = since(before[g.Path], g, interval)
		if !g.Leaf {
			u := all[n]
			all[n] = Usage{Seconds: u.Seconds, Guaranteed: u.Guaranteed, Unmet: u.Unmet}
		}
	}
	for n, g := range now.Groups {
		if !g.Leaf {
			continue
		}
		for p := g.Parent; p >= 0; p = now.Groups[p].Parent {
			all[p].Delivered += all[n].Delivered
			all[p].Offered += all[n].Offered
			all[p].Drops += all[n].Drops
			all[p].Marks += all[n].Marks
		}
	}
	for n := range all {
		all[n].Borrowed = subtractSaturating(all[n].Delivered, all[n].Guaranteed)
	}
	limit := float64(now.Limit)/8*interval.Seconds() - float64(sinceBytes(before[ControlPath], now.Control))
	lend(now.Groups, limit, all)
	return all
}

// since returns what one group had by its own counters. A group without a former reading is new, and its interval
// is the longest of the others.
func since(was Counters, g Group, interval time.Duration) Usage {
	if !was.At.IsZero() {
		interval = g.At.Sub(was.At)
	}
	if g.recreated(was) {
		was = Counters{At: was.At}
	}
	u := Usage{
		Seconds: interval.Seconds(), Delivered: g.Bytes - was.Bytes,
		Guaranteed: uint64(float64(g.Guarantee) / 8 * interval.Seconds()),
		Drops:      subtractSaturating(g.Drops, was.Drops), Marks: subtractSaturating(g.Marks, was.Marks),
	}
	u.Offered = offered(u, g.Counters, was)
	if Unmet(was, g.Counters, g.Guarantee) {
		u.Unmet = interval.Seconds()
	}
	return u
}

func sinceBytes(was, now Counters) uint64 {
	if now.recreated(was) {
		was = Counters{}
	}
	return now.Bytes - was.Bytes
}

// lend sets the bytes that each group lent; limit is the bytes that the groups at the top have together.
func lend(groups []Group, limit float64, all []Usage) {
	siblings := map[int][]int{}
	for n, g := range groups {
		siblings[g.Parent] = append(siblings[g.Parent], n)
	}
	for parent, list := range siblings {
		own, fromAbove := limit, 0.0
		if parent >= 0 {
			own, fromAbove = float64(all[parent].Guaranteed), float64(all[parent].Borrowed)
		}
		var borrowed, unused, guaranteed float64
		for _, n := range list {
			borrowed += float64(all[n].Borrowed)
			unused += float64(all[n].Unused())
			guaranteed += float64(all[n].Guaranteed)
		}
		unused += math.Max(0, own-guaranteed)
		if unused <= 0 {
			continue
		}
		part := math.Min(1, math.Max(0, borrowed-fromAbove)/unused)
		for _, n := range list {
			all[n].Lent = uint64(float64(all[n].Unused()) * part)
		}
	}
}

// longest returns the longest interval between two readings of a group.
func longest(before map[string]Counters, now []Group) (most time.Duration) {
	for _, g := range now {
		if was, ok := before[g.Path]; ok && !was.At.IsZero() {
			most = max(most, g.At.Sub(was.At))
		}
	}
	return most
}

// offered returns the delivered bytes, the growth of the backlog, and the dropped packets times the
// mean packet length.
func offered(u Usage, now, was Counters) uint64 {
	sum := float64(u.Delivered) + float64(now.Backlog) - float64(was.Backlog)
	if packets := subtractSaturating(now.Packets, was.Packets); packets > 0 {
		sum += float64(u.Drops) * float64(u.Delivered) / float64(packets)
	}
	return uint64(math.Max(0, sum))
}

func subtractSaturating(a, b uint64) uint64 {
	if a < b {
		return 0
	}
	return a - b
}
