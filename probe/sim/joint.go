package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"headgate.dev/headgate/probe"
)

// Meeting is the paths of several senders to one receiver: each has its own hops up to
// the point where they meet, and all share the hops behind it.
type Meeting struct {
	// Branches are the paths up to that point. Noise has no effect there, and Skew is the rate
	// error of that sender's clock.
	Branches []Path
	// Shared is the path behind that point: Noise and Skew are the receiver's. No hops is
	// a link of infinite rate. A suspended receiver is a property of the last hop
	// (link.Suspension).
	Shared Path
	// Jitter is the standard deviation of a sender's start: the receiver starts each
	// sender, and corrects for RTTs that vary.
	Jitter time.Duration
	// Coalescing is that of the receiver's interrupts; nil is one interrupt per packet.
	Coalescing *Coalescing
}

// Coalescing delivers packets in groups: Time after the first packet of a group, or with
// the last of Packets, whichever is earlier. All packets of a group have the same
// timestamp.
type Coalescing struct {
	Time    time.Duration
	Packets int
	// Queues gives the packets of each sender their own queue (receive-side scaling), so
	// that even their order is not that of the paths (estimation seed, figure 3.21).
	Queues bool
}

// JointNetwork is a meeting with its state.
type JointNetwork struct {
	meeting  Meeting
	branches [][]*hop
	offset   []int64 // offset of each sender's clock
	shared   *Network
}

// NewJoint returns a network of several senders. All its random values follow from seed.
func NewJoint(m Meeting, seed uint64) *JointNetwork {
	n := &JointNetwork{meeting: m, shared: New(m.Shared, seed)}
	rng := rand.New(rand.NewPCG(seed, 1))
	for i, p := range m.Branches {
		n.branches = append(n.branches, New(p, seed+uint64(i+1)<<32).links)
		n.offset = append(n.offset, rng.Int64N(int64(time.Hour)))
	}
	return n
}

// Send sends each train over its sender's hops, and all together over the shared ones.
func (n *JointNetwork) Send(j probe.Joint) probe.JointSample {
	s := probe.JointSample{Joint: j, Sent: make([][]int64, len(j.Trains))}
	// Begin late enough that jitter can be negative.
	begin := n.shared.now + int64(3*n.meeting.Jitter)
	last := n.shared.now
	var all []packet
	var from []int // number of the first packet of each sender
	for i, t := range j.Trains {
		start := begin + int64(n.shared.rng.NormFloat64()*float64(n.meeting.Jitter))
		if i < len(j.Start) {
			start += int64(j.Start[i])
		}
		packets := n.meeting.Branches[i].emit(t, max(start, n.shared.now))
		for _, p := range packets {
			last = max(last, p.at)
			s.Sent[i] = append(s.Sent[i], p.at+int64(float64(p.at)*n.meeting.Branches[i].Skew)+n.offset[i])
		}
		for _, l := range n.branches[i] {
			packets = cross(l, packets)
		}
		first := 0
		if i > 0 {
			first = from[i-1] + j.Trains[i-1].Count()
		}
		from = append(from, first)
		for _, p := range packets {
			p.number += first
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b packet) int { return cmp.Compare(a.at, b.at) })
	for _, l := range n.shared.links {
		all = cross(l, all)
	}
	sender := func(p packet) int {
		after, _ := slices.BinarySearch(from, p.number+1)
		return after - 1
	}
	if n.meeting.Coalescing != nil {
		all = n.meeting.Coalescing.handUp(all, sender)
	}
	r := n.shared
	for _, p := range all {
		i := sender(p)
		r.stamp = max(r.stamp, r.clock(p.at))
		s.Arrived = append(s.Arrived, probe.JointArrival{From: i, Number: p.number - from[i], At: r.stamp})
		r.now = max(r.now, p.at)
	}
	r.now = max(r.now, last)
	return s
}

// handUp returns packets as they are delivered, group by group.
func (c *Coalescing) handUp(packets []packet, sender func(packet) int) []packet {
	type group struct {
		at      int64
		packets []packet
	}
	var groups []*group
	open := map[int]*group{}
	for _, p := range packets {
		queue := 0
		if c.Queues {
			queue = sender(p)
		}
		g := open[queue]
		if g == nil || g.at < p.at {
			g = &group{at: p.at + int64(c.Time)}
			groups, open[queue] = append(groups, g), g
		}
		g.packets = append(g.packets, p)
		if len(g.packets) == c.Packets {
			g.at = p.at
			delete(open, queue)
		}
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return cmp.Compare(a.at, b.at) })
	out := packets[:0:0]
	for _, g := range groups {
		for _, p := range g.packets {
			p.at = g.at
			out = append(out, p)
		}
	}
	return out
}
