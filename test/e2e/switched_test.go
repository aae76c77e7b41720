package e2e

import (
	"net/netip"
	"strings"
	"testing"

	"headgate.dev/headgate/lab"
)

// switched returns a topology of hosts and OpenFlow switches with ids from 1 on, which connect to the host c, and of cables without a rate.
func switched(name string, hosts, switches []string, cables [][2]string) *lab.Topology {
	topology := &lab.Topology{Name: lab.UniqueName(name)}
	for _, n := range hosts {
		topology.Nodes = append(topology.Nodes, lab.NodeSpec{Name: n})
	}
	for n, name := range switches {
		topology.Switches = append(topology.Switches, lab.SwitchSpec{Name: name, ID: uint64(n + 1), Controllers: []string{"c:6653"}, Protocols: []string{"OpenFlow13"}})
	}
	for _, ends := range cables {
		topology.Links = append(topology.Links, lab.LinkSpec{Ends: ends})
	}
	return topology
}

// openFlowAddress returns the address to which the switches of a lab connect.
func openFlowAddress(t testing.TB, l *lab.Lab) string {
	t.Helper()
	target, err := l.Switch("s1").Command(t.Context(), "ovs-vsctl", "get-controller", "s1").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(strings.TrimSpace(string(target)), "tcp:")
}

// addressesOf returns the IPv4 addresses of hosts.
func addressesOf(t testing.TB, l *lab.Lab, hosts ...string) map[string]netip.Addr {
	t.Helper()
	all := map[string]netip.Addr{}
	for _, h := range hosts {
		a, err := l.Node(h).Addr(false)
		if err != nil {
			t.Fatal(err)
		}
		all[h] = a
	}
	return all
}
