package group

import "slices"

// Matches reports whether the packet matches every field of the selector. It is the reference
// implementation of a rule: the eBPF classifier is tested against it.
func (s Selector) Matches(p Packet) bool {
	return !slices.ContainsFunc(Fields, func(f *Field) bool { return f.isSet(&s) && !f.matches(&s, p) }) &&
		!slices.ContainsFunc(s.Not, func(n Selector) bool { return n.matchesAnyField(p) })
}

// matchesAnyField reports whether the packet matches at least one field of the selector.
func (s Selector) matchesAnyField(p Packet) bool {
	return slices.ContainsFunc(Fields, func(f *Field) bool { return f.isSet(&s) && f.matches(&s, p) })
}

func (m MAC) matches(address [6]byte) bool {
	for i := range address {
		if address[i]&m.Mask[i] != m.Address[i] {
			return false
		}
	}
	return true
}

// Classify returns the rule and the leaf group of a packet: the first rule that matches, or -1
// and the default group. It evaluates the rules one by one and serves as the reference: the
// eBPF classifier is tested against it, and explain uses it. Classify does not know
// assignments, which precede the rules, or control traffic (Packet.Control), which has a class
// of its own.
func (t Tree) Classify(p Packet) (rule, leaf int) {
	for i, r := range t.Rules {
		if r.Selector.Matches(p) {
			return i, r.Node
		}
	}
	return -1, t.Default
}
