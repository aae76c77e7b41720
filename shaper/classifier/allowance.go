package classifier

import (
	"fmt"

	"github.com/cilium/ebpf"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/unit"
)

// Names of the maps for control traffic with precedence (bpf/budget.h), by class.
const (
	Allowances = "allowances"
	budgets    = "budgets"
)

// Kinds of control traffic (bpf/control.h).
const (
	acks  = 1
	links = 2 // all other control traffic
	kinds = 3
)

// controlPartDivisor is the divisor of a rate for one part of control traffic with precedence:
// acknowledgements get several parts, and all other control traffic gets one. The acknowledgements of a download
// take 2.2 % of its rate, at one per two frames. A group with a ceiling of its own gets
// cappedAckParts; together with CeilingReserveDivisor, by which its class's ceiling is below the group's,
// it exceeds the ceiling by 2 % at most. A group whose ceiling is the limit, which is never
// exceeded, gets ackParts (docs/decisions/0024-control-traffic.md).
const (
	controlPartDivisor = 200
	cappedAckParts     = 5
	ackParts           = 6
)

// ControlDivisor is the divisor of the limit for the control traffic of all groups together.
const ControlDivisor = controlPartDivisor / (1 + ackParts)

// CeilingReserveDivisor is the divisor of a ceiling for the part that is reserved for control traffic,
// which is not subject to the ceiling.
const CeilingReserveDivisor = 133

// ControlTime is the number of seconds in which an empty budget refills (BUDGET_NS).
const ControlTime = 2

// Allowance is struct allowance: times per byte in 1/1024 ns.
type Allowance struct {
	KeptByteTime [kinds]uint64 // at the rate reserved for the class
	MostByteTime [kinds]uint64 // at the maximum rate
	Parent       uint32        // minor number of the parent class, or 0
	_            uint32
}

// AllowancesOf returns the allowances of a tree's groups, of its limit and of clients, by minor
// number. root is the minor number of the limit.
func AllowancesOf(t group.Tree, minor func(node int) uint16, root uint16, places map[string]ClientRange) (minors []uint32, values []Allowance) {
	minors, values = []uint32{uint32(root)}, []Allowance{{MostByteTime: byteTimes(t.Limit, ackParts)}}
	for i, kept := range reservedRates(t) {
		n := t.Nodes[i]
		parts := uint64(cappedAckParts)
		if n.SteadyCeiling() == t.Limit {
			parts = ackParts
		}
		a := Allowance{MostByteTime: byteTimes(n.SteadyCeiling(), parts), Parent: uint32(root)}
		if n.Parent >= 0 {
			a.Parent = uint32(minor(n.Parent))
		}
		if kept > 0 {
			a.KeptByteTime = byteTimes(kept, parts)
		}
		minors, values = append(minors, uint32(minor(i))), append(values, a)
		if p := places[n.Path]; p.Count > 0 {
			one := Allowance{MostByteTime: byteTimes(n.Clients.Ceiling, 1), Parent: uint32(minor(i))}
			if kept /= unit.Rate(p.Count); kept > 0 {
				one.KeptByteTime = byteTimes(kept, 1)
			}
			for j := range p.Count {
				minors, values = append(minors, uint32(p.First+j)), append(values, one)
			}
		}
	}
	return minors, values
}

// reservedRates divides the limit among leaf groups, so that the total of the leaves of a group is
// within the group's ceiling: half by guarantees, and half in equal parts for groups without
// guarantees.
func reservedRates(t group.Tree) []unit.Rate {
	leaves := make([]int, len(t.Nodes))
	all := 0
	for i, n := range t.Nodes {
		if !n.Leaf {
			continue
		}
		all++
		for j := i; j >= 0; j = t.Nodes[j].Parent {
			leaves[j]++
		}
	}
	kept := make([]unit.Rate, len(t.Nodes))
	for i, n := range t.Nodes {
		if !n.Leaf {
			continue
		}
		equal := t.Limit / unit.Rate(all)
		for j := i; j >= 0; j = t.Nodes[j].Parent {
			equal = min(equal, t.Nodes[j].SteadyCeiling()/unit.Rate(leaves[j]))
		}
		kept[i] = (n.Guarantee + equal) / 2
	}
	return kept
}

// byteTimes returns the time per byte of each kind of control traffic at a rate, of which
// acknowledgements get ackParts parts.
func byteTimes(of unit.Rate, ackParts uint64) (times [kinds]uint64) {
	times[links] = controlPartDivisor * (1e9 << 10) / max(1, of.BytesPerSecond())
	times[acks] = times[links] / ackParts
	return times
}

// PutAllowances writes allowances into a program's map; builds before budgets have no such map.
func PutAllowances(m *ebpf.Map, minors []uint32, values []Allowance) error {
	if m == nil {
		return nil
	}
	if err := PutAll(m, minors, values); err != nil {
		return fmt.Errorf("cannot write the budgets of control traffic: %w", err)
	}
	return nil
}
