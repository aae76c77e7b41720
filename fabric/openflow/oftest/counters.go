package oftest

import (
	"fmt"
	"maps"
	"slices"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
)

func (s *Switch) flowStats(filter openflow.FlowFilter, match *pipeline.Matcher) []openflow.FlowStats {
	var all []openflow.FlowStats
	for _, f := range s.selectFlows(filter, match) {
		all = append(all, f.stats())
	}
	return all
}

func (s *Switch) aggregate(filter openflow.FlowFilter, match *pipeline.Matcher) *openflow.Aggregate {
	a := &openflow.Aggregate{}
	for i := range s.tables {
		if filter.Table != openflow.AllTables && filter.Table != openflow.TableID(i) {
			continue
		}
		sum := s.tables[i].aggregate(filter, match)
		a.Flows += sum.Flows
		a.Packets += sum.Packets
		a.Bytes += sum.Bytes
	}
	return a
}

// sumKey is of what the aggregate of a table's flows with a cookie depends on.
type sumKey struct {
	cookie, mask, version, matched uint64
	fluid                          counter
}

// aggregate sums the flows that pass a filter. A controller asks for the same sum again and again, and to visit 10,000 flows takes
// milliseconds.
func (t *table) aggregate(filter openflow.FlowFilter, match *pipeline.Matcher) (sum openflow.Aggregate) {
	repeats := byCookie(filter, match)
	of := sumKey{filter.Cookie, filter.CookieMask, t.version, t.matched, t.fluidMatched}
	if repeats && of == t.sumOf {
		return t.sum
	}
	t.each(filter, match, func(f *flow) {
		sum.Flows++
		sum.Packets += f.packets
		sum.Bytes += f.bytes
	})
	if repeats {
		t.sum, t.sumOf = sum, of
	}
	return sum
}

func (s *Switch) tableStats() []openflow.TableStats {
	var all []openflow.TableStats
	for i := range s.tables {
		t := &s.tables[i]
		all = append(all, openflow.TableStats{Table: openflow.TableID(i), Active: uint32(len(t.all)), Lookups: t.lookups + t.fluid.packets, Matched: t.matched + t.fluidMatched.packets})
	}
	return all
}

func (s *Switch) groupStats(id openflow.GroupID) []openflow.GroupStats {
	users := map[openflow.GroupID]uint32{}
	for i := range s.tables {
		for _, f := range s.tables[i].all {
			var seen []openflow.GroupID
			f.Program.Uses(func(a openflow.Action) bool {
				if g, ok := a.(openflow.Group); ok && !slices.Contains(seen, g.Group) {
					seen = append(seen, g.Group)
					users[g.Group]++
				}
				return false
			})
		}
	}
	var all []openflow.GroupStats
	for _, g := range s.sortedGroups() {
		if g.ID != id && id != openflow.GroupAll {
			continue
		}
		c := openflow.GroupStats{Group: g.ID, RefCount: users[g.ID], Packets: g.packets, Bytes: g.bytes, Duration: since(g.created)}
		for _, b := range g.buckets {
			c.Buckets = append(c.Buckets, b.wire())
		}
		all = append(all, c)
	}
	return all
}

func (s *Switch) groupDescs() []openflow.GroupDesc {
	var all []openflow.GroupDesc
	for _, g := range s.sortedGroups() {
		d := openflow.GroupDesc{Kind: g.Kind, Group: g.ID}
		for _, b := range g.Buckets {
			d.Buckets = append(d.Buckets, b.Bucket)
		}
		all = append(all, d)
	}
	return all
}

func (s *Switch) meterStats(id openflow.MeterID) []openflow.MeterCounters {
	users := map[openflow.MeterID]uint32{}
	for i := range s.tables {
		for _, f := range s.tables[i].all {
			users[f.Program.Meter]++
		}
	}
	var all []openflow.MeterCounters
	for _, m := range s.sortedMeters() {
		if m.id == id || id == openflow.MeterAll {
			all = append(all, m.stats(users[m.id], s.counted))
		}
	}
	return all
}

// queues answers with the one queue that each port of Open vSwitch has.
func (c *channel) queues(xid uint32, no openflow.PortNo) *openflow.Error {
	r := &openflow.QueueGetConfigReply{Port: no}
	for _, p := range c.s.sortedPorts() {
		if p.no == no || no == openflow.PortAny {
			r.Queues = append(r.Queues, openflow.Queue{Port: p.no})
		}
	}
	if len(r.Queues) == 0 && no != openflow.PortAny {
		return refuse(openflow.ErrQueueOpFailed, openflow.QueueOpBadPort)
	}
	c.send(xid, r)
	return nil
}

// queueStats answers with counters that are not known: queues do nothing on this datapath.
func (c *channel) queueStats(xid uint32, r *openflow.QueueStatsRequest) *openflow.Error {
	var all []openflow.QueueStats
	found := false
	for _, p := range c.s.sortedPorts() {
		if p.no != r.Port && r.Port != openflow.PortAny {
			continue
		}
		found = true
		if r.Queue == 0 || r.Queue == openflow.AllQueues {
			all = append(all, openflow.QueueStats{Port: p.no, TxBytes: unknown, TxPackets: unknown, TxErrors: unknown, Duration: openflow.Duration{Sec: ^uint32(0), Nsec: ^uint32(0)}})
		}
	}
	switch {
	case !found && r.Port != openflow.PortAny:
		return refuse(openflow.ErrQueueOpFailed, openflow.QueueOpBadPort)
	case len(all) == 0:
		return refuse(openflow.ErrQueueOpFailed, openflow.QueueOpBadQueue)
	}
	reply(c, xid, all, func(p []openflow.QueueStats) openflow.ReplyBody { return &openflow.QueueStatsReply{Queues: p} })
	return nil
}

// tableFeatures describes the tables (section 7.3.5.5).
func (s *Switch) tableFeatures() []openflow.TableFeatures {
	instructions := []openflow.InstructionID{{Type: openflow.InstructionWriteMetadata}, {Type: openflow.InstructionWriteActions}, {Type: openflow.InstructionApplyActions}, {Type: openflow.InstructionClearActions}}
	if s.limits.Meters > 0 {
		instructions = append(instructions, openflow.InstructionID{Type: openflow.InstructionMeter})
	}
	var actions []openflow.ActionID
	for t := range openflow.ActionType(32) {
		if supportedActions>>t&1 == 1 && (t != openflow.ActionGroup || s.limits.Groups > 0) {
			actions = append(actions, openflow.ActionID{Type: t})
		}
	}
	var match, wild, set []openflow.FieldType
	for _, id := range slices.Sorted(maps.Keys(rules)) {
		r := rules[id]
		match = append(match, id.TypeOf(r.maskable))
		wild = append(wild, id.TypeOf(false))
		if r.settable {
			set = append(set, id.TypeOf(false))
		}
	}
	var all []openflow.TableFeatures
	for i := range s.tables {
		f := openflow.TableFeatures{
			Table: openflow.TableID(i), Name: fmt.Sprint("table", i), MetadataMatch: ^uint64(0), MetadataWrite: ^uint64(0), MaxEntries: uint32(s.limits.Flows),
			Properties: []openflow.TableProperty{
				{Kind: openflow.TableInstructions, Instructions: instructions}, {Kind: openflow.TableNextTables},
				{Kind: openflow.TableWriteActions, Actions: actions}, {Kind: openflow.TableApplyActions, Actions: actions},
				{Kind: openflow.TableMatch, Fields: match}, {Kind: openflow.TableWildcards, Fields: wild},
				{Kind: openflow.TableWriteSetField, Fields: set}, {Kind: openflow.TableApplySetField, Fields: set},
			},
		}
		for n := i + 1; n < len(s.tables); n++ {
			f.Properties[1].Tables = append(f.Properties[1].Tables, openflow.TableID(n))
		}
		if len(s.tables) > i+1 {
			f.Properties[0].Instructions = append([]openflow.InstructionID{{Type: openflow.InstructionGotoTable}}, instructions...)
		}
		all = append(all, f)
	}
	return all
}
