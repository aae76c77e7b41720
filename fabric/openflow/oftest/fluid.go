package oftest

import (
	"slices"
	"time"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
	"headgate.dev/headgate/unit"
)

// Stream is packets of one size and one connection at a constant rate, which are not sent one by one: how many pass the
// tables, meters and cables is computed (Network.Advance).
type Stream struct {
	n         *Network
	from      *Host
	frame     []byte
	rate      float64 // bit/s
	root      *node
	version   uint64 // timeline.changes when root was traced
	looped    bool
	delivered map[*Host]float64 // bit/s in the last step
}

// node is what a switch does with the frames of a stream that arrive at a port.
type node struct {
	in    *port
	steps []traceStep
}

// traceStep is one of: a lookup in a table, a counter of a group or bucket, a meter, and an output. A meter
// applies to all steps after it.
type traceStep struct {
	table   *table
	flow    *flow // that matched, or nil
	counter *counter
	meter   *meter
	out     *port
	packet  *pipeline.Packet // that leaves by out
	dir     *direction
	next    *node
	size    float64 // bytes of the packet
}

// fluidResource is what passes a part of the streams: a meter, or a direction of a cable.
type fluidResource struct {
	offered, packets float64 // bit/s and packets/s
	pass             float64 // the part that passes, 0 to 1
}

// AddStream starts a stream of a rate in bit/s of frames like frame, which the host sends.
func (n *Network) AddStream(from *Host, frame []byte, rate unit.Rate) *Stream {
	n.lock()
	defer n.unlock()
	n.advance()
	s := &Stream{n: n, from: from, frame: slices.Clone(frame), rate: float64(rate)}
	n.streams = append(n.streams, s)
	return s
}

// SetRate changes the rate from now on.
func (s *Stream) SetRate(rate unit.Rate) {
	s.n.lock()
	defer s.n.unlock()
	s.n.advance()
	s.rate = float64(rate)
}

// Stop ends the stream.
func (s *Stream) Stop() {
	s.n.lock()
	defer s.n.unlock()
	s.n.advance()
	s.n.streams = slices.DeleteFunc(s.n.streams, func(o *Stream) bool { return o == s })
	clear(s.delivered)
}

// Delivered returns the rate in bit/s at which the frames arrived at a host in the last step.
func (s *Stream) Delivered(at *Host) float64 {
	s.n.lock()
	defer s.n.unlock()
	return s.delivered[at]
}

// Looped reports whether the frames passed more than MaxHops switches, or made too many copies to be followed.
func (s *Stream) Looped() bool {
	s.n.lock()
	defer s.n.unlock()
	return s.looped
}

// Advance counts what the streams have done since the last time, through the tables as they are now. A meter passes what
// its bucket has and gets in the time; a cable passes its capacity. What exceeds that is dropped of all streams in
// proportion to their rates there, as a token bucket and a FIFO queue do with constant rates. Packets to controllers are
// not sent. A bucket that has less than two packets would pass less of real packets, because it is full between them.
func (n *Network) Advance() {
	n.lock()
	defer n.unlock()
	n.advance()
}

// AdvanceEvery calls Advance in an interval of at least 1 ms, until stop is called.
func (n *Network) AdvanceEvery(d time.Duration) (stop func()) {
	n.lock()
	defer n.unlock()
	d = max(d, time.Millisecond)
	var e *event
	var step func()
	step = func() {
		n.advance()
		e = n.after(d, step)
	}
	e = n.after(d, step)
	return func() {
		n.lock()
		defer n.unlock()
		n.cancel(e)
	}
}

func (n *Network) advance() {
	now := time.Now()
	d := now.Sub(n.advanced)
	n.advanced, n.counted = now, time.Time{}
	if len(n.streams) > 0 {
		n.counted = now
	}
	if d <= 0 || len(n.streams) == 0 {
		return
	}
	f := &flood{now: now, seconds: d.Seconds(), meters: map[*meter]*fluidResource{}}
	for _, s := range n.streams {
		if s.root == nil && !s.looped || s.version != n.changes {
			s.follow()
		}
	}
	f.balance(n)
	f.counting = true
	for _, s := range n.streams {
		clear(s.delivered)
		f.stream = s
		f.start(s)
	}
	f.finish()
}

// follow traces the way of the frames.
func (s *Stream) follow() {
	s.version, s.root, s.looped = s.n.changes, nil, false
	if s.from.wire == nil {
		return
	}
	nodes := 0
	s.root = &node{steps: []traceStep{{dir: s.from.wire, size: float64(len(s.frame)), packet: pipeline.NewPacket(slices.Clone(s.frame), 0)}}}
	s.followSteps(s.root, 0, &nodes)
}

// maxNodes is how many passages of switches a stream may have, with all copies.
const maxNodes = 10_000

func (s *Stream) followSteps(n *node, hops int, nodes *int) {
	for i := range n.steps {
		st := &n.steps[i]
		if st.dir == nil || st.dir.to.host != nil || st.dir.lost || !st.dir.cable.plugged {
			continue
		}
		p := st.dir.to.port()
		if p == nil || !p.live() || st.dir.to.end.Switch.off {
			continue
		}
		if *nodes++; *nodes > maxNodes || hops > MaxHops {
			s.looped = true
			return
		}
		st.next = &node{in: p}
		if p.config&openflow.PortNoRecv != 0 {
			continue
		}
		arrived := pipeline.NewPacket(slices.Clone(st.packet.Data), p.no)
		r := &recording{s: st.dir.to.end.Switch, bytes: len(arrived.Data)}
		x := pipeline.Execution{Switch: r, Packet: arrived, In: p.no}
		x.Tables()
		st.next.steps = r.steps
		for j := range st.next.steps {
			out := &st.next.steps[j]
			if out.out != nil {
				out.dir, _ = out.out.peer.(*direction)
			}
		}
		s.followSteps(st.next, hops+1, nodes)
	}
}
