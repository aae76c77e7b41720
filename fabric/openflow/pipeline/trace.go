package pipeline

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"headgate.dev/headgate/fabric/openflow"
)

// Tables are the flows and groups of a switch, and its ports, as the switch has reported them.
type Tables struct {
	flows  map[int][]entry // of each table, in the order in which they are preferred
	groups map[openflow.GroupID]*Group
	ports  map[openflow.PortNo]openflow.Port
	order  []openflow.PortNo
}

// entry is a flow as it was reported. Fields of its match that OpenFlow 1.3 does not define are unknown.
type entry struct {
	Flow
	stats   *openflow.FlowStats
	unknown openflow.Match
}

// NewTables returns the tables of a switch.
func NewTables(flows []openflow.FlowStats, groups []openflow.GroupDesc, ports []openflow.Port) *Tables {
	t := &Tables{flows: map[int][]entry{}, groups: map[openflow.GroupID]*Group{}, ports: map[openflow.PortNo]openflow.Port{}}
	for i := range flows {
		f := &flows[i]
		m, unknown := newMatcher(f.Match)
		p := Compile(f.Instructions)
		t.flows[int(f.Table)] = append(t.flows[int(f.Table)], entry{
			Flow{Matcher: &m, Table: f.Table, Priority: f.Priority, Cookie: f.Cookie, Program: &p}, f, unknown,
		})
	}
	for _, list := range t.flows {
		slices.SortStableFunc(list, func(a, b entry) int { return cmp.Compare(b.Priority, a.Priority) })
	}
	for _, g := range groups {
		one := NewGroup(g.Group, g.Kind, g.Buckets)
		t.groups[g.Group] = &one
	}
	for _, p := range ports {
		t.ports[p.No] = p
		t.order = append(t.order, p.No)
	}
	slices.Sort(t.order)
	return t
}

// Kind is the kind of a Step.
type Kind uint8

// The kinds of steps.
const (
	Lookup     Kind = iota // in a table
	Metered                // the packet passes a meter, which may drop it
	InBucket               // a bucket of a group processes the packet
	Output                 // out of a port; Why is set if the port sends nothing
	Controller             // to the controllers
	Skipped                // an action has no effect, for the reason in Why
	Dropped                // the packet ends here, for the reason in Why
)

// Step is what happens to a packet in a switch. Only the fields of its kind are set.
type Step struct {
	Kind  Kind
	Depth int // of groups: what a bucket does has a depth of one more than the bucket
	// Lookup: the table, and the flow that matched, nil if none did. Unsure are flows that come first if the packet matches a field of
	// theirs that is not read.
	Table  int
	Flow   *openflow.FlowStats
	Unsure []*openflow.FlowStats
	Meter  openflow.MeterID
	// InBucket: the bucket's number from 0. In a select group each live bucket is a step: how a switch chooses is its own affair.
	Group  *Group
	Bucket int
	// Output: the port, and the frame that leaves, as it does to a controller.
	Port  openflow.PortNo
	Frame []byte
	// Controller: why.
	Reason openflow.PacketInReason
	// Skipped: the action or instruction. Skipped, Dropped and Output: why.
	What string
	Why  Reason
}

// Reason is why an action has no effect, or a packet ends.
type Reason uint8

// The reasons.
const (
	None          Reason = iota
	NoFlow               // no flow of the last table matches
	NoOutput             // the flows have no output
	PortDown             // the port has no link, or is disabled
	NoPort               // the port does not exist
	PortBlocks           // the port is set to pass nothing
	ToInPort             // a packet leaves where it arrived only by IN_PORT
	NoGroup              // the group does not exist
	NoBucket             // no bucket is live
	TooManyGroups        // groups in groups made too many copies
	Unknown              // only the switch knows what it does
)

var reasons = [...]string{
	"", "no flow matches", "the flows have no output", "the port is down", "the port does not exist", "the port is set to pass nothing",
	"the frame came from this port", "the group does not exist", "no bucket is live", "too many groups", "only the switch knows its effect",
}

// String is such as "the port is down".
func (r Reason) String() string { return reasons[r] }

// Trace returns what the switch does with a frame that arrives at a port, in its order. Meters pass everything, and fragments are
// not treated apart. The steps are charged to a budget, nil without a bound; whole is false if they end where that was spent, or after maxWork.
func (t *Tables) Trace(frame []byte, in openflow.PortNo, b *Budget) (steps []Step, whole bool) {
	r := &recorder{t: t, budget: b, left: maxWork}
	if why := t.blocks(in, openflow.PortNoRecv); why != None {
		return []Step{{Kind: Dropped, Why: why}}, true
	}
	x := Execution{Switch: r, Packet: NewPacket(slices.Clone(frame), in), In: in, EveryBucket: true, Left: &r.left}
	x.Tables()
	if r.left < 0 {
		return r.steps, false
	}
	if !r.ends {
		why := NoOutput
		if r.missed {
			why = NoFlow
		}
		r.steps = append(r.steps, Step{Kind: Dropped, Why: why})
	}
	return r.steps, true
}

// blocks returns why a port passes nothing, None if it does. config is the bit that keeps it from it.
func (t *Tables) blocks(no openflow.PortNo, config openflow.PortConfig) Reason {
	switch p, ok := t.ports[no]; {
	case !ok:
		return NoPort
	case !t.Live(no):
		return PortDown
	case p.Config&config != 0:
		return PortBlocks
	}
	return None
}

// Live reports whether a port exists, has a link and is not disabled.
func (t *Tables) Live(no openflow.PortNo) bool {
	p, ok := t.ports[no]
	return ok && p.State&openflow.PortLinkDown == 0 && p.Config&openflow.PortDown == 0
}

// recorder is a Switch that does nothing but record.
type recorder struct {
	t      *Tables
	budget *Budget
	left   int // of maxWork
	steps  []Step
	last   []byte // the frame of a step: most are the same
	ends   bool   // the packet leaves, or the step that keeps it from leaving is recorded
	missed bool   // the last table had no flow
}

// add records a step, and ends the execution instead if the budget is spent.
func (r *recorder) add(x *Execution, s Step) { r.addFrame(x, s, nil) }

// addFrame is add of a step with a frame.
func (r *recorder) addFrame(x *Execution, s Step, frame []byte) {
	size := 0
	if frame != nil && !bytes.Equal(frame, r.last) {
		size = len(frame)
	}
	if r.left < 0 || !r.budget.Spend(1+len(s.Unsure), size) {
		r.left = -1
		return
	}
	if size > 0 {
		r.last = slices.Clone(frame)
	}
	if frame != nil {
		s.Frame = r.last
	}
	s.Depth = x.Depth
	r.steps = append(r.steps, s)
}

func (r *recorder) Lookup(x *Execution, table int) *Flow {
	s := Step{Kind: Lookup, Table: table}
	var found *Flow
	for i := range r.t.flows[table] {
		e := &r.t.flows[table][i]
		if !e.Matches(&x.Packet.Key) {
			continue
		}
		if len(e.unknown) > 0 {
			s.Unsure = append(s.Unsure, e.stats)
			continue
		}
		found, s.Flow = &e.Flow, e.stats
		break
	}
	r.missed = found == nil
	r.add(x, s)
	return found
}

func (r *recorder) Meter(x *Execution, id openflow.MeterID) bool {
	r.add(x, Step{Kind: Metered, Meter: id})
	return true
}

func (r *recorder) Group(id openflow.GroupID) *Group { return r.t.groups[id] }

func (r *recorder) Bucket(x *Execution, g *Group, bucket int, _ bool) {
	r.add(x, Step{Kind: InBucket, Group: g, Bucket: bucket})
}

func (r *recorder) Live(no openflow.PortNo) bool { return r.t.Live(no) }

func (r *recorder) Ports() []openflow.PortNo { return r.t.order }

func (r *recorder) Send(x *Execution, no openflow.PortNo) {
	r.ends = true
	r.addFrame(x, Step{Kind: Output, Port: no, Why: r.t.blocks(no, openflow.PortNoFwd)}, x.Packet.Data)
}

func (r *recorder) PacketIn(x *Execution, reason openflow.PacketInReason) {
	r.ends = true
	r.addFrame(x, Step{Kind: Controller, Reason: reason}, x.Packet.Data)
}

func (r *recorder) Skip(x *Execution, what fmt.Stringer, why Reason) {
	r.ends = true
	r.add(x, Step{Kind: Skipped, What: what.String(), Why: why})
}
