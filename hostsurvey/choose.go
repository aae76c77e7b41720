package hostsurvey

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"headgate.dev/headgate/internal/netdev"
)

// ownIFB matches the names of the IFB devices that Headgate creates for ingress.
var ownIFB = regexp.MustCompile(`^hgi\d+$`)

// leftOut returns the reason why a device gets no document, or "" if it gets one. Each egress
// packet is shaped once, at the device where the link begins.
func leftOut(all netdev.Devices, l netdev.Device) string {
	master, _ := all.At(l.Master)
	switch {
	case l.Loopback:
		return "loopback: no traffic leaves the machine through it"
	case ownIFB.MatchString(l.Name):
		return "created by Headgate for ingress"
	case l.Kind == "ifb":
		return "an IFB: another program shapes the ingress of another device on it"
	case l.Kind == "dummy":
		return "a dummy: it discards what is sent"
	case l.Kind == "bridge" || l.Kind == "openvswitch":
		return "a bridge: its traffic leaves through its ports" + all.Ports(l)
	case l.Kind == "vrf":
		return "a VRF: its traffic leaves through its devices" + all.Ports(l)
	case aggregates(master):
		return "a port of " + master.Name + ", which is shaped as a whole"
	case !l.Up:
		return fmt.Sprintf("down: enable it with \"ip link set %s up\"", l.Name)
	case !l.Carrier:
		return "no carrier: check the cable and the remote end"
	}
	if lower, ok := all.At(l.Lower); ok {
		if l.VLAN > 0 && lower.Kind != "bridge" {
			return fmt.Sprintf("its traffic leaves through %s, where rules can match it (vlan: %d)", lower.Name, l.VLAN)
		}
		return "its traffic leaves through " + lower.Name
	}
	switch {
	case l.Bus || l.Metric >= 0 || aggregates(l):
		return ""
	case !endsHere(l.Kind):
		return fmt.Sprintf("a %s: its packets leave through another device", l.Kind)
	case l.Master != 0 || !inNetwork(l):
		return "connects a VM or container of this machine: to shape its traffic, write perspective: guest and a limit"
	}
	return ""
}

// aggregates reports whether a device is a bond or team of several devices.
func aggregates(l netdev.Device) bool { return l.Kind == "bond" || l.Kind == "team" }

// endsHere reports whether a virtual device can be a machine's own egress device, as in a
// container. Other kinds are tunnels through another device.
func endsHere(kind string) bool {
	return slices.Contains([]string{"veth", "tap", "netkit", "vlan", "macvlan", "macvtap", "ipvlan"}, kind)
}

// inNetwork reports whether the link has an address in a network with other addresses. An address
// with a prefix of one address is typical of a container's gateway.
func inNetwork(l netdev.Device) bool {
	for _, p := range l.Addrs {
		if !p.IsSingleIP() {
			return true
		}
	}
	return false
}

// about describes a device: its kind, addresses and default route.
func about(l netdev.Device) string {
	var parts []string
	if l.Kind != "device" {
		parts = append(parts, l.Kind)
	}
	for _, a := range l.Addrs {
		parts = append(parts, a.String())
	}
	if len(l.Addrs) == 0 {
		parts = append(parts, "no address")
	}
	if l.Metric >= 0 {
		parts = append(parts, "default route")
	}
	return strings.Join(parts, ", ")
}
