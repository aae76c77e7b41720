package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
)

// Path is the path of a train from its sender to its receiver.
type Path struct {
	// Hops are each a queue, a limiter and a link, in the lab's own model, with cross
	// traffic that uses only this hop. A suspended receiver is a property of the last hop
	// (link.Suspension).
	Hops []link.Spec
	// Sleep: the sender runs for On and sleeps for Off, periodically. Packets that become
	// due during sleep are sent, and timestamped, at its end.
	Sleep link.Active
	// Work is the time for which a packet occupies the sender's processor: it limits the
	// sending rate and shows in Sent.
	Work time.Duration
	// Noise is the standard deviation of the receiver's timestamps. It never changes
	// their order.
	Noise time.Duration
	// Skew is the relative rate error of the receiver's clock: 1e-5 is 10 us per second.
	Skew float64
}

// Network is a path with its state: buckets, queues and cross traffic.
type Network struct {
	path  Path
	links []*hop
	rng   *rand.Rand
	now   int64 // arrival of the last packet of the last train
	stamp int64 // last timestamp of the receiver
}

// warmUp is the time in which cross traffic fills the queues before the first train.
const warmUp = int64(200 * time.Millisecond)

// New returns a network. All its random values follow from seed.
func New(p Path, seed uint64) *Network {
	n := &Network{path: p, rng: rand.New(rand.NewPCG(seed, 0)), now: warmUp}
	for i, spec := range p.Hops {
		n.links = append(n.links, &hop{Link: link.New(spec, seed*1000+uint64(i)+1, 0), spec: spec})
	}
	return n
}

// packet is a packet of the train, between two hops.
type packet struct {
	number, size int
	at           int64
}

// Send sends a train over the path, after its pause.
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

// Idle lets time pass after the last packet.
func (n *Network) Idle(d time.Duration) { n.now += int64(d) }

// emit returns the packets of a train as they leave the sender, from a time on.
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

// awake returns when the sender can send a packet that is due at a time.
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

// clock returns the receiver's clock at a time.
func (n *Network) clock(at int64) int64 {
	return at + int64(float64(at)*n.path.Skew+n.rng.NormFloat64()*float64(n.path.Noise))
}

// cross sends packets over one hop, in the order of their arrival, and returns those that
// leave it, in the order in which they do.
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
			take(now) // discard the last drops before the next train
			break
		}
		take(at)
	}
	slices.SortStableFunc(out, func(a, b packet) int { return cmp.Compare(a.at, b.at) })
	return out
}
