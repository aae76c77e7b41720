package pipeline

import (
	"headgate.dev/headgate/fabric/openflow"
)

// Limits of groups: how many are in each other, and how many process a packet and its copies. Loops are refused, but groups that use others several times can make any number of copies: Open
// vSwitch ends them as well (MAX_RESUBMITS of ofproto/ofproto-dpif-xlate.c).
const (
	maxChain  = 64
	MaxGroups = 4096
)

// group processes the packet by a group. What a bucket changes in it no other bucket sees, nor what follows the group.
func (x *Execution) group(a openflow.Group) {
	g := x.Switch.Group(a.Group)
	if x.groups == nil {
		x.groups = new(int)
	}
	switch {
	case g == nil:
		x.Switch.Skip(x, a, NoGroup)
		return
	case x.Depth >= maxChain || *x.groups >= MaxGroups:
		x.Switch.Skip(x, a, TooManyGroups)
		return
	}
	*x.groups++
	first, selected := true, -1
	if g.Kind == openflow.GroupTypeSelect && !x.EveryBucket {
		selected = x.selects(g)
	}
	for i := range g.Buckets {
		if !x.goesOn() {
			return
		}
		if !x.chooses(g, i, selected, first) {
			continue
		}
		x.Switch.Bucket(x, g, i, first)
		first = false
		part := *x
		part.Packet, part.miss, part.Depth = x.Packet.Clone(), false, x.Depth+1
		part.run(&g.Buckets[i].set)
	}
	if first {
		x.Switch.Skip(x, a, NoBucket)
	}
}

// chooses reports whether a bucket processes the packet. selected is the one that selects returned, and first is set if none
// before this one does.
func (x *Execution) chooses(g *Group, i, selected int, first bool) bool {
	switch {
	case g.Kind == openflow.GroupTypeFF:
		return first && x.live(&g.Buckets[i])
	case g.Kind == openflow.GroupTypeSelect && x.EveryBucket:
		return g.Buckets[i].Weight > 0 && x.live(&g.Buckets[i])
	case g.Kind == openflow.GroupTypeSelect:
		return i == selected
	}
	return true
}

// live reports whether a bucket can be used (section 6.5.1): it watches nothing, or what it watches is live.
func (x *Execution) live(b *Bucket) bool {
	left := MaxGroups // groups that watch each other in a circle end
	return x.watched(b, &left)
}

func (x *Execution) watched(b *Bucket, left *int) bool {
	if !Watches(b.Bucket) || x.Switch.Live(b.WatchPort) {
		return true
	}
	g := x.Switch.Group(b.WatchGroup)
	if g == nil || *left == 0 {
		return false
	}
	*left--
	for i := range g.Buckets {
		if !x.goesOn() {
			return false
		}
		if x.watched(&g.Buckets[i], left) {
			return true
		}
	}
	return false
}

// selects chooses a bucket by a hash of the packet's addresses and ports, so that the packets of a connection keep their order,
// among the live buckets in proportion to their weights. It returns -1 if there is none.
func (x *Execution) selects(g *Group) int {
	total := uint64(0)
	for i := range g.Buckets {
		if x.live(&g.Buckets[i]) {
			total += uint64(g.Buckets[i].Weight)
		}
	}
	if total == 0 {
		return -1
	}
	at := x.Packet.hash() % total
	for i := range g.Buckets {
		if !x.live(&g.Buckets[i]) {
			continue
		}
		if at < uint64(g.Buckets[i].Weight) {
			return i
		}
		at -= uint64(g.Buckets[i].Weight)
	}
	return -1
}

// hash is of what identifies a connection (FNV-1a).
func (p *Packet) hash() uint64 {
	h := uint64(14695981039346656037)
	for _, id := range []openflow.FieldID{
		openflow.FieldEthSrc, openflow.FieldEthDst, openflow.FieldEthType, openflow.FieldIPProto,
		openflow.FieldIPv4Src, openflow.FieldIPv4Dst, openflow.FieldIPv6Src, openflow.FieldIPv6Dst,
		openflow.FieldTCPSrc, openflow.FieldTCPDst, openflow.FieldUDPSrc, openflow.FieldUDPDst,
	} {
		for _, b := range p.Key.Bytes(id) {
			h = (h ^ uint64(b)) * 1099511628211
		}
	}
	return h ^ h>>32
}
