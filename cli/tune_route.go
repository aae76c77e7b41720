package cli

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"

	"headgate/shaper"
)

// leadsTo tells why what goes to an address does not pass a device; nil if it does.
func leadsTo(dev string, to netip.Addr) error {
	if _, err := netlink.LinkByName(dev); err != nil {
		return fmt.Errorf("%s: %w", dev, shaper.ErrNoDevice)
	}
	through, err := passes(to)
	if err != nil || slices.Contains(through, dev) {
		return err
	}
	return fmt.Errorf("%s is reached through %s, and not through %s: what is measured would say nothing of that", to, through[0], dev)
}

// passes are the devices that what goes to an address passes: the one of the route, those that it
// stands on (a VLAN's), and those in it (of a bridge, of a bond).
func passes(to netip.Addr) (names []string, err error) {
	routes, err := netlink.RouteGet(to.AsSlice())
	if err != nil || len(routes) == 0 {
		return nil, fmt.Errorf("there is no route to %s: %v", to, err)
	}
	via, err := netlink.LinkByIndex(routes[0].LinkIndex)
	if err != nil {
		return nil, err
	}
	all, err := netlink.LinkList()
	if err != nil {
		return nil, err
	}
	// Each device stands on one other at the most, or is stood on by several.
	for range 8 {
		a := via.Attrs()
		names = append(names, a.Name)
		for _, l := range all {
			if l.Attrs().MasterIndex == a.Index {
				names = append(names, l.Attrs().Name)
			}
		}
		if a.ParentIndex == 0 {
			break
		}
		if _, veth := via.(*netlink.Veth); veth {
			break // its parent is the other end
		}
		if via, err = netlink.LinkByIndex(a.ParentIndex); err != nil {
			break
		}
	}
	return names, nil
}
