package oftest

import (
	"cmp"
	"slices"
	"time"

	"headgate.dev/headgate/fabric/openflow"
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

// group is an entry of the group table (section 5.6).
type group struct {
	id      openflow.GroupID
	kind    openflow.GroupType
	buckets []*bucket
	created time.Time
	counter
}

// bucket is a set of actions of a group.
type bucket struct {
	openflow.Bucket
	set actionSet
	counter
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
	case m.Kind != openflow.GroupTypeFF && m.Kind != openflow.GroupTypeSelect && slices.ContainsFunc(m.Buckets, watches):
		return invalid(openflow.GroupModWatchUnsupported)
	case m.Command == openflow.GroupAdd && old != nil:
		return invalid(openflow.GroupModGroupExists)
	case m.Command == openflow.GroupModify && old == nil:
		return invalid(openflow.GroupModUnknownGroup)
	case old == nil && len(s.groups) >= limit:
		return invalid(openflow.GroupModOutOfGroups)
	}
	g := &group{id: m.Group, kind: m.Kind, created: time.Now()}
	if old != nil {
		g.created = old.created // the counters begin again
	}
	for _, b := range m.Buckets {
		if err := s.checkActions(b.Actions, nil); err != nil {
			return err
		}
		var set actionSet
		set.write(b.Actions)
		g.buckets = append(g.buckets, &bucket{Bucket: b, set: set})
	}
	if s.loops(g) {
		return invalid(openflow.GroupModLoop)
	}
	s.groups[g.id] = g
	s.changes++
	return nil
}

func watches(b openflow.Bucket) bool {
	return b.WatchPort != openflow.PortAny || b.WatchGroup != openflow.GroupAny
}

// validBuckets reports whether the buckets are possible in a group of their type, as Open vSwitch has it.
func (s *Switch) validBuckets(m *openflow.GroupMod) bool {
	if m.Kind == openflow.GroupTypeIndirect && len(m.Buckets) != 1 {
		return false
	}
	return !slices.ContainsFunc(m.Buckets, func(b openflow.Bucket) bool {
		return m.Kind != openflow.GroupTypeSelect && b.Weight > 0 || m.Kind == openflow.GroupTypeFF && !watches(b)
	})
}

// chained are the groups that the buckets of a group use.
func (g *group) chained() (ids []openflow.GroupID) {
	for _, b := range g.buckets {
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
			if id == g.id {
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
	for _, g := range s.sortedGroups() {
		if g.id == id || id == openflow.GroupAll {
			delete(s.groups, g.id)
			s.changes++
			s.removeFlows(s.selectFlows(openflow.FlowFilter{Table: openflow.AllTables, OutPort: openflow.PortAny, OutGroup: g.id}, &matcher{}), openflow.RemovedGroupDelete)
		}
	}
}

func (s *Switch) sortedGroups() []*group {
	all := make([]*group, 0, len(s.groups))
	for _, g := range s.groups {
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b *group) int { return cmp.Compare(a.id, b.id) })
	return all
}

// live reports whether a bucket can be used (section 6.5.1): it watches nothing, or what it watches is live.
func (s *Switch) live(b *bucket, depth int) bool {
	if !watches(b.Bucket) {
		return true
	}
	if p := s.ports[b.WatchPort]; p != nil && p.live() {
		return true
	}
	g := s.groups[b.WatchGroup]
	if g == nil || depth > maxChain {
		return false
	}
	return slices.ContainsFunc(g.buckets, func(b *bucket) bool { return s.live(b, depth+1) })
}

// choose returns the buckets of a group that process a packet.
func (s *Switch) choose(g *group, p *packet) []*bucket {
	switch g.kind {
	case openflow.GroupTypeFF:
		for _, b := range g.buckets {
			if s.live(b, 0) {
				return []*bucket{b}
			}
		}
		return nil
	case openflow.GroupTypeSelect:
		return s.selectBucket(g, p)
	}
	return g.buckets
}

// selectBucket chooses by a hash of the packet's addresses and ports, so that the packets of a connection keep their
// order, among the live buckets in proportion to their weights.
func (s *Switch) selectBucket(g *group, p *packet) []*bucket {
	total := uint64(0)
	for _, b := range g.buckets {
		if s.live(b, 0) {
			total += uint64(b.Weight)
		}
	}
	if total == 0 {
		return nil
	}
	at := p.hash() % total
	for _, b := range g.buckets {
		if !s.live(b, 0) {
			continue
		}
		if at < uint64(b.Weight) {
			return []*bucket{b}
		}
		at -= uint64(b.Weight)
	}
	return nil
}

// hash is of what identifies a connection (FNV-1a).
func (p *packet) hash() uint64 {
	h := uint64(14695981039346656037)
	for _, id := range []openflow.FieldID{
		openflow.FieldEthSrc, openflow.FieldEthDst, openflow.FieldEthType, openflow.FieldIPProto,
		openflow.FieldIPv4Src, openflow.FieldIPv4Dst, openflow.FieldIPv6Src, openflow.FieldIPv6Dst,
		openflow.FieldTCPSrc, openflow.FieldTCPDst, openflow.FieldUDPSrc, openflow.FieldUDPDst,
	} {
		for _, b := range p.key.bytes(id) {
			h = (h ^ uint64(b)) * 1099511628211
		}
	}
	return h ^ h>>32
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
