package htb

import (
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"headgate/group"
	"headgate/internal/nl"
	"headgate/shaper"
	"headgate/shaper/classifier"
)

// The filters of the HTB qdiscs (class.c), by the level of groups that is below. Their
// name changes with their code, so that another build's are replaced.
var classFilterName = "headgate class " + classifier.Build(_ClassFilterBytes)[:8]

const classFilterPref = 1

// classFilters are the programs, loaded once a process. They have no state: one serves
// all qdiscs of its level.
var classFilters struct {
	sync.Mutex
	levels [group.MaxDepth]*ebpf.Program
}

// needClassFilter loads them, before a step that attaches one.
func needClassFilter() error {
	classFilters.Lock()
	defer classFilters.Unlock()
	if classFilters.levels[0] != nil {
		return nil
	}
	var objs classFilterObjects
	if err := loadClassFilterObjects(&objs, nil); err != nil {
		return fmt.Errorf("cannot load the eBPF filter of HTB: %w", err)
	}
	classFilters.levels = [...]*ebpf.Program{objs.HeadgateClass1, objs.HeadgateClass2, objs.HeadgateClass3}
	return nil
}

// readClassFilter tells whether one of a device's HTB qdiscs has its filter.
func readClassFilter(c *nl.Conn, index int, qdisc nl.Handle) (bool, error) {
	filters, err := c.Objects("filters", unix.RTM_GETTFILTER, nl.TC{Ifindex: index, Parent: qdisc})
	if err != nil {
		return false, err
	}
	for _, f := range filters {
		if f.IsBPFFilter(classFilterPref, classFilterName) {
			return true, nil
		}
	}
	return false, nil
}

// setClassFilter attaches the filter of a level; needClassFilter comes before.
func setClassFilter(b *nl.Batch, ifindex int, qdisc nl.Handle, level int) {
	b.SetClassFilter(ifindex, qdisc, classFilterPref, classFilters.levels[level].FD(), classFilterName)
}

// classFilterStep attaches that of the first level where it is missing.
func classFilterStep(object string, w want, have tree) (step, bool) {
	if !w.filter || have.filtered {
		return step{}, false
	}
	s := step{add: func(b *nl.Batch, ifindex int) { setClassFilter(b, ifindex, nl.MakeHandle(major, 0), 0) }}
	if have.present { // else it was named with the tree
		s.change = func() shaper.Change {
			return shaper.Change{Verb: "add", Object: object, Detail: "the filter that reads packets' classes"}
		}
	}
	return s, true
}
