package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"headgate/lab/link"
	"headgate/probe"
)

// Path is what a train meets from its sender to its receiver.
type Path struct {
	// Hops, each a queue, what limits it, and a link: the lab's own model, with cross
	// traffic that shares this hop alone. A receiver that is suspended is a property
	// of the last (link.Suspension).
	Hops []link.Spec
	// Sleep: the sender runs for On, then not for Off, and so on. What was due
	// meanwhile is sent as it wakes, and stamped then.
	Sleep link.Active
	// Work is for how long a packet keeps the sender's processor: nothing is sent
	// faster than that, and Sent tells it.
	Work time.Duration
	// Noise is the standard deviation of the receiver's stamps. It never changes their
	// order.
	Noise time.Duration
	// Skew is by how much the receiver's clock is too fast: 1e-5 is 10 us a second.
	Skew float64
}

// Network is a path with its state: what buckets hold, what queues, and where cross
// traffic is.
type Network struct {
	path  Path
	links []*hop
	rng   *rand.Rand
	now   int64 // when the last packet of the last train had arrived
	stamp int64 // the receiver's last
}

// warmUp lets cross traffic fill the queues before the first train.
const warmUp = int64(200 * time.Millisecond)

// New makes a network; all that is random in it follows from seed.
func New(p Path, seed uint64) *Network {
	n := &Network{path: p, rng: rand.New(rand.NewPCG(seed, 0)), now: warmUp}
	for i, spec := range p.Hops {
		n.links = append(n.links, &hop{Link: link.New(spec, seed*1000+uint64(i)+1, 0), spec: spec})
	}
	return n
}

// packet is one of the train, between two hops.
type packet struct {
	number, size int
	at           int64
}

// Send lets a train cross the path, once its pause is over.
func (n *Network) Send(t probe.Train) probe.Sample {
	s := probe.Sample{Train: t, Sent: make([]int64, 0, t.Count())}
	packets := n.path.emit(t, n.now)
	at := n.now
	for _, p := range packets {
		at = p.at
		s.Sent = append(s.Sent, at)
	}
	for _, l := range n.links {
		packets = cross(l, packets)
	}
	for _, p := range packets {
		n.stamp = max(n.stamp, n.clock(p.at))
		s.Arrived = append(s.Arrived, probe.Arrival{Number: p.number, At: n.stamp})
		n.now = max(n.now, p.at)
	}
	n.now = max(n.now, at)
	return s
}

// emit is a train's packets as they leave the sender, from a time on.
func (p *Path) emit(t probe.Train, from int64) []packet {
	packets := make([]packet, 0, t.Count())
	due := float64(from)
	at, free := from, from
	for i, part := range t.Parts {
		due += float64(part.Pause)
		if i > 0 && part.Pause == 0 {
			due += part.Gap()
		}
		for j := range part.Count {
			if j > 0 {
				due += part.Gap()
			}
			at = p.awake(max(free, int64(due)))
			free = at + int64(p.Work)
			packets = append(packets, packet{len(packets), part.Frame(), at})
		}
	}
	return packets
}

// awake is when the sender can send what is due at a time.
func (p *Path) awake(at int64) int64 {
	on, off := int64(p.Sleep.On), int64(p.Sleep.Off)
	if off == 0 {
		return at
	}
	if into := at % (on + off); into >= on {
		return at - into + on + off
	}
	return at
}

// clock is what the receiver's clock shows.
func (n *Network) clock(at int64) int64 {
	return at + int64(float64(at)*n.path.Skew+n.rng.NormFloat64()*float64(n.path.Noise))
}

// cross lets packets pass one hop, in the order in which they come, and gives those
// that leave it, in the order in which they do.
func cross(l *hop, packets []packet) []packet {
	out := make([]packet, 0, len(packets))
	left := len(packets)
	now := int64(0)
	take := func(at int64) {
		now = max(now, at)
		for {
			r, ok := l.Take(now)
			if !ok {
				return
			}
			if r.Cross {
				l.keep(r)
				continue
			}
			left--
			if r.Fate == link.Delivered {
				out = append(out, packet{int(r.Ref), r.Size, r.Released})
			}
		}
	}
	for _, p := range packets {
		take(p.at)
		l.saw(p.at)
		l.Offer(p.at, link.Packet{Size: p.size, Ref: uint32(p.number)})
	}
	for left > 0 {
		at, ok := l.Next()
		if !ok {
			take(now) // what was dropped last is no other train's
			break
		}
		take(at)
	}
	slices.SortStableFunc(out, func(a, b packet) int { return cmp.Compare(a.at, b.at) })
	return out
}
