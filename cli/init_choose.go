package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ownIFB is what Headgate calls the devices that it makes for what comes in.
var ownIFB = regexp.MustCompile(`^hgi\d+$`)

// initLinks are all of a machine's.
type initLinks []initLink

func (all initLinks) at(index int) (initLink, bool) {
	i := slices.IndexFunc(all, func(l initLink) bool { return l.index == index })
	if i < 0 || index == 0 {
		return initLink{}, false
	}
	return all[i], true
}

// leftOut says why a device gets no document, "" if it gets one: what leaves the machine is
// divided once, by the device that the link begins at.
func (all initLinks) leftOut(l initLink) string {
	master, _ := all.at(l.master)
	switch {
	case l.loopback:
		return "loopback: nothing leaves the machine by it"
	case ownIFB.MatchString(l.name):
		return "Headgate's own, for what comes in"
	case l.kind == "ifb":
		return "an IFB: on it others divide what comes in by another device"
	case l.kind == "dummy":
		return "a dummy: what is sent there goes nowhere"
	case l.kind == "bridge" || l.kind == "openvswitch":
		return "a bridge: what it carries leaves by its ports" + all.ports(l)
	case l.kind == "vrf":
		return "a VRF: what it routes leaves by its devices" + all.ports(l)
	case aggregates(master):
		return "a part of " + master.name + ", which is divided as a whole"
	case !l.up:
		return fmt.Sprintf("down: \"ip link set %s up\" brings it up", l.name)
	case !l.carrier:
		return "without carrier: look at the cable, or at the other end"
	}
	if lower, ok := all.at(l.lower); ok {
		if l.vlan > 0 && lower.kind != "bridge" {
			return fmt.Sprintf("what it carries leaves by %s, where rules can name it (vlan: %d)", lower.name, l.vlan)
		}
		return "what it carries leaves by " + lower.name
	}
	switch {
	case l.bus || l.metric >= 0 || aggregates(l):
		return ""
	case !endsHere(l.kind):
		return fmt.Sprintf("a %s: its packets leave by another device", l.kind)
	case l.master != 0 || !l.inNetwork():
		return "it leads to a VM or container of this machine: to divide that one's traffic write perspective: guest, and the limit that you want it to have"
	}
	return ""
}

// aggregates tells whether a device is made of several that carry its traffic together.
func aggregates(l initLink) bool { return l.kind == "bond" || l.kind == "team" }

// endsHere tells whether a virtual device may be a machine's own way out, as a container's is,
// rather than a tunnel through another.
func endsHere(kind string) bool {
	return slices.Contains([]string{"veth", "tap", "netkit", "vlan", "macvlan", "macvtap", "ipvlan"}, kind)
}

// inNetwork tells whether this machine has an address among others there. One that is alone in its
// network is a container's gateway.
func (l initLink) inNetwork() bool {
	for _, p := range l.addrs {
		if !p.IsSingleIP() {
			return true
		}
	}
	return false
}

// ports are the names of what a device is made of.
func (all initLinks) ports(of initLink) string {
	var names []string
	for _, l := range all {
		if l.master == of.index {
			names = append(names, l.name)
		}
	}
	slices.Sort(names)
	const most = 4 // the others are alike
	switch {
	case len(names) == 0:
		return ""
	case len(names) > most:
		names = append(names[:most], fmt.Sprintf("%d more", len(names)-most))
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// about says what a device is.
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
