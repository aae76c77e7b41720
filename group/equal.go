package group

import "slices"

// Equal tells whether two selectors match the same packets by the same fields.
func (s Selector) Equal(o Selector) bool {
	return slices.Equal(s.Proto, o.Proto) && slices.Equal(s.Src, o.Src) && slices.Equal(s.Dst, o.Dst) &&
		slices.Equal(s.SPort, o.SPort) && slices.Equal(s.DPort, o.DPort) && slices.Equal(s.DSCP, o.DSCP) &&
		slices.Equal(s.VLAN, o.VLAN) && slices.Equal(s.PCP, o.PCP) && slices.Equal(s.Mark, o.Mark) && slices.Equal(s.SMAC, o.SMAC) &&
		s.Cgroup == o.Cgroup && slices.EqualFunc(s.Not, o.Not, Selector.Equal)
}

// SameRules tells whether both trees place every packet in the same node, and with the same
// client of it.
func (t Tree) SameRules(o Tree) bool {
	return t.Default == o.Default && t.SameClients(o) && slices.EqualFunc(t.Rules, o.Rules, func(a, b Rule) bool {
		return a.Node == b.Node && a.Selector.Equal(b.Selector)
	})
}

// Equal tells whether both trees ask for the same.
func (t Tree) Equal(o Tree) bool {
	return t.Limit == o.Limit && t.Spare == o.Spare && slices.Equal(t.Nodes, o.Nodes) && t.SameRules(o)
}

// EqualTrees is Equal for directions that may be absent.
func EqualTrees(a, b *Tree) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}
