package oftest

import (
	"slices"
	"time"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
)

// removedMeterDelete is the reason of flows whose meter was deleted, which OpenFlow 1.4 defines (OFPRR_METER_DELETE).
const removedMeterDelete openflow.FlowRemovedReason = 4

const allFlowFlags = openflow.FlowSendRemoved | openflow.FlowCheckOverlap | openflow.FlowResetCounts | openflow.FlowNoPktCounts | openflow.FlowNoByteCounts

// flowMod executes a flow-mod (section 6.4).
func (s *Switch) flowMod(m *openflow.FlowMod) *openflow.Error {
	invalid := func(code uint16) *openflow.Error { return refuse(openflow.ErrFlowModFailed, code) }
	deletes := m.Command == openflow.FlowDelete || m.Command == openflow.FlowDeleteStrict
	switch {
	case m.Command > openflow.FlowDeleteStrict:
		return invalid(openflow.FlowModBadCommand)
	case m.Flags&^allFlowFlags != 0:
		return invalid(openflow.FlowModBadFlags)
	case m.Table == openflow.AllTables && !deletes:
		return invalid(openflow.FlowModBadTableID)
	case m.Buffer != openflow.NoBuffer && !deletes: // the switch has none
		return refuse(openflow.ErrBadRequest, openflow.RequestBufferUnknown)
	}
	match, err := newMatcher(m.Match)
	if err != nil {
		return err
	}
	if m.Table == openflow.TableMax && !deletes && len(s.tables) == int(openflow.TableMax) { // internal in Open vSwitch
		return refuse(openflow.ErrBadRequest, openflow.RequestEPerm)
	}
	if m.Table != openflow.AllTables && int(m.Table) >= len(s.tables) && !deletes {
		return refuse(openflow.ErrBadRequest, openflow.RequestBadTableID)
	}
	if deletes {
		s.removeFlows(s.selected(m, match), openflow.RemovedDelete)
		return nil
	}
	if err := s.check(m.Instructions, m.Table, match); err != nil {
		return err
	}
	if m.Command == openflow.FlowAdd {
		return s.addFlow(m, match)
	}
	for _, f := range s.selected(m, match) {
		f.does(s.shared.behaviour(ordered(m.Instructions)))
		if m.Flags&openflow.FlowResetCounts != 0 {
			f.counter = counter{}
			s.tables[f.Table].version++
		}
		s.changes++
	}
	return nil
}

// addFlow adds a flow, or replaces the one with its match and priority, whose counters it keeps unless
// OFPFF_RESET_COUNTS is set.
func (s *Switch) addFlow(m *openflow.FlowMod, match *pipeline.Matcher) *openflow.Error {
	t := &s.tables[m.Table]
	old := t.find(match, m.Priority)
	if old == nil && m.Flags&openflow.FlowCheckOverlap != 0 && slices.ContainsFunc(t.all, func(f *flow) bool {
		return f.Priority == m.Priority && f.Overlaps(match)
	}) {
		return refuse(openflow.ErrFlowModFailed, openflow.FlowModOverlap)
	}
	if old == nil && len(t.all) >= s.limits.Flows {
		return refuse(openflow.ErrFlowModFailed, openflow.FlowModTableFull)
	}
	s.made++
	now := time.Now()
	is := s.shared.pattern(match, kept(match, m.Match))
	f := &flow{
		Flow: pipeline.Flow{Matcher: &is.Matcher, Table: m.Table, Priority: m.Priority, Cookie: m.Cookie}, flags: m.Flags, idle: m.IdleTimeout, hard: m.HardTimeout,
		match: is, order: s.made, created: now, used: now,
	}
	f.does(s.shared.behaviour(ordered(m.Instructions)))
	if old != nil {
		if m.Flags&openflow.FlowResetCounts == 0 {
			f.counter, f.used = old.counter, old.used
		}
		s.cancel(old.expiry)
		t.remove(old)
	}
	t.add(f)
	s.changes++
	s.expire(f)
	return nil
}

// does gives a flow its instructions.
func (f *flow) does(b *behaviour) { f.instructions, f.Program = b, &b.Program }

// expire arranges the end of a flow by its timeouts (section 5.5). An idle timeout that packets have put off is looked at
// again when it would have ended.
func (s *Switch) expire(f *flow) {
	if f.idle == 0 && f.hard == 0 {
		return
	}
	idle, hard := f.used.Add(time.Duration(f.idle)*time.Second), f.created.Add(time.Duration(f.hard)*time.Second)
	first, reason := idle, openflow.RemovedIdleTimeout
	if f.idle == 0 || f.hard > 0 && !hard.After(idle) {
		first, reason = hard, openflow.RemovedHardTimeout
	}
	f.expiry = s.at(first, func() {
		if reason == openflow.RemovedIdleTimeout && f.used.Add(time.Duration(f.idle)*time.Second).After(time.Now()) {
			s.expire(f)
			return
		}
		s.removeFlows([]*flow{f}, reason)
	})
}

// selected returns the flows that a change or a deletion applies to.
func (s *Switch) selected(m *openflow.FlowMod, match *pipeline.Matcher) []*flow {
	filter := openflow.FlowFilter{Table: m.Table, OutPort: openflow.PortAny, OutGroup: openflow.GroupAny, Cookie: m.Cookie, CookieMask: m.CookieMask}
	if m.Command == openflow.FlowDelete || m.Command == openflow.FlowDeleteStrict {
		filter.OutPort, filter.OutGroup = m.OutPort, m.OutGroup
	}
	if m.Command == openflow.FlowModify || m.Command == openflow.FlowDelete {
		return s.selectFlows(filter, match)
	}
	var all []*flow
	for i := range s.tables {
		if m.Table == openflow.AllTables || m.Table == openflow.TableID(i) {
			if f := s.tables[i].find(match, m.Priority); f != nil && hasCookie(filter, f.Cookie) && f.uses(filter) {
				all = append(all, f)
			}
		}
	}
	return all
}

// selectFlows returns flows by table, and in a table by their creation.
func (s *Switch) selectFlows(filter openflow.FlowFilter, match *pipeline.Matcher) []*flow {
	var all []*flow
	for i := range s.tables {
		if filter.Table != openflow.AllTables && filter.Table != openflow.TableID(i) {
			continue
		}
		var some []*flow
		s.tables[i].each(filter, match, func(f *flow) { some = append(some, f) })
		all = append(all, sorted(some)...)
	}
	return all
}

// each calls do with the flows that pass a filter, in any order.
func (t *table) each(filter openflow.FlowFilter, match *pipeline.Matcher, do func(*flow)) {
	all := byCookie(filter, match)
	for i, cookie := range t.cookies {
		if !hasCookie(filter, cookie) {
			continue
		}
		if f := t.all[i]; all || f.uses(filter) && match.Includes(f.Matcher) {
			do(f)
		}
	}
}

// hasCookie reports whether a cookie passes a filter.
func hasCookie(filter openflow.FlowFilter, cookie uint64) bool {
	return (cookie^filter.Cookie)&filter.CookieMask == 0
}

// byCookie reports that it depends on the cookie alone whether a flow passes a filter.
func byCookie(filter openflow.FlowFilter, match *pipeline.Matcher) bool {
	return match.Mask == (pipeline.Key{}) && filter.OutPort == openflow.PortAny && filter.OutGroup == openflow.GroupAny
}

// uses reports whether a flow has the output and group of a filter.
func (f *flow) uses(filter openflow.FlowFilter) bool {
	return (filter.OutPort == openflow.PortAny || f.Program.Uses(func(a openflow.Action) bool {
		o, ok := a.(openflow.Output)
		return ok && o.Port == filter.OutPort
	})) &&
		(filter.OutGroup == openflow.GroupAny || f.Program.Uses(func(a openflow.Action) bool {
			g, ok := a.(openflow.Group)
			return ok && g.Group == filter.OutGroup
		}))
}

// removeFlows removes flows, and reports those of which it is required.
func (s *Switch) removeFlows(all []*flow, why openflow.FlowRemovedReason) {
	for _, f := range all {
		s.cancel(f.expiry)
		s.tables[f.Table].remove(f)
		s.changes++
		if f.flags&openflow.FlowSendRemoved != 0 {
			s.notify(&openflow.FlowRemoved{
				Cookie: f.Cookie, Priority: f.Priority, Reason: why, Table: f.Table, Duration: since(f.created),
				IdleTimeout: f.idle, HardTimeout: f.hard, Packets: f.packets, Bytes: f.bytes, Match: f.match.fields,
			})
		}
	}
}

func (f *flow) stats() openflow.FlowStats {
	return openflow.FlowStats{
		Table: f.Table, Duration: since(f.created), Priority: f.Priority, IdleTimeout: f.idle, HardTimeout: f.hard, Flags: f.flags,
		Cookie: f.Cookie, Packets: f.packets, Bytes: f.bytes, Match: f.match.fields, Instructions: f.instructions.instructions,
	}
}
