package openflow

import "fmt"

// Reassembler joins the parts of multipart replies (section 7.3.5, OFPMPF_REPLY_MORE). It is not safe for
// concurrent use.
type Reassembler struct {
	// Limit is the most bytes of messages that wait for their last parts. 0 is DefaultReassembly.
	Limit int

	pending map[uint32]*pending
	bytes   int
}

// DefaultReassembly is 64 MiB: the flows of a switch with 400,000 of them, at 160 bytes each.
const DefaultReassembly = 64 << 20

// partOverhead is what a part takes in memory beyond its bytes.
const partOverhead = 256

// pending is the parts of a reply that came so far.
type pending struct {
	body  ReplyBody
	bytes int
}

// Add adds a part of the reply to the request xid; size is the length of its message in bytes. It returns the whole
// reply with the last part, and nil before. The reply may share memory with the parts. A part of another kind than
// the ones before it, a further part of a reply that is a single structure, and parts beyond Limit are errors, after
// which the earlier parts of the reply are forgotten.
func (r *Reassembler) Add(xid uint32, part *MultipartReply, size int) (*MultipartReply, error) {
	before := r.pending[xid]
	if before == nil && !part.More {
		return part, nil
	}
	limit := r.Limit
	if limit == 0 {
		limit = DefaultReassembly
	}
	size += partOverhead
	if r.bytes+size > limit {
		r.Forget(xid)
		return nil, fmt.Errorf("cannot reassemble %s reply %#x: its parts and those of other replies exceed %d bytes", part.Body.Kind(), xid, limit)
	}
	if before == nil {
		if r.pending == nil {
			r.pending = map[uint32]*pending{}
		}
		r.pending[xid] = &pending{part.Body, size}
		r.bytes += size
		return nil, nil
	}
	if err := join(before.body, part.Body); err != nil {
		r.Forget(xid)
		return nil, fmt.Errorf("cannot reassemble %s reply %#x: %w", before.body.Kind(), xid, err)
	}
	before.bytes += size
	r.bytes += size
	if part.More {
		return nil, nil
	}
	r.Forget(xid)
	return &MultipartReply{Body: before.body}, nil
}

// Forget removes the parts of a reply whose last part will not come, such as after a timeout.
func (r *Reassembler) Forget(xid uint32) {
	if p := r.pending[xid]; p != nil {
		r.bytes -= p.bytes
		delete(r.pending, xid)
	}
}

// Pending returns how many replies wait for their last parts, and the bytes of them that count for Limit.
func (r *Reassembler) Pending() (replies, bytes int) { return len(r.pending), r.bytes }

// join appends the list of b to that of a.
func join(a, b ReplyBody) error {
	if a.Kind() != b.Kind() {
		return fmt.Errorf("a part is of kind %s", b.Kind())
	}
	switch a := a.(type) {
	case *FlowStatsReply:
		a.Flows = append(a.Flows, b.(*FlowStatsReply).Flows...)
	case *TableStatsReply:
		a.Tables = append(a.Tables, b.(*TableStatsReply).Tables...)
	case *TableFeaturesList:
		a.Tables = append(a.Tables, b.(*TableFeaturesList).Tables...)
	case *PortStatsReply:
		a.Ports = append(a.Ports, b.(*PortStatsReply).Ports...)
	case *QueueStatsReply:
		a.Queues = append(a.Queues, b.(*QueueStatsReply).Queues...)
	case *GroupStatsReply:
		a.Groups = append(a.Groups, b.(*GroupStatsReply).Groups...)
	case *GroupDescReply:
		a.Groups = append(a.Groups, b.(*GroupDescReply).Groups...)
	case *MeterStatsReply:
		a.Meters = append(a.Meters, b.(*MeterStatsReply).Meters...)
	case *MeterConfigReply:
		a.Meters = append(a.Meters, b.(*MeterConfigReply).Meters...)
	case *PortDescReply:
		a.Ports = append(a.Ports, b.(*PortDescReply).Ports...)
	case *ExperimenterMultipart:
		b := b.(*ExperimenterMultipart)
		if a.Experimenter != b.Experimenter || a.ExpType != b.ExpType {
			return fmt.Errorf("a part is of experimenter %#x, type %d", b.Experimenter, b.ExpType)
		}
		a.Data = append(a.Data, b.Data...)
	case *UnknownMultipart:
		a.Data = append(a.Data, b.(*UnknownMultipart).Data...)
	default:
		return fmt.Errorf("it is a single structure, but has several parts")
	}
	return nil
}
