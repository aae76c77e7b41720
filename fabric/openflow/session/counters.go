package session

import (
	"sync/atomic"

	"headgate.dev/headgate/fabric/openflow"
)

// counters count messages by type.
type counters struct {
	in, out            [32]atomic.Uint64
	malformed, unknown atomic.Uint64
}

// others is where messages of types that OpenFlow 1.3 does not define are counted.
const others = 31

func slot(t openflow.Type) int { return min(int(t), others) }

func (c *counters) received(t openflow.Type) { c.in[slot(t)].Add(1) }
func (c *counters) sent(t openflow.Type)     { c.out[slot(t)].Add(1) }

// Counts are the messages of a session by type. Those of types that OpenFlow 1.3 does not define have the type 31.
type Counts struct {
	Received, Sent map[openflow.Type]uint64
	// Malformed are messages of the switch that could not be decoded.
	Malformed uint64
	// Unknown are structures that are kept as bytes (openflow.DecodeCount): messages, and parts of them such as actions.
	Unknown uint64
}

// Counts returns the messages since the session was opened, after hello.
func (c *Conn) Counts() Counts {
	out := Counts{Received: map[openflow.Type]uint64{}, Sent: map[openflow.Type]uint64{}, Malformed: c.counters.malformed.Load(), Unknown: c.counters.unknown.Load()}
	for n := range c.counters.in {
		if v := c.counters.in[n].Load(); v > 0 {
			out.Received[openflow.Type(n)] = v
		}
		if v := c.counters.out[n].Load(); v > 0 {
			out.Sent[openflow.Type(n)] = v
		}
	}
	return out
}
