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
		anyOf(s.SPort, func(r PortRange) bool { return p.HasPorts() && r.Contains(p.SPort) }) &&
		anyOf(s.DPort, func(r PortRange) bool { return p.HasPorts() && r.Contains(p.DPort) }) &&
		anyOf(s.DSCP, func(r Range) bool { return p.Link == "" && r.Contains(uint16(p.DSCP)) }) &&
		anyOf(s.VLAN, func(r Range) bool { return r.Contains(p.VLAN) }) &&
		anyOf(s.PCP, func(r Range) bool { return p.Tagged() && r.Contains(uint16(p.PCP)) }) &&
		anyOf(s.Mark, func(m Mark) bool { return p.Mark&m.Mask == m.Value }) &&
		anyOf(s.SMAC, func(m MAC) bool { return m.matches(p.SMAC) }) &&
		(s.Cgroup == "" || p.Cgroup != "" && Below(p.Cgroup, s.Cgroup)) &&
		!slices.ContainsFunc(s.Not, func(n Selector) bool { return n.hasAny(p) })
}

// hasAny tells whether the packet has a value of any field.
func (s Selector) hasAny(p Packet) bool {
	return slices.ContainsFunc(s.fields(), func(one Selector) bool { return one.Matches(p) })
}

// fields takes the selector apart: each field that it has by itself.
func (s Selector) fields() (out []Selector) {
	for _, one := range []Selector{
		{Proto: s.Proto}, {Src: s.Src}, {Dst: s.Dst}, {SPort: s.SPort}, {DPort: s.DPort}, {DSCP: s.DSCP},
		{VLAN: s.VLAN}, {PCP: s.PCP}, {Mark: s.Mark}, {SMAC: s.SMAC}, {Cgroup: s.Cgroup},
	} {
		if !one.IsZero() {
			out = append(out, one)
		}
	}
	return out
}

func (m MAC) matches(address [6]byte) bool {
	for i := range address {
		if address[i]&m.Mask[i] != m.Address[i] {
			return false
		}
	}
	return true
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
