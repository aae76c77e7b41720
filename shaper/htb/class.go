package htb

import (
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/classifier"
)

// classFilterName is the name of the filters of the HTB qdiscs (class.c). It contains a hash of
// their code, so that the filters of another build are replaced.
var classFilterName = "headgate class " + classifier.Build(_ClassFilterBytes)[:8]

const classFilterPref = 1

// classFilters holds the programs by the level of groups below the qdisc, loaded once per
// process. They have no state: one program serves all qdiscs of its level.
var classFilters struct {
	sync.Mutex
	levels [group.MaxDepth]*ebpf.Program
}

// needClassFilter loads the programs; it must be called before a step that attaches one.
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

// readClassFilter reports whether an HTB qdisc of a device has its filter.
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

// setClassFilter attaches the filter of a level, after needClassFilter.
func setClassFilter(b *nl.Batch, ifindex int, qdisc nl.Handle, level int) {
	b.SetClassFilter(ifindex, qdisc, classFilterPref, classFilters.levels[level].FD(), classFilterName)
}

// classFilterStep returns the step that attaches the filter of the first level if it is
// missing.
func classFilterStep(object string, w desiredSide, have tree) (step, bool) {
	if !w.filter || have.filtered {
		return step{}, false
	}
	s := step{add: func(b *nl.Batch, ifindex int) { setClassFilter(b, ifindex, nl.MakeHandle(major, 0), 0) }}
	if have.present { // otherwise the change of the tree includes it
		s.change = func() shaper.Change {
			return shaper.Change{Verb: "add", Object: object, Detail: "the filter that reads packet classes"}
		}
	}
	return s, true
}
