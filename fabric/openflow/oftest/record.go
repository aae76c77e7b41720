package oftest

import (
	"fmt"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
)

// recording is the Switch of an execution whose steps are recorded, not done.
type recording struct {
	s     *Switch
	bytes int // of the packet when it arrived
	steps []traceStep
}

// add adds a step with the length that counts for it.
func (r *recording) add(st traceStep, bytes int) {
	st.size = float64(bytes)
	r.steps = append(r.steps, st)
}

func (r *recording) Lookup(x *pipeline.Execution, n int) *pipeline.Flow {
	t := &r.s.tables[n]
	f := t.lookup(&x.Packet.Key)
	r.add(traceStep{table: t, flow: f}, r.bytes)
	if f == nil {
		return nil
	}
	return &f.Flow
}

func (r *recording) Meter(x *pipeline.Execution, id openflow.MeterID) bool {
	if m := r.s.meters[id]; m != nil {
		r.add(traceStep{meter: m}, len(x.Packet.Data))
	}
	return true
}

func (r *recording) Group(id openflow.GroupID) *pipeline.Group { return r.s.pipelineGroup(id) }
func (r *recording) Live(no openflow.PortNo) bool              { return r.s.live(no) }
func (r *recording) Ports() []openflow.PortNo                  { return r.s.portNumbers() }

func (r *recording) Bucket(_ *pipeline.Execution, of *pipeline.Group, bucket int, first bool) {
	entry := r.s.groups[of.ID]
	if first {
		r.add(traceStep{counter: &entry.counter}, r.bytes)
	}
	r.add(traceStep{counter: &entry.buckets[bucket]}, r.bytes)
}

func (r *recording) Send(x *pipeline.Execution, to openflow.PortNo) {
	if p := r.s.ports[to]; p != nil && p.forwards() {
		r.add(traceStep{out: p, packet: x.Packet.Clone()}, len(x.Packet.Data))
	}
}

// PacketIn and Skip change nothing that is counted.
func (r *recording) PacketIn(*pipeline.Execution, openflow.PacketInReason)   {}
func (r *recording) Skip(*pipeline.Execution, fmt.Stringer, pipeline.Reason) {}
