// Package ifname finds network devices by any of their names. A device has one kernel name, and may
// have alternative names ("ip link property add dev eth0 altname enp0s3").
package ifname

import (
	"net"

	"github.com/vishvananda/netlink"
)

// Alternatives returns the alternative names of the devices of this network namespace, by kernel
// name. Devices without alternative names are not included.
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

// Kernel returns the kernel name of the device with this kernel or alternative name, or name itself
// if there is no such device.
func Kernel(name string) string {
	if _, err := net.InterfaceByName(name); err == nil {
		return name
	}
	// The kernel also searches alternative names (net/core/dev.c, __dev_get_by_name).
	if l, err := netlink.LinkByName(name); err == nil {
		return l.Attrs().Name
	}
	return name
}

// Of returns the alternative names of a device.
func Of(dev string) []string {
	if l, err := netlink.LinkByName(dev); err == nil {
		return l.Attrs().AltNames
	}
	return nil
}
