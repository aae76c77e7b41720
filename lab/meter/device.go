package meter

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The place of AttachDevice's filter: a late preference, so that the filters under test run first.
const (
	filterPriority = 0xC000
	filterHandle   = 1
	filterName     = "lab-meter"
)

// host runs a function in a network namespace; lab.Node implements it.
type host interface{ Do(fn func() error) error }

// attachment is one filter of the meter.
type attachment struct {
	host   host
	filter *netlink.BpfFilter
	clsact *netlink.Clsact // nil if it existed before
}

// AttachDevice counts at the ingress of dev, a device of h, for flows that are assigned by port. It
// adds clsact if that is missing. Close removes the filter, and clsact if it was added and nothing
// else uses it.
func (m *Meter) AttachDevice(h host, dev string) error {
	a := attachment{host: h}
	err := h.Do(func() error {
		link, err := netlink.LinkByName(dev)
		if err != nil {
			return err
		}
		index := link.Attrs().Index
		clsact := &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
			LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT,
		}}
		switch err := netlink.QdiscAdd(clsact); {
		case err == nil:
			a.clsact = clsact
		case !errors.Is(err, unix.EEXIST):
			return fmt.Errorf("cannot add clsact: %w", err)
		}
		a.filter = &netlink.BpfFilter{
			FilterAttrs: netlink.FilterAttrs{
				LinkIndex: index, Parent: netlink.HANDLE_MIN_INGRESS,
				Handle: filterHandle, Priority: filterPriority, Protocol: unix.ETH_P_ALL,
			},
			Fd: m.objects.MeterDevice.FD(), Name: filterName, DirectAction: true,
		}
		return netlink.FilterAdd(a.filter)
	})
	if err != nil {
		return fmt.Errorf("cannot attach the meter to %s: %w", dev, err)
	}
	m.attached = append(m.attached, a)
	return nil
}

func (a attachment) detach() error {
	return a.host.Do(func() error {
		if _, err := netlink.LinkByIndex(a.filter.LinkIndex); err != nil {
			return nil // the device was removed, and the filter with it
		}
		if err := netlink.FilterDel(a.filter); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("cannot detach the meter: %w", err)
		}
		if a.clsact == nil || slices.ContainsFunc([]uint32{netlink.HANDLE_MIN_INGRESS, netlink.HANDLE_MIN_EGRESS}, a.occupied) {
			return nil
		}
		return netlink.QdiscDel(a.clsact)
	})
}

// occupied reports whether parent has another filter.
func (a attachment) occupied(parent uint32) bool {
	link := &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: a.filter.LinkIndex}}
	filters, err := netlink.FilterList(link, parent)
	return err != nil || len(filters) > 0
}
