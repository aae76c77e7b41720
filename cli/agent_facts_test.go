package cli

import (
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
)

// A device with thousands of queues is asked for once.
func TestWithQdiscs(t *testing.T) {
	var all []netlink.Qdisc
	add := func(index int, handle uint32) {
		all = append(all, &netlink.GenericQdisc{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index, Handle: handle}})
	}
	add(1, 0) // the kernel's own
	for n := range uint32(4000) {
		add(2, n+1)
	}
	add(3, 1)
	if got := withQdiscs(all); !slices.Equal(got, []int{2, 3}) {
		t.Errorf("they are %v", got)
	}
	for n := range 2 * mostForeign {
		add(n+10, 1)
	}
	if got := withQdiscs(all); len(got) != mostForeign {
		t.Errorf("they are %d, want %d", len(got), mostForeign)
	}
}
