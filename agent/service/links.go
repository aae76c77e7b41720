package service

import (
	"log/slog"
	"slices"

	"github.com/vishvananda/netlink"
)

// link is what the controllers know of a device to find it in their network: a host's port is known by the MAC address
// that is seen there.
type link struct {
	mac, kind, master string
	addresses         []string // with prefix length, without link-local ones
}

// readLinks reads the devices' addresses, by index.
func readLinks() map[int]link {
	all, err := netlink.LinkList()
	if err != nil {
		slog.Warn("cannot list the addresses of network devices", "error", err)
		return nil
	}
	addresses, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		slog.Warn("cannot list the addresses of network devices", "error", err)
	}
	out, names := map[int]link{}, map[int]string{}
	for _, l := range all {
		names[l.Attrs().Index] = l.Attrs().Name
	}
	for _, l := range all {
		out[l.Attrs().Index] = link{mac: l.Attrs().HardwareAddr.String(), kind: l.Type(), master: names[l.Attrs().MasterIndex]}
	}
	for _, a := range addresses {
		if l, ok := out[a.LinkIndex]; ok && !a.IP.IsLinkLocalUnicast() {
			l.addresses = append(l.addresses, a.IPNet.String())
			slices.Sort(l.addresses)
			out[a.LinkIndex] = l
		}
	}
	return out
}
