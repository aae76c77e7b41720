package cli

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"headgate/cli/doctor"
	"headgate/unit"
)

// initLink is what init knows of a device.
type initLink struct {
	name  string
	kind  string // the kernel's word for it; "device" is of no special kind
	index int
	// lower is the device of this machine that carries what this one does, master the bridge
	// or bond that it is a part of; 0 if there is none.
	lower, master         int
	loopback, up, carrier bool
	// bus: it stands on a bus, as real hardware and a virtual machine's devices do.
	bus bool
	// metric is the least of its default routes', -1 if it has none.
	metric int
	addrs  []netip.Prefix
	vlan   int // its id, of a VLAN
	mtu    int
	speed  unit.Rate // 0 if it is not known
}

// readLinks are the devices of this network namespace: those with a default route first, by its
// metric, then by name.
func readLinks() (initLinks, error) {
	list, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("the devices cannot be listed: %w", err)
	}
	metrics, err := defaultRoutes()
	if err != nil {
		return nil, fmt.Errorf("the routes cannot be listed: %w", err)
	}
	out := make(initLinks, len(list))
	for i, l := range list {
		a := l.Attrs()
		out[i] = initLink{
			name: a.Name, kind: kindOf(l), index: a.Index, master: a.MasterIndex, mtu: a.MTU, bus: a.ParentDev != "",
			loopback: a.RawFlags&unix.IFF_LOOPBACK != 0, up: a.RawFlags&unix.IFF_UP != 0, carrier: a.RawFlags&unix.IFF_RUNNING != 0,
			metric: -1, addrs: networksOf(l),
		}
		if a.NetNsID < 0 { // else what it stands on is another namespace's
			out[i].lower = lowerOf(l)
		}
		if v, ok := l.(*netlink.Vlan); ok {
			out[i].vlan = v.VlanId
		}
		if m, ok := metrics[a.Index]; ok {
			out[i].metric = m
		}
		out[i].speed, _ = doctor.Speed(l)
	}
	slices.SortFunc(out, func(a, b initLink) int {
		return cmp.Or(-compareBool(a.metric >= 0, b.metric >= 0), cmp.Compare(a.metric, b.metric), cmp.Compare(a.name, b.name))
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

// kindOf tells a TAP from a TUN, which the kernel calls by one word.
func kindOf(l netlink.Link) string {
	if t, ok := l.(*netlink.Tuntap); ok {
		if t.Mode == netlink.TUNTAP_MODE_TUN {
			return "tun"
		}
		return "tap"
	}
	return l.Type()
}

// lowerOf is the device that a VLAN and the like stand on. Of a veth the kernel says the other
// end there, of a tunnel the device that it is bound to.
func lowerOf(l netlink.Link) int {
	switch l.Type() {
	case "vlan", "macvlan", "macvtap", "ipvlan":
		return l.Attrs().ParentIndex
	}
	return 0
}

// defaultRoutes are the least metrics of default routes, by the devices' indices.
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

// networksOf are a device's addresses with their networks. Those of the link alone say nothing,
// and temporary ones are others every day.
func networksOf(l netlink.Link) (out []netip.Prefix) {
	addrs, err := netlink.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		return nil // it went meanwhile
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
