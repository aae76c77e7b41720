package group

import "slices"

// Equal reports whether two selectors have the same fields and values.
func (s Selector) Equal(o Selector) bool {
	return !slices.ContainsFunc(Fields, func(f *Field) bool { return !f.equal(&s, &o) }) && slices.EqualFunc(s.Not, o.Not, Selector.Equal)
}

// SameRules reports whether both trees assign every packet to the same node, and to the same
// client of that node.
func (t Tree) SameRules(o Tree) bool {
	return t.Default == o.Default && t.SameClients(o) && slices.EqualFunc(t.Rules, o.Rules, func(a, b Rule) bool {
		return a.Node == b.Node && a.Selector.Equal(b.Selector)
	})
}

// Equal reports whether both trees describe the same configuration.
func (t Tree) Equal(o Tree) bool {
	return t.Limit == o.Limit && t.Spare == o.Spare && slices.Equal(t.Nodes, o.Nodes) && t.SameRules(o)
}

// EqualTrees is Equal for directions that may be nil.
func EqualTrees(a, b *Tree) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}
