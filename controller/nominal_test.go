package controller

import (
	"net/netip"
	"testing"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"
)

// What a path is said to have is the least of its links and of the lines of both hosts, in the direction that has more.
func TestNominal(t *testing.T) {
	w, link := weakNetwork(t)
	parts := fabric.Parts{Switches: w.top.Switches()}
	for _, l := range w.top.Links() {
		if l.LinkID == link.Reverse() {
			l.Capacity = 40 * unit.Mbit
		}
		parts.Links = append(parts.Links, l)
	}
	for i, addr := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "fd00::4"} {
		parts.Hosts = append(parts.Hosts, fabric.Host{
			HostID: fabric.HostID{MAC: fabric.MAC{2, 0, 0, 0, 0, byte(i)}}, Addrs: []netip.Addr{netip.MustParseAddr(addr)}, At: fabric.PortID{Switch: fabric.DPID(1 + i/2), Port: fabric.PortNo(1 + i%2)},
		})
	}
	top, err := fabric.New(parts)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from, to string
		want     unit.Rate
	}{
		{"10.0.0.1", "10.0.0.3:4950", 100 * unit.Mbit},
		{"10.0.0.3", "10.0.0.1:4950", 100 * unit.Mbit},
		{"10.0.0.1", "[fd00::4]:4950", 100 * unit.Mbit},
		{"10.0.0.1", "10.0.0.2:4950", unit.Gbit},
		{"10.0.0.1", "10.0.0.9:4950", 0},
		{"", "10.0.0.1:4950", 0},
		{"server.example.org", "10.0.0.1:4950", 0},
	} {
		if got := nominalBetween(top, c.from, c.to); got != c.want {
			t.Errorf("%s to %s: %v, want %v", c.from, c.to, got, c.want)
		}
	}
}
