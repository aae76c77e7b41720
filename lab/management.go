package lab

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// managementNetwork returns the network of management link i, in 169.254.0.0/16: no other link can have
// an address in it. The switches have its first address, the node its second. RFC 3927 reserves the
// first and the last 256 addresses.
func managementNetwork(i int) netip.Prefix {
	n := 256 + 4*i
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{169, 254, byte(n >> 8), byte(n)}), 30)
}

// ManagementAddr returns the IPv4 address by which switches reach a node that is a controller.
func (l *Lab) ManagementAddr(node string) (netip.Addr, error) {
	for i, name := range l.Topology.controllerNodes() {
		if name == node {
			return managementNetwork(i).Addr().Next().Next(), nil
		}
	}
	return netip.Addr{}, configErrorf("node %q has no management link: make it a controller of a switch in the topology", node)
}

// makeManagementLink connects the switches' namespace with a node that is a controller. The link is not
// in Topology.Links: it has no routes, counts or flows.
func (l *Lab) makeManagementLink(i int, name string) error {
	nodes, devs := [2]*Node{l.switches.node, l.nodes[name]}, [2]string{name, switchesName}
	if err := makeVeth(len(l.Topology.Links)+i, nodes, devs); err != nil {
		return err
	}
	addr := managementNetwork(i).Addr()
	for e, n := range nodes {
		link, err := n.nl.LinkByName(devs[e])
		if err != nil {
			return err
		}
		addr = addr.Next()
		if err := n.nl.AddrAdd(link, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(addr, 30))}); err != nil {
			return fmt.Errorf("cannot add address %v to %s: %w", addr, devs[e], err)
		}
		if err := n.nl.LinkSetUp(link); err != nil {
			return fmt.Errorf("cannot set %s up: %w", devs[e], err)
		}
	}
	return l.switches.node.Do(func() error { return writeSysctl("net.ipv4.conf."+name+".arp_ignore", "0") })
}
