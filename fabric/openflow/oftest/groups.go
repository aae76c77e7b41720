package oftest

import (
	"cmp"
	"slices"
	"time"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
)

// counter is packets and bytes of a bucket or band, or of a whole object.
type counter struct {
	packets, bytes           uint64
	partOfPacket, partOfByte float64 // that fluid streams have added beyond them
}

// count counts packets of a size in total.
func (c *counter) count(packets, bytes float64) {
	whole, part := split(c.partOfPacket + packets)
	c.packets, c.partOfPacket = c.packets+whole, part
	whole, part = split(c.partOfByte + bytes)
	c.bytes, c.partOfByte = c.bytes+whole, part
}

func (c *counter) wire() openflow.Counter {
	return openflow.Counter{Packets: c.packets, Bytes: c.bytes}
}

// split is the whole part and the rest of a number that is not negative.
func split(v float64) (uint64, float64) {
	whole := uint64(v + 1e-6) // sums of fractions are a little less than whole
	return whole, v - float64(whole)
}

// group is an entry of the group table (section 5.6), with its counters.
type group struct {
	pipeline.Group
	created time.Time
	counter
	buckets []counter
}

// groupMod executes a group-mod (section 6.5).
func (s *Switch) groupMod(m *openflow.GroupMod) *openflow.Error {
	invalid := func(code uint16) *openflow.Error { return refuse(openflow.ErrGroupModFailed, code) }
	switch m.Command {
	case openflow.GroupAdd, openflow.GroupModify:
	case openflow.GroupDelete:
		s.deleteGroups(m.Group)
		return nil
	default:
		return invalid(openflow.GroupModBadCommand)
	}
	old := s.groups[m.Group]
	switch limit := s.limits.Groups; {
	case m.Group > openflow.GroupMax || m.Kind <= openflow.GroupTypeFF && !s.validBuckets(m):
		return invalid(openflow.GroupModInvalidGroup)
	case m.Kind > openflow.GroupTypeFF || s.limits.GroupTypes>>m.Kind&1 == 0:
		return invalid(openflow.GroupModBadType)
	case m.Kind != openflow.GroupTypeFF && m.Kind != openflow.GroupTypeSelect && slices.ContainsFunc(m.Buckets, pipeline.Watches):
		return invalid(openflow.GroupModWatchUnsupported)
	case m.Command == openflow.GroupAdd && old != nil:
		return invalid(openflow.GroupModGroupExists)
	case m.Command == openflow.GroupModify && old == nil:
		return invalid(openflow.GroupModUnknownGroup)
	case old == nil && len(s.groups) >= limit:
		return invalid(openflow.GroupModOutOfGroups)
	}
	g := &group{Group: pipeline.NewGroup(m.Group, m.Kind, m.Buckets), created: time.Now(), buckets: make([]counter, len(m.Buckets))}
	if old != nil {
		g.created = old.created // the counters begin again
	}
	for _, b := range m.Buckets {
		if err := s.checkActions(b.Actions, nil); err != nil {
			return err
		}
	}
	if s.loops(g) {
		return invalid(openflow.GroupModLoop)
	}
	s.groups[g.ID] = g
	s.changes++
	return nil
}

// validBuckets reports whether the buckets are possible in a group of their type, as Open vSwitch has it.
func (s *Switch) validBuckets(m *openflow.GroupMod) bool {
	if m.Kind == openflow.GroupTypeIndirect && len(m.Buckets) != 1 {
		return false
	}
	return !slices.ContainsFunc(m.Buckets, func(b openflow.Bucket) bool {
		return m.Kind != openflow.GroupTypeSelect && b.Weight > 0 || m.Kind == openflow.GroupTypeFF && !pipeline.Watches(b)
	})
}

// chained are the groups that the buckets of a group use.
func (g *group) chained() (ids []openflow.GroupID) {
	for _, b := range g.Buckets {
		for _, a := range b.Actions {
			if a, ok := a.(openflow.Group); ok {
				ids = append(ids, a.Group)
			}
		}
	}
	return ids
}

// loops reports whether a group that takes its place among the others would be in a loop (section 6.5, OFPGMFC_LOOP).
func (s *Switch) loops(g *group) bool {
	seen := map[openflow.GroupID]bool{}
	var reaches func(ids []openflow.GroupID) bool
	reaches = func(ids []openflow.GroupID) bool {
		return slices.ContainsFunc(ids, func(id openflow.GroupID) bool {
			if id == g.ID {
				return true
			}
			next := s.groups[id]
			if next == nil || seen[id] {
				return false
			}
			seen[id] = true
			return reaches(next.chained())
		})
	}
	return reaches(g.chained())
}

// deleteGroups deletes a group or all, and the flows that use them.
func (s *Switch) deleteGroups(id openflow.GroupID) {
	all := s.sortedGroups
	if id != openflow.GroupAll {
		all = func() []*group {
			if g := s.groups[id]; g != nil {
				return []*group{g}
			}
			return nil
		}
	}
	for _, g := range all() {
		delete(s.groups, g.ID)
		s.changes++
		s.removeFlows(s.selectFlows(openflow.FlowFilter{Table: openflow.AllTables, OutPort: openflow.PortAny, OutGroup: g.ID}, &pipeline.Matcher{}), openflow.RemovedGroupDelete)
	}
}

func (s *Switch) sortedGroups() []*group {
	all := make([]*group, 0, len(s.groups))
	for _, g := range s.groups {
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b *group) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// groupFeatures is what the limits allow.
func (s *Switch) groupFeatures() *openflow.GroupFeatures {
	f := &openflow.GroupFeatures{Types: s.limits.GroupTypes}
	if f.Types == 0 || s.limits.Groups == 0 {
		return &openflow.GroupFeatures{}
	}
	// select weight, select liveness and chaining (enum ofp_group_capabilities)
	f.Capabilities = 1<<0 | 1<<1 | 1<<2
	for k := range f.MaxGroups {
		if f.Types>>k&1 == 1 {
			f.MaxGroups[k] = uint32(s.limits.Groups)
			f.Actions[k] = supportedActions
		}
	}
	return f
}
