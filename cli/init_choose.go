package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ownIFB matches the names of the IFB devices that Headgate creates for ingress.
var ownIFB = regexp.MustCompile(`^hgi\d+$`)

// initLinks are all links of a machine.
type initLinks []initLink

func (all initLinks) at(index int) (initLink, bool) {
	i := slices.IndexFunc(all, func(l initLink) bool { return l.index == index })
	if i < 0 || index == 0 {
		return initLink{}, false
	}
	return all[i], true
}

// leftOut returns the reason why a device gets no document, or "" if it gets one. Each egress
// packet is shaped once, at the device where the link begins.
func (all initLinks) leftOut(l initLink) string {
	master, _ := all.at(l.master)
	switch {
	case l.loopback:
		return "loopback: no traffic leaves the machine through it"
	case ownIFB.MatchString(l.name):
		return "created by Headgate for ingress"
	case l.kind == "ifb":
		return "an IFB: another program shapes the ingress of another device on it"
	case l.kind == "dummy":
		return "a dummy: it discards what is sent"
	case l.kind == "bridge" || l.kind == "openvswitch":
		return "a bridge: its traffic leaves through its ports" + all.ports(l)
	case l.kind == "vrf":
		return "a VRF: its traffic leaves through its devices" + all.ports(l)
	case aggregates(master):
		return "a port of " + master.name + ", which is shaped as a whole"
	case !l.up:
		return fmt.Sprintf("down: enable it with \"ip link set %s up\"", l.name)
	case !l.carrier:
		return "no carrier: check the cable and the remote end"
	}
	if lower, ok := all.at(l.lower); ok {
		if l.vlan > 0 && lower.kind != "bridge" {
			return fmt.Sprintf("its traffic leaves through %s, where rules can match it (vlan: %d)", lower.name, l.vlan)
		}
		return "its traffic leaves through " + lower.name
	}
	switch {
	case l.bus || l.metric >= 0 || aggregates(l):
		return ""
	case !endsHere(l.kind):
		return fmt.Sprintf("a %s: its packets leave through another device", l.kind)
	case l.master != 0 || !l.inNetwork():
		return "connects a VM or container of this machine: to shape its traffic, write perspective: guest and a limit"
	}
	return ""
}

// aggregates reports whether a device is a bond or team of several devices.
func aggregates(l initLink) bool { return l.kind == "bond" || l.kind == "team" }

// endsHere reports whether a virtual device can be a machine's own egress device, as in a
// container. Other kinds are tunnels through another device.
func endsHere(kind string) bool {
	return slices.Contains([]string{"veth", "tap", "netkit", "vlan", "macvlan", "macvtap", "ipvlan"}, kind)
}

// inNetwork reports whether the link has an address in a network with other addresses. An address
// with a prefix of one address is typical of a container's gateway.
func (l initLink) inNetwork() bool {
	for _, p := range l.addrs {
		if !p.IsSingleIP() {
			return true
		}
	}
	return false
}

// ports returns the names of a device's ports, in parentheses.
func (all initLinks) ports(of initLink) string {
	var names []string
	for _, l := range all {
		if l.master == of.index {
			names = append(names, l.name)
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

// about describes a device: its kind, addresses and default route.
func (l initLink) about() string {
	var parts []string
	if l.kind != "device" {
		parts = append(parts, l.kind)
	}
	for _, a := range l.addrs {
		parts = append(parts, a.String())
	}
	if len(l.addrs) == 0 {
		parts = append(parts, "no address")
	}
	if l.metric >= 0 {
		parts = append(parts, "default route")
	}
	return strings.Join(parts, ", ")
}
