// Package netdev reads the network devices of the calling thread's network namespace from the
// kernel: their names, types, addresses, default routes and speeds. It changes nothing. Package
// ifname has the alternative names.
//
// Units: rates in bits per second, MTUs in bytes.
package netdev

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"headgate.dev/headgate/internal/ethtool"
	"headgate.dev/headgate/unit"
)

// Device is a network device.
type Device struct {
	Name  string
	Kind  string // the kernel's name of the link type; "device" if the type is not special
	Index int
	// Lower is the index of the device below this one on this machine, Master that of the bridge
	// or bond that this device is a port of. 0 is none.
	Lower, Master         int
	Loopback, Up, Carrier bool
	// Bus: the device is on a bus, like hardware and a virtual machine's devices.
	Bus bool
	// Metric is the lowest metric of the device's default routes, -1 without one.
	Metric int
	// Addrs are the addresses with their prefixes, without link-local and temporary ones.
	Addrs []netip.Prefix
	VLAN  int // VLAN id
	MTU   int
	Speed unit.Rate // 0 if unknown
}

// Devices are all devices of a network namespace.
type Devices []Device

// At returns the device with an index.
func (all Devices) At(index int) (Device, bool) {
	i := slices.IndexFunc(all, func(d Device) bool { return d.Index == index })
	if i < 0 || index == 0 {
		return Device{}, false
	}
	return all[i], true
}

// Ports returns the names of a device's ports for a message: a space and the names in parentheses,
// or "" if the device has no ports.
func (all Devices) Ports(of Device) string {
	var names []string
	for _, d := range all {
		if d.Master == of.Index {
			names = append(names, d.Name)
		}
	}
	slices.Sort(names)
	const most = 4 // enough to recognize the device
	switch {
	case len(names) == 0:
		return ""
	case len(names) > most:
		names = append(names[:most], fmt.Sprintf("%d more", len(names)-most))
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// Names returns the names of all devices, sorted.
func Names() ([]string, error) {
	list, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("cannot list network devices: %w", err)
	}
	names := make([]string, len(list))
	for i, d := range list {
		names[i] = d.Name
	}
	slices.Sort(names)
	return names, nil
}

// Speed returns the speed of a device's link, false if the speed is unknown or the device is
// virtual: the speed that a veth or tap reports is not real.
func Speed(dev string) (unit.Rate, bool) {
	l, err := netlink.LinkByName(dev)
	if err != nil {
		return 0, false
	}
	return speedOf(l)
}

func speedOf(l netlink.Link) (unit.Rate, bool) {
	if l.Attrs().ParentDev == "" {
		return 0, false
	}
	return ethtool.Speed(l.Attrs().Name)
}
