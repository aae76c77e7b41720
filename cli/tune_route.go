package cli

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"

	"headgate/shaper"
)

// leadsTo tells why what goes to an address does not pass a device; nil if it does:
// the route is through it, or through one that stands on it (a VLAN, a bridge, a
// bond).
func leadsTo(dev string, to netip.Addr) error {
	own, err := netlink.LinkByName(dev)
	if err != nil {
		return fmt.Errorf("%s: %w", dev, shaper.ErrNoDevice)
	}
	routes, err := netlink.RouteGet(to.AsSlice())
	if err != nil || len(routes) == 0 {
		return fmt.Errorf("there is no route to %s: %v", to, err)
	}
	via, err := netlink.LinkByIndex(routes[0].LinkIndex)
	if err != nil {
		return err
	}
	// Each device stands on one other at the most, or is stood on by several.
	for range 8 {
		a := via.Attrs()
		if a.Index == own.Attrs().Index || own.Attrs().MasterIndex == a.Index {
			return nil
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
	name := fmt.Sprint(routes[0].LinkIndex)
	if l, err := netlink.LinkByIndex(routes[0].LinkIndex); err == nil {
		name = l.Attrs().Name
	}
	return fmt.Errorf("%s is reached through %s, and not through %s: what is measured would say nothing of that", to, name, dev)
}
