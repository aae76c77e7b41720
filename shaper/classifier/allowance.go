package classifier

import (
	"fmt"

	"github.com/cilium/ebpf"

	"headgate/group"
	"headgate/unit"
)

// Allowances is the map of what control traffic may take ahead of everything else
// (bpf/budget.h), by class.
const (
	Allowances = "allowances"
	budgets    = "budgets"
)

// Kinds of control traffic (bpf/control.h).
const (
	acks  = 1
	links = 2 // all other
	kinds = 3
)

// controlPart of a rate is what control traffic may take of it ahead of everything else:
// acknowledgements so many parts, and all other one. Those of a download take 2.2 % of
// it, at two frames each. Under a ceiling of its own a group has cappedAckParts, and with
// what its class's ceiling is less than the group's (CeilingCut) passes it by 2 % at the
// most. Where the ceiling is the limit, which nothing passes in any case,
// it has ackParts (docs/decisions/0024-control-traffic.md).
const (
	controlPart    = 200
	cappedAckParts = 5
	ackParts       = 6
)

// ControlPart of the limit is what all groups together may take.
const ControlPart = controlPart / (1 + ackParts)

// CeilingCut: such a part of a ceiling is kept for control traffic, which passes it.
const CeilingCut = 133

// ControlTime is how long a budget that was used up takes to fill, in seconds
// (BUDGET_NS).
const ControlTime = 2

// Allowance is struct allowance: times of one byte in 1/1024 ns.
type Allowance struct {
	KeptByteTime [kinds]uint64 // at the rate that is kept for the class
	MostByteTime [kinds]uint64 // at the most
	Parent       uint32        // minor of the class above, or 0
	_            uint32
}

// AllowancesOf are those of a tree's groups and of its limit, and of clients, by minor
// number; root is the limit's.
func AllowancesOf(t group.Tree, minor func(node int) uint16, root uint16, places map[string]Places) (minors []uint32, values []Allowance) {
	minors, values = []uint32{uint32(root)}, []Allowance{{MostByteTime: byteTimes(t.Limit, ackParts)}}
	for i, kept := range keptRates(t) {
		n := t.Nodes[i]
		parts := uint64(cappedAckParts)
		if n.Ceiling == t.Limit {
			parts = ackParts
		}
		a := Allowance{MostByteTime: byteTimes(n.Ceiling, parts), Parent: uint32(root)}
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

// keptRates divides the limit among leaves, so that what is kept for all leaves of
// a group is within its ceiling: half by guarantees, and half in equal parts for
// those that have none.
func keptRates(t group.Tree) []unit.Rate {
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
			equal = min(equal, t.Nodes[j].Ceiling/unit.Rate(leaves[j]))
		}
		kept[i] = (n.Guarantee + equal) / 2
	}
	return kept
}

// byteTimes are what a byte of each kind takes, of which acknowledgements have so many
// parts of a rate.
func byteTimes(of unit.Rate, ackParts uint64) (times [kinds]uint64) {
	times[links] = controlPart * (1e9 << 10) / max(1, of.BytesPerSecond())
	times[acks] = times[links] / ackParts
	return times
}

// PutAllowances writes allowances into a program's map; those of builds before
// budgets have none.
func PutAllowances(m *ebpf.Map, minors []uint32, values []Allowance) error {
	if m == nil {
		return nil
	}
	if err := PutAll(m, minors, values); err != nil {
		return fmt.Errorf("cannot tell the classifier what control traffic may take: %w", err)
	}
	return nil
}
