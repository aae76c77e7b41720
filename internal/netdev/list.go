package netdev

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// List returns all devices. Those with a default route are first, by metric, the others follow by
// name.
func List() (Devices, error) {
	list, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("cannot list devices: %w", err)
	}
	metrics, err := defaultRoutes()
	if err != nil {
		return nil, fmt.Errorf("cannot list routes: %w", err)
	}
	out := make(Devices, len(list))
	for i, l := range list {
		a := l.Attrs()
		out[i] = Device{
			Name: a.Name, Kind: kindOf(l), Index: a.Index, Master: a.MasterIndex, MTU: a.MTU, Bus: a.ParentDev != "",
			Loopback: a.RawFlags&unix.IFF_LOOPBACK != 0, Up: a.RawFlags&unix.IFF_UP != 0, Carrier: a.RawFlags&unix.IFF_RUNNING != 0,
			Metric: -1, Addrs: networksOf(l),
		}
		if a.NetNsID < 0 { // else the lower device is in another namespace
			out[i].Lower = lowerOf(l)
		}
		if v, ok := l.(*netlink.Vlan); ok {
			out[i].VLAN = v.VlanId
		}
		if m, ok := metrics[a.Index]; ok {
			out[i].Metric = m
		}
		out[i].Speed, _ = speedOf(l)
	}
	slices.SortFunc(out, func(a, b Device) int {
		return cmp.Or(-compareBool(a.Metric >= 0, b.Metric >= 0), cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// kindOf returns the type of a link. The kernel has one name for TAP and TUN; kindOf
// distinguishes them.
func kindOf(l netlink.Link) string {
	if t, ok := l.(*netlink.Tuntap); ok {
		if t.Mode == netlink.TUNTAP_MODE_TUN {
			return "tun"
		}
		return "tap"
	}
	return l.Type()
}

// lowerOf returns the device below a VLAN or macvlan, 0 for other types. For a veth, the kernel's
// ParentIndex is the peer, and for a tunnel the device that the tunnel is bound to.
func lowerOf(l netlink.Link) int {
	switch l.Type() {
	case "vlan", "macvlan", "macvtap", "ipvlan":
		return l.Attrs().ParentIndex
	}
	return 0
}

// defaultRoutes returns the lowest metric of the default routes of each device, by device index.
func defaultRoutes() (map[int]int, error) {
	routes, err := netlink.RouteList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, err
	}
	out := map[int]int{}
	note := func(index, metric int) {
		if old, ok := out[index]; !ok || metric < old {
			out[index] = metric
		}
	}
	for _, r := range routes {
		if r.Dst != nil {
			if bits, _ := r.Dst.Mask.Size(); bits > 0 {
				continue
			}
		}
		if len(r.MultiPath) == 0 {
			note(r.LinkIndex, r.Priority)
		}
		for _, hop := range r.MultiPath {
			note(hop.LinkIndex, r.Priority)
		}
	}
	return out, nil
}

// networksOf returns a device's addresses with their prefixes. Link-local addresses are left out
// because they do not identify a network, and temporary ones because they change daily.
func networksOf(l netlink.Link) (out []netip.Prefix) {
	addrs, err := netlink.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		return nil // the device was removed meanwhile
	}
	for _, a := range addrs {
		ip, ok := netip.AddrFromSlice(a.IP)
		bits, _ := a.Mask.Size()
		if ip = ip.Unmap(); ok && !ip.IsLinkLocalUnicast() && a.Flags&unix.IFA_F_TEMPORARY == 0 {
			out = append(out, netip.PrefixFrom(ip, bits))
		}
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	return out
}
