package group

import (
	"net/netip"
	"slices"
)

// Matches tells whether the packet has what every given field asks for. It is
// the plain meaning of a rule: what classifies in the kernel is held to it.
func (s Selector) Matches(p Packet) bool {
	return anyOf(s.Proto, func(n uint8) bool { return p.Link == "" && n == p.Proto }) &&
		anyOf(s.Src, func(f netip.Prefix) bool { return p.Link == "" && f.Contains(p.Src) }) &&
		anyOf(s.Dst, func(f netip.Prefix) bool { return p.Link == "" && f.Contains(p.Dst) }) &&
		anyOf(s.SPort, func(r PortRange) bool { return p.HasPorts() && r.First <= p.SPort && p.SPort <= r.Last }) &&
		anyOf(s.DPort, func(r PortRange) bool { return p.HasPorts() && r.First <= p.DPort && p.DPort <= r.Last }) &&
		anyOf(s.DSCP, func(d uint8) bool { return p.Link == "" && d == p.DSCP }) &&
		anyOf(s.VLAN, func(v uint16) bool { return v == p.VLAN }) &&
		anyOf(s.Mark, func(m uint32) bool { return m == p.Mark }) &&
		(s.Cgroup == "" || p.Cgroup != "" && Below(p.Cgroup, s.Cgroup))
}

// anyOf tells whether one value fits; no values stand for everything.
func anyOf[T any](values []T, fits func(T) bool) bool {
	return len(values) == 0 || slices.ContainsFunc(values, fits)
}

// Classify finds the rule and the leaf of a packet: the first rule that matches,
// or -1 and the default. It asks one rule after the other, so that it is plainly
// right; the eBPF classifier is tested against it, and explain uses it. It does
// not know of assignments, which come before the rules, nor of control traffic
// (Packet.Control), which has a class of its own.
func (t Tree) Classify(p Packet) (rule, leaf int) {
	for i, r := range t.Rules {
		if r.Selector.Matches(p) {
			return i, r.Node
		}
	}
	return -1, t.Default
}
