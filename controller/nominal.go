package controller

import (
	"net/netip"
	"slices"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// nominal returns what the links between two addresses of hosts, without or with ports, are configured or reported to have, 0 if this controller does not lead
// the network.
func (c *Controller) nominal(from, to string) unit.Rate {
	top, err := c.topology()
	if err != nil {
		return 0
	}
	return nominalBetween(top, from, to)
}

// nominalBetween returns that of the direction that has more, because one measurement has both. It is 0 if the network does not know the hosts.
func nominalBetween(top *fabric.Topology, from, to string) unit.Rate {
	a, ok := portAt(top, from)
	b, there := portAt(top, to)
	if !ok || !there {
		return 0
	}
	return max(nominalRate(top, a, b), nominalRate(top, b, a))
}

// portAt returns the port of the host with an address.
func portAt(top *fabric.Topology, address string) (at fabric.PortID, ok bool) {
	where, err := probe.ParseAddress(address)
	if err != nil {
		return at, false
	}
	ip, err := netip.ParseAddr(where.Host)
	if err != nil {
		return at, false
	}
	i := slices.IndexFunc(top.Hosts(), func(h fabric.Host) bool { return slices.Contains(h.Addrs, ip.Unmap()) })
	if i < 0 {
		return at, false
	}
	return top.Hosts()[i].At, true
}

// nominalRate returns the least of what is known of the links from a port to another, with the lines of the hosts, 0 if nothing is.
func nominalRate(top *fabric.Topology, from, to fabric.PortID) (least unit.Rate) {
	links, ok := top.Shortest(from.Switch, to.Switch, fabric.Cost, nil)
	if !ok {
		return 0
	}
	for _, l := range slices.Concat([]fabric.LinkID{reserve.Uplink(from)}, links, []fabric.LinkID{reserve.Downlink(to)}) {
		if rate := (weakLinks{top: top}).capacity(l); rate > 0 && (least == 0 || rate < least) {
			least = rate
		}
	}
	return least
}
