// Package ifname finds network devices by any of their names: a device has one
// that the kernel calls it by, and may have alternative ones ("ip link property
// add dev eth0 altname enp0s3").
package ifname

import (
	"net"

	"github.com/vishvananda/netlink"
)

// Alternatives are the alternative names of the devices of this network
// namespace, by the kernel's names; devices without any are not in it.
func Alternatives() (map[string][]string, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, l := range links {
		if a := l.Attrs(); len(a.AltNames) > 0 {
			out[a.Name] = a.AltNames
		}
	}
	return out, nil
}

// Kernel is the kernel's name of the device that name is one of. It is name itself
// if there is no such device.
func Kernel(name string) string {
	if _, err := net.InterfaceByName(name); err == nil {
		return name
	}
	// The kernel looks among alternative names too (net/core/dev.c, __dev_get_by_name).
	if l, err := netlink.LinkByName(name); err == nil {
		return l.Attrs().Name
	}
	return name
}

// Of are the alternative names of a device.
func Of(dev string) []string {
	if l, err := netlink.LinkByName(dev); err == nil {
		return l.Attrs().AltNames
	}
	return nil
}
