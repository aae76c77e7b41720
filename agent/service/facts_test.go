package service

import (
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
)

// A device with thousands of qdiscs is listed once.
func TestWithQdiscs(t *testing.T) {
	var all []netlink.Qdisc
	add := func(index int, handle uint32) {
		all = append(all, &netlink.GenericQdisc{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index, Handle: handle}})
	}
	add(1, 0) // the kernel's default qdisc
	for n := range uint32(4000) {
		add(2, n+1)
	}
	add(3, 1)
	if got := withQdiscs(all); !slices.Equal(got, []int{2, 3}) {
		t.Errorf("withQdiscs: %v, want [2 3]", got)
	}
	for n := range 2 * maxScannedDevices {
		add(n+10, 1)
	}
	if got := withQdiscs(all); len(got) != maxScannedDevices {
		t.Errorf("withQdiscs: %d indexes, want %d", len(got), maxScannedDevices)
	}
}
