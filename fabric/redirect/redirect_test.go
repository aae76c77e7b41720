package redirect

import (
	"net/netip"
	"strings"
	"testing"

	"headgate.dev/headgate/fabric"
)

func prefixes(all ...string) (out []netip.Prefix) {
	for _, s := range all {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

func conn(client, server string) fabric.Connection {
	return fabric.Connection{Client: netip.MustParseAddrPort(client), Server: netip.MustParseAddrPort(server)}
}

// host is a host with an address at a switch.
func host(addr string, at fabric.DPID) fabric.Host {
	a := netip.MustParseAddr(addr)
	b := a.As16()
	return fabric.Host{HostID: fabric.HostID{MAC: fabric.MAC{2, 0, 0, 0, 0, b[15]}}, Addrs: []netip.Addr{a}, At: fabric.PortID{Switch: at, Port: 1}}
}

// Agents are at switches 1 to 4 of a line; the client is at 1, and the server at 4.
func TestChoose(t *testing.T) {
	line := func(from, to fabric.DPID) (int, bool) {
		return max(int(from)-int(to), int(to)-int(from)), max(from, to) < 9
	}
	all := prefixes("10.0.0.0/8")
	agent := func(name, addr string, at fabric.DPID, exits ...Exit) Agent {
		return Agent{Name: name, Host: host(addr, at), Takes: len(exits) > 0, Connects: true, Exits: exits}
	}
	to := func(addr string) Exit { return Exit{Address: netip.MustParseAddr(addr), Destinations: all} }
	ends := Ends{Client: host("10.0.0.11", 1), Beyond: host("10.0.0.13", 4), Server: host("10.0.0.13", 4)}
	tagged := ends
	tagged.Client.VLAN = 5
	c := conn("10.0.0.11:40000", "10.0.0.13:80")
	near, far := agent("near", "10.0.0.10", 1, to("10.0.0.12")), agent("far", "10.0.0.12", 4)
	middle := agent("middle", "10.0.0.14", 2, to("10.0.0.12"))
	specific := agent("specific", "10.0.0.15", 1, to("10.0.0.12"), Exit{Address: netip.MustParseAddr("10.0.0.99"), Destinations: prefixes("10.0.0.13/32")})
	hidden := far
	hidden.Connects = false
	away := agent("away", "10.0.0.12", 9)
	for _, one := range []struct {
		name   string
		ends   Ends
		agents []Agent
		want   string // "near far", or a part of why there is none
	}{
		{"the nearest", ends, []Agent{middle, near, far}, "near far"},
		{"the only one", ends, []Agent{middle, far}, "middle far"},
		{"none", ends, nil, "no agent takes"},
		{"only a far one", ends, []Agent{far}, "no agent takes"},
		{"a far one that is not known", ends, []Agent{near}, "the exit 10.0.0.12 of relay agent near has not announced itself"},
		{"the exit of the longest prefix counts", ends, []Agent{specific, far}, "the exit 10.0.0.99"},
		{"a far one that shows its own address", ends, []Agent{near, hidden}, "set keep_source"},
		{"no path", ends, []Agent{near, away}, "no agent takes"},
		{"another VLAN", tagged, []Agent{near, far}, "other VLANs"},
		{"an agent is the server", ends, []Agent{near, agent("far", "10.0.0.13", 4)}, "is one of its ends"},
	} {
		pair, why := Choose(c, one.ends, one.agents, line)
		if got := pair.Near.Name + " " + pair.Far.Name; got != one.want && (why == "" || !strings.Contains(why, one.want)) {
			t.Errorf("%s: %s, %s, want %s", one.name, got, why, one.want)
		}
	}
}
