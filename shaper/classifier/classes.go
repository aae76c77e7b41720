package classifier

import (
	"fmt"

	"github.com/cilium/ebpf"

	"headgate.dev/headgate/group"
)

// ClassIDs allocates a minor number between first and last to every group: its present number,
// or the lowest number that no group has now or had before, so that a new group does not
// inherit counters. If a leaf group becomes a parent group, it gets another class, because HTB
// can convert a leaf class only by losing its queue; parent groups therefore have a slash after
// their key.
func ClassIDs(t group.Tree, have map[string]uint16, first, last uint16) (map[string]uint16, error) {
	ids := make(map[string]uint16, len(t.Nodes))
	taken := make(map[uint16]bool, len(t.Nodes))
	old := make(map[uint16]bool, len(have))
	for _, id := range have {
		old[id] = true
	}
	for _, n := range t.Nodes {
		if id, ok := have[ClassKey(n)]; ok {
			ids[ClassKey(n)], taken[id] = id, true
		}
	}
	next := first
	for _, n := range t.Nodes {
		if _, ok := ids[ClassKey(n)]; ok {
			continue
		}
		for taken[next] || old[next] {
			next++
		}
		if next > last {
			if len(old) == 0 {
				return nil, fmt.Errorf("too many groups for the class IDs: the maximum is %d", last-first+1)
			}
			// Reuse the IDs of removed groups.
			next = first
			clear(old)
			for taken[next] {
				next++
			}
			if next > last {
				return nil, fmt.Errorf("too many groups for the class IDs: the maximum is %d", last-first+1)
			}
		}
		ids[ClassKey(n)], taken[next] = next, true
	}
	return ids, nil
}

// ClassKey returns the key of a group in Record.Classes.
func ClassKey(n group.Node) string {
	if n.Leaf && n.Clients.IsZero() {
		return n.Path
	}
	return n.Path + "/" // clients are children like groups
}

// AssignedClass encodes a class ID for the table of assigned connections: out in the lower
// half, in in the upper half.
func AssignedClass(id uint16, in bool) uint32 {
	if in {
		return uint32(id) << 16
	}
	return uint32(id)
}

// ClassOf returns the class ID of one direction from that table, or 0.
func ClassOf(classes uint32, in bool) uint16 {
	if in {
		return uint16(classes >> 16)
	}
	return uint16(classes)
}

// ReadCounters returns the counters of each class, summed over the CPUs.
func ReadCounters(m *ebpf.Map) ([]Counter, error) {
	perCPU, err := ReadAll[Counter](m)
	if err != nil || len(perCPU) == 0 {
		return nil, err
	}
	cpus := len(perCPU) / int(m.MaxEntries())
	out := make([]Counter, m.MaxEntries())
	for i, c := range perCPU {
		sum := &out[i/cpus]
		sum.Packets, sum.Bytes = sum.Packets+c.Packets, sum.Bytes+c.Bytes
		sum.Marks, sum.Drops = sum.Marks+c.Marks, sum.Drops+c.Drops
	}
	return out, nil
}

// ReadHits returns the counters of each rule, summed over the CPUs.
func ReadHits(m *ebpf.Map) ([]uint64, error) {
	perCPU, err := ReadAll[uint64](m)
	if err != nil || len(perCPU) == 0 {
		return nil, err
	}
	cpus := len(perCPU) / int(m.MaxEntries())
	out := make([]uint64, m.MaxEntries())
	for i, h := range perCPU {
		out[i/cpus] += h
	}
	return out, nil
}
