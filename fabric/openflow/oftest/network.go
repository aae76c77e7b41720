package oftest

import (
	"fmt"
	"time"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/unit"
)

// Network is switches and hosts that cables join, on one clock. What happens at one time happens in the order in which
// it was caused, so that a test is reproducible. Its methods may be called by any goroutine.
type Network struct {
	*timeline
	switches []*Switch
	hosts    []*Host
	cables   []*Cable
	streams  []*Stream
	advanced time.Time // up to when the streams have been counted

	flying map[uint64]*copies
	total  int // frames on cables
	storm  Storm
}

// copies counts the frames that were made of one.
type copies struct{ flying, made int }

// Storm is what a loop does.
type Storm struct {
	Looped     uint64 // frames that were dropped after MaxHops switches
	Overflow   uint64 // frames that were dropped because MaxFlying were on cables
	MostCopies int    // the most times that one frame, or a copy of it, was sent over a cable
	Frame      []byte // that frame, as it was first sent
}

// Limits of a network, by which a storm ends.
const (
	MaxHops   = 64
	MaxFlying = 50_000
)

// NewNetwork returns an empty network.
func NewNetwork() *Network {
	return &Network{timeline: &timeline{}, flying: map[uint64]*copies{}, advanced: time.Now()}
}

// AddSwitch adds a switch without ports, but the local one. The name is that of its local port, up to 15 bytes.
func (n *Network) AddSwitch(name string, o Options) *Switch {
	n.lock()
	defer n.unlock()
	s := newSwitch(n.timeline, name, o)
	n.switches = append(n.switches, s)
	return s
}

// Switches returns the switches in the order in which they were added.
func (n *Network) Switches() []*Switch {
	n.lock()
	defer n.unlock()
	return append([]*Switch(nil), n.switches...)
}

// Storm returns what was seen of loops so far.
func (n *Network) Storm() Storm {
	n.lock()
	defer n.unlock()
	return n.storm
}

// ResetStorm forgets what was seen of loops.
func (n *Network) ResetStorm() {
	n.lock()
	defer n.unlock()
	n.storm = Storm{}
}

// End is a port of a switch.
type End struct {
	Switch *Switch
	Port   openflow.PortNo
}

// CableOptions describe a cable.
type CableOptions struct {
	// Delay of a frame. 0 is a microsecond: a loop of cables without any delay would be an endless moment.
	Delay time.Duration
	// Capacity of each direction in bit/s of frames without preamble and checksum; 0 is unlimited. A frame waits until
	// those before it were sent, and is dropped if that takes longer than Queue; 0 is 100 ms.
	Capacity unit.Rate
	Queue    time.Duration
}

const (
	leastDelay   = time.Microsecond
	defaultQueue = 100 * time.Millisecond
)

// Cable joins two ports, or a port and a host.
type Cable struct {
	n       *Network
	options CableOptions
	dirs    [2]*direction // from the first end, and from the second
	plugged bool
}

// direction is one direction of a cable.
type direction struct {
	cable *Cable
	to    target
	lost  bool      // passes nothing
	busy  time.Time // until when frames are sent
	fluidResource
}

// target is an end of a cable: a port or a host.
type target struct {
	end  End
	host *Host
}

// port is the port of a target, or nil.
func (t target) port() *port {
	if t.host != nil || t.end.Switch == nil {
		return nil
	}
	return t.end.Switch.ports[t.end.Port]
}

// AddCable joins two ports of switches of the network. Both go up.
func (n *Network) AddCable(a, b End, o CableOptions) (*Cable, error) {
	n.lock()
	defer n.unlock()
	return n.join(target{end: a}, target{end: b}, o)
}

func (n *Network) join(a, b target, o CableOptions) (*Cable, error) {
	o.Delay = max(o.Delay, leastDelay)
	if o.Queue == 0 {
		o.Queue = defaultQueue
	}
	c := &Cable{n: n, options: o}
	c.dirs = [2]*direction{{cable: c, to: b}, {cable: c, to: a}}
	for _, t := range []target{a, b} {
		p := t.port()
		switch {
		case t.host != nil:
		case p == nil:
			return nil, fmt.Errorf("port %d of switch %016x: it does not exist", t.end.Port, t.end.Switch.DatapathID())
		case t.end.Switch.timeline != n.timeline:
			return nil, fmt.Errorf("switch %016x: it is not of this network", t.end.Switch.DatapathID())
		case p.cable != nil && p.cable.plugged:
			return nil, fmt.Errorf("port %d of switch %016x: it has a cable: unplug it", t.end.Port, t.end.Switch.DatapathID())
		}
	}
	c.setPlugged(true)
	n.cables = append(n.cables, c)
	return c, nil
}

// Unplug takes the cable out. The ports at both ends go down; what was on the cable is lost.
func (c *Cable) Unplug() {
	c.n.lock()
	defer c.n.unlock()
	c.setPlugged(false)
}

// Plug puts the cable in again. It is an error if another cable has taken its place.
func (c *Cable) Plug() error {
	c.n.lock()
	defer c.n.unlock()
	for _, d := range c.dirs {
		if p := d.to.port(); p != nil && p.cable != nil && p.cable != c {
			return fmt.Errorf("port %d: it has another cable", p.no)
		}
	}
	c.setPlugged(true)
	return nil
}

func (c *Cable) setPlugged(in bool) {
	if c.plugged == in {
		return
	}
	c.plugged = in
	c.n.changes++
	for i, d := range c.dirs {
		out := c.dirs[1-i] // from the target of d
		if h := d.to.host; h != nil {
			h.wire = nil
			if in {
				h.wire = out
			}
		}
		p := d.to.port()
		if p == nil {
			continue
		}
		p.peer, p.cable = nil, nil
		if in {
			p.peer, p.cable = out, c
		}
		d.to.end.Switch.setLink(p, in)
	}
}

// carrier sets the link of the port at the other end of one that a controller has set down or up.
func (c *Cable) carrier(of *port, up bool) {
	for _, d := range c.dirs {
		if p := d.to.port(); p != nil && p != of {
			d.to.end.Switch.setLink(p, up)
		}
	}
}

// Lose makes the cable pass nothing from its first or its second end while the ports at both ends stay up.
func (c *Cable) Lose(fromFirst, fromSecond bool) {
	c.n.lock()
	defer c.n.unlock()
	c.dirs[0].lost, c.dirs[1].lost = fromFirst, fromSecond
	c.n.changes++
}

// frame sends a frame into the cable.
func (d *direction) frame(data []byte, w way) {
	n := d.cable.n
	if w.hops > MaxHops {
		n.storm.Looped++
		return
	}
	if n.total >= MaxFlying {
		n.storm.Overflow++
		return
	}
	now := time.Now()
	wait := time.Duration(0)
	if rate := d.cable.options.Capacity; rate > 0 {
		if d.busy.Before(now) {
			d.busy = now
		}
		if d.busy.Sub(now) > d.cable.options.Queue {
			return
		}
		d.busy = d.busy.Add(time.Duration(float64(len(data)*8) / float64(rate) * float64(time.Second)))
		wait = d.busy.Sub(now)
	}
	n.fly(data, w)
	n.after(wait+d.cable.options.Delay, func() {
		n.land(w)
		if d.cable.plugged && !d.lost {
			d.to.frame(data, w)
		}
	})
}

// frame passes a frame to the port or the host.
func (t target) frame(data []byte, w way) {
	if t.host != nil {
		t.host.receive(data, w)
		return
	}
	t.end.Switch.receive(t.end.Port, data, w)
}

// fly counts a frame that is on a cable now, among the copies of the frame of its id.
func (n *Network) fly(data []byte, w way) {
	c := n.flying[w.id]
	if c == nil {
		c = &copies{}
		n.flying[w.id] = c
	}
	c.flying++
	c.made++
	n.total++
	if c.made > n.storm.MostCopies {
		n.storm.MostCopies = c.made
		n.storm.Frame = append(n.storm.Frame[:0:0], data...)
	}
}

// land forgets the copies of a frame when the last has arrived. What is sent on is counted at once, before a later event.
func (n *Network) land(w way) {
	n.total--
	c := n.flying[w.id]
	c.flying--
	if c.flying == 0 {
		n.after(0, func() {
			if c.flying == 0 {
				delete(n.flying, w.id)
			}
		})
	}
}
