package classifier

import (
	"fmt"

	"github.com/cilium/ebpf"

	"headgate/group"
)

// ClassIDs gives every group a minor number between first and last: the one it
// has, or the lowest that no group has or had until now; so what a new group
// counts is its own. A group that turns from a leaf into a parent of groups is
// another class, because HTB changes one into the other only by losing its
// queue; hence the slash behind a parent's key.
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
				return nil, fmt.Errorf("there are more groups than class ids: %d at most", last-first+1)
			}
			// What was removed has to be used again at once.
			next = first
			clear(old)
			for taken[next] {
				next++
			}
			if next > last {
				return nil, fmt.Errorf("there are more groups than class ids: %d at most", last-first+1)
			}
		}
		ids[ClassKey(n)], taken[next] = next, true
	}
	return ids, nil
}

// ClassKey is a group's name in Record.Classes.
func ClassKey(n group.Node) string {
	if n.Leaf && n.Clients.IsZero() {
		return n.Path
	}
	return n.Path + "/" // clients are in it as groups are
}

// AssignedClass is a class id as the table of assigned connections has it: out in
// the lower half, in in the upper.
func AssignedClass(id uint16, in bool) uint32 {
	if in {
		return uint32(id) << 16
	}
	return uint32(id)
}

// ClassOf is the class id of one direction in that table; 0 is none.
func ClassOf(classes uint32, in bool) uint16 {
	if in {
		return uint16(classes >> 16)
	}
	return uint16(classes)
}

// ReadCounters sums the counters of each class over the CPUs.
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

// ReadHits sums the counters of each rule over the CPUs.
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
