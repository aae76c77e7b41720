// Package route finds the devices on the way to an address in the kernel's routing tables.
package route

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// Devices returns the devices that packets to an address pass through: the device of the route, the
// lower devices (of a VLAN), and the ports (of a bridge or bond).
func Devices(to netip.Addr) (names []string, err error) {
	routes, err := netlink.RouteGet(to.AsSlice())
	if err != nil || len(routes) == 0 {
		return nil, fmt.Errorf("no route to %s: %v", to, err)
	}
	via, err := netlink.LinkByIndex(routes[0].LinkIndex)
	if err != nil {
		return nil, err
	}
	all, err := netlink.LinkList()
	if err != nil {
		return nil, err
	}
	// Each device has at most one lower device. The loop bound prevents an endless loop.
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
			break // the parent of a veth is its peer
		}
		if via, err = netlink.LinkByIndex(a.ParentIndex); err != nil {
			break
		}
	}
	return names, nil
}
