package oftest

import (
	"fmt"
	"time"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
)

// passage is the way of one packet through a switch: the Switch of its execution.
type passage struct {
	pipeline.Execution
	s      *Switch
	packet pipeline.Packet
	bytes  int // of the packet when it arrived, which count for flows and groups whatever is changed in it
	now    time.Time
	way    way
}

// passage begins the passage of a frame, whose bytes it owns. It ends with done.
func (s *Switch) passage(data []byte, in openflow.PortNo, w way) *passage {
	e := s.idle
	if s.idle = nil; e == nil {
		e = &passage{s: s}
	}
	e.bytes, e.now, e.way = len(data), time.Now(), w
	e.packet.Read(data, in)
	e.Execution = pipeline.Execution{Switch: e, Packet: &e.packet, In: in}
	return e
}

// done gives the passage to the next frame.
func (e *passage) done() { e.s.idle = e }

// Lookup counts the packet in a table, and in the flow that it matches.
func (e *passage) Lookup(x *pipeline.Execution, n int) *pipeline.Flow {
	t := &e.s.tables[n]
	f := t.lookup(&x.Packet.Key)
	t.lookups++
	if f == nil {
		return nil
	}
	t.matched++
	f.packets++
	f.bytes += uint64(e.bytes)
	f.used = e.now
	return &f.Flow
}

// Meter passes all by a meter that was deleted.
func (e *passage) Meter(x *pipeline.Execution, id openflow.MeterID) bool {
	m := e.s.meters[id]
	return m == nil || m.pass(len(x.Packet.Data))
}

// Group, Live and Ports are those of the switch.
func (e *passage) Group(id openflow.GroupID) *pipeline.Group { return e.s.pipelineGroup(id) }
func (e *passage) Live(no openflow.PortNo) bool              { return e.s.live(no) }
func (e *passage) Ports() []openflow.PortNo                  { return e.s.portNumbers() }

// Bucket counts the packet in a bucket, and in its group.
func (e *passage) Bucket(_ *pipeline.Execution, of *pipeline.Group, bucket int, first bool) {
	entry := e.s.groups[of.ID]
	if first {
		entry.add(e.bytes)
	}
	entry.buckets[bucket].add(e.bytes)
}

// add counts one packet.
func (c *counter) add(bytes int) {
	c.packets++
	c.bytes += uint64(bytes)
}

// Send sends the packet as it is out of a port that exists and is up.
func (e *passage) Send(x *pipeline.Execution, to openflow.PortNo) {
	p := e.s.ports[to]
	if p == nil || !p.forwards() {
		return
	}
	p.tx.count(1, float64(len(x.Packet.Data)))
	if p.peer != nil {
		p.peer.frame(append([]byte(nil), x.Packet.Data...), way{e.way.id, e.way.hops + 1})
	}
}

// PacketIn sends the packet to the controllers.
func (e *passage) PacketIn(x *pipeline.Execution, reason openflow.PacketInReason) {
	key := &x.Packet.Key
	m := &openflow.PacketIn{
		Buffer: openflow.NoBuffer, TotalLen: uint16(len(x.Packet.Data)), Reason: reason, Cookie: ^uint64(0),
		Match: openflow.Match{openflow.InPort(x.In)}, Data: append([]byte(nil), x.Packet.Data...),
	}
	if x.Flow != nil {
		m.Cookie, m.Table = x.Flow.Cookie, x.Flow.Table
	}
	if v := key.Uint(openflow.FieldMetadata); v != 0 {
		m.Match = append(m.Match, openflow.Metadata(v))
	}
	if v := key.Uint(openflow.FieldTunnelID); v != 0 {
		m.Match = append(m.Match, openflow.TunnelID(v))
	}
	e.s.notify(m)
}

// Skip is for a trace.
func (e *passage) Skip(*pipeline.Execution, fmt.Stringer, pipeline.Reason) {}

// pipelineGroup is a group as executions have it, nil if there is none.
func (s *Switch) pipelineGroup(id openflow.GroupID) *pipeline.Group {
	if g := s.groups[id]; g != nil {
		return &g.Group
	}
	return nil
}

// live reports whether a port exists, and a bucket may use it.
func (s *Switch) live(no openflow.PortNo) bool {
	p := s.ports[no]
	return p != nil && p.live()
}

func (s *Switch) portNumbers() (all []openflow.PortNo) {
	for _, p := range s.sortedPorts() {
		all = append(all, p.no)
	}
	return all
}
