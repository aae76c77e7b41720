package points

import (
	"maps"
	"slices"

	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"
)

// Interface is an interface of a host or router with an agent.
type Interface struct {
	Host, Dev string
	// Speed is that of its link, 0 if the agent does not know it.
	Speed unit.Rate
}

// ByMAC finds interfaces by the MAC address that the network sees at a port, from what the agents report of their hosts.
// Of several interfaces of a host with one address, it is the one whose queue all packets to the network pass: a bond and
// not its ports, the port of a bridge and not the bridge, and not a VLAN on top of another interface. An address that two
// hosts have is missing.
func ByMAC(facts map[string]*agents.Facts) map[fabric.MAC]Interface {
	out, twice := map[fabric.MAC]Interface{}, map[fabric.MAC]bool{}
	for _, host := range slices.Sorted(maps.Keys(facts)) {
		own := map[fabric.MAC]Interface{}
		for _, d := range outermost(facts[host].GetDevices()) {
			mac, err := fabric.ParseMAC(d.Mac)
			if err != nil || mac == (fabric.MAC{}) {
				continue // a device without an address, such as a tunnel
			}
			if before, ok := own[mac]; ok && before.Dev < d.Name {
				continue
			}
			own[mac] = Interface{Host: host, Dev: d.Name, Speed: unit.Rate(d.SpeedBps)}
		}
		for mac, i := range own {
			_, also := out[mac]
			twice[mac] = twice[mac] || also
			out[mac] = i
		}
	}
	for mac, two := range twice {
		if two {
			delete(out, mac)
		}
	}
	return out
}

// stacked are the kinds of devices that send through another one (ip-link(8), TYPES).
var stacked = []string{"vlan", "bridge", "macvlan", "macvtap", "ipvlan"}

// outermost returns the devices that send to a line.
func outermost(all []*agents.Device) (out []*agents.Device) {
	bonds := map[string]bool{}
	for _, d := range all {
		bonds[d.Name] = d.Kind == "bond" || d.Kind == "team"
	}
	for _, d := range all {
		if !slices.Contains(stacked, d.Kind) && !bonds[d.Master] {
			out = append(out, d)
		}
	}
	return out
}
