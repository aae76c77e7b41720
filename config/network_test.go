package config

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/program"
	"headgate.dev/headgate/internal/golden"
	"headgate.dev/headgate/unit"
)

// TestNetwork: every key is read, in any order of the keys.
func TestNetwork(t *testing.T) {
	const file = "testdata/network.yaml"
	set, err := Load([]string{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	number := func(n fabric.PortNo) fabric.PortName { return fabric.PortName{No: n} }
	want := fabric.Config{
		Name: "campus",
		Switches: []fabric.SwitchConfig{
			{ID: 1, Name: "s1", Site: "north", HostPorts: []fabric.PortName{number(1), number(2), number(3), number(4), {Name: "eth9"}}, LinkPorts: []fabric.PortName{number(11), number(12)}},
			{ID: 2, Name: "s2"},
			{ID: 10, HostPorts: []fabric.PortName{number(1)}},
		},
		AcceptUnknown: true,
		Sites:         []fabric.Site{{Name: "north", Parent: "campus"}, {Name: "campus"}},
		Links: []fabric.LinkConfig{
			{Ends: [2]fabric.PortRef{{Switch: 1, Port: number(13)}, {Switch: 2, Port: fabric.PortName{Name: "ge-0/0/4"}}}, Capacity: unit.Gbit, Back: 500 * unit.Mbit, Cost: 10, Reservable: 150},
			{Ends: [2]fabric.PortRef{{Switch: 2, Port: number(5)}, {Switch: 10, Port: number(fabric.Local)}}, Cost: 1},
		},
		Hosts: []fabric.HostConfig{
			{HostID: fabric.HostID{MAC: fabric.MAC{2, 0, 0, 0, 0, 1}, VLAN: 7}, Name: "web1", Addrs: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}, At: fabric.PortRef{Switch: 1, Port: number(1)}},
			{HostID: fabric.HostID{MAC: fabric.MAC{2, 0, 0, 0, 0, 2}}, At: fabric.PortRef{Switch: 2, Port: fabric.PortName{Name: "eth1"}}},
		},
		Listen: []fabric.Listener{{Address: netip.MustParseAddrPort("[::]:6653"), TLS: true}, {Address: netip.MustParseAddrPort("127.0.0.1:6633")}},
		Trust:  []fabric.PortRef{{Switch: 1, Port: number(9)}, {Switch: 2, Port: number(1)}},
		Relays: fabric.Relays{Agents: []string{"web1", "10.0.0.9"}, Redirect: []fabric.Redirect{
			{Name: "bulk", From: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}, To: []netip.Prefix{netip.MustParsePrefix("10.2.0.0/16"), netip.MustParsePrefix("fd00::/64")}, Ports: []fabric.PortRange{{First: 443, Last: 443}, {First: 5001, Last: 5100}}},
			{Name: "rest", Ports: []fabric.PortRange{{First: 8080, Last: 8080}}},
		}},
		HostsPerPort:  200,
		ApplyMeasured: 50,
	}
	n := set.Networks[0]
	if !reflect.DeepEqual(n.Config, want) || n.File != file || n.Line != 1 || n.Notes != nil || len(set.Interfaces) > 0 {
		t.Errorf("%+v\nwant %+v", n, want)
	}
	if _, line, column := n.Where("links[1].ends[1]"); line != 5 || column < 1 {
		t.Errorf("the second end of the second link is at line %d, column %d", line, column)
	}
	golden.Compare(t, "testdata/network.txt", string(FormatNetwork(n.Config)))
	checkNetwork(t, n.Config)
}

// checkNetwork: a network is formatted as a document that parses to the same network.
func checkNetwork(t interface {
	Helper()
	Fatalf(string, ...any)
}, c fabric.Config) {
	t.Helper()
	text := FormatNetwork(c)
	again, err := Parse("formatted", text)
	if err != nil || len(again.Networks) != 1 {
		t.Fatalf("%v in\n%s", err, text)
	}
	if got := again.Networks[0].Config; !reflect.DeepEqual(got, c) {
		t.Fatalf("%+v is formatted as\n%s, which parses as %+v", c, text, got)
	}
}

// Without further keys a network listens with TLS on all addresses, and bounds the hosts of a port.
func TestNetworkDefaults(t *testing.T) {
	set, err := Parse("-", []byte("kind: Network\nname: n\nswitches: [{id: 1}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := fabric.Config{Name: "n", Switches: []fabric.SwitchConfig{{ID: 1}}, HostsPerPort: 64,
		Listen: []fabric.Listener{{Address: netip.MustParseAddrPort("0.0.0.0:6653"), TLS: true}}}
	if got := set.Networks[0].Config; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

// A network of routers has no listener, and each router has the agent of its own name.
func TestNetworkOfRouters(t *testing.T) {
	const text = `kind: Network
name: wan
hosts: [{name: h1, mac: 02:00:00:00:00:01, addresses: [10.1.0.1], at: r1/eth0, capacity: 10Gbit}]
links: [{ends: [r1/eth1.7, r2/wg0], capacity: 1Gbit, back: 500Mbit, cost: 3}]
routers: [{name: r1, host: gw1, site: north}, {name: r2}]
sites: [{name: north}]
`
	c, err := ParseNetwork("-", text)
	if err != nil {
		t.Fatal(err)
	}
	iface := func(router, name string) fabric.PortRef {
		return fabric.PortRef{Switch: fabric.RouterID(router), Port: fabric.PortName{Name: name}}
	}
	want := fabric.Config{
		Name: "wan", Sites: []fabric.Site{{Name: "north"}}, HostsPerPort: fabric.DefaultHostsPerPort,
		Routers: []fabric.RouterConfig{{Name: "r1", Host: "gw1", Site: "north"}, {Name: "r2", Host: "r2"}},
		Links:   []fabric.LinkConfig{{Ends: [2]fabric.PortRef{iface("r1", "eth1.7"), iface("r2", "wg0")}, Capacity: unit.Gbit, Back: 500 * unit.Mbit, Cost: 3}},
		Hosts: []fabric.HostConfig{{
			HostID: fabric.HostID{MAC: fabric.MAC{2, 0, 0, 0, 0, 1}}, Name: "h1", Addrs: []netip.Addr{netip.MustParseAddr("10.1.0.1")}, At: iface("r1", "eth0"), Capacity: 10 * unit.Gbit,
		}},
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("%+v\nwant %+v", c, want)
	}
	checkNetwork(t, c)
	if text := string(FormatNetwork(c)); strings.Contains(text, "fffe") || strings.Contains(text, "fe:") {
		t.Errorf("the identity of a router is printed:\n%s", text)
	}
	if top, err := fabric.New(c.WithRouters(fabric.Parts{})); err != nil || len(top.Links()) != 2 {
		t.Errorf("%v, %v", top, err)
	}
}

// A listener without TLS that other hosts reach is noted.
func TestNetworkNotes(t *testing.T) {
	for text, want := range map[string]string{
		"switches: [{id: 1}]\nlisten: [{address: \"0.0.0.0:6653\", tls: false}]\n":   "n.yaml:4: listen[0]: note: 0.0.0.0:6653 is neither encrypted nor authenticated: any host that reaches it can act as one of the switches;",
		"unknown_switches: accept\nlisten: [{address: \"[::]:6653\", tls: false}]\n": "n.yaml:4: listen[0]: note: [::]:6653 is neither encrypted nor authenticated: any host that reaches it can act as a switch;",
		"switches: [{id: 1}]\nlisten: [{address: \"127.0.0.1:6653\", tls: false}]\n": "",
		"switches: [{id: 1}]\nlisten: [{address: \"0.0.0.0:6653\"}]\n":               "",
	} {
		set, err := Parse("n.yaml", []byte("kind: Network\nname: n\n"+text))
		if err != nil {
			t.Error(err)
			continue
		}
		got := ""
		for _, n := range set.Networks[0].Notes {
			got += n.String()
		}
		if (got == "") != (want == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestNetworkSize: a network of as many switches as possible parses, and one more is a mistake.
func TestNetworkSize(t *testing.T) {
	document := func(switches int) []byte {
		var b strings.Builder
		b.WriteString("kind: Network\nname: n\nswitches:\n")
		for i := range switches {
			fmt.Fprintf(&b, "  - {id: %016x, name: s%d, host_ports: [1-48]}\n", i+1, i)
		}
		b.WriteString("links:\n")
		for i := range 3 * switches {
			fmt.Fprintf(&b, "  - {ends: [s%d/%d, s%d/%d]}\n", i%switches, 101+i/switches, (i+1)%switches, 201+i/switches)
		}
		return []byte(b.String())
	}
	set, err := Parse("-", document(program.MaxSwitches))
	if err != nil || len(set.Networks[0].Links) != 3*program.MaxSwitches {
		t.Fatal(err)
	}
	_, err = Parse("-", document(program.MaxSwitches+1))
	if want := "-:3: switches: 1023 switches are listed, and a network has at most 1022: divide it"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestNetworkRoundTrip: every valid network is formatted as a document that parses to the same network.
func TestNetworkRoundTrip(t *testing.T) {
	valid := 0
	rapid.Check(t, func(t *rapid.T) {
		c := drawNetwork(t)
		if len(c.Check()) > 0 {
			t.Skip("not valid") // the generator draws ports twice
		}
		valid++
		checkNetwork(t, c)
	})
	if valid == 0 {
		t.Error("no network was valid: this test checks nothing")
	}
}

func drawNetwork(t *rapid.T) fabric.Config {
	c := fabric.Config{
		Name:          rapid.SampledFrom([]string{"campus", "1", "null", "a.b-c_"}).Draw(t, "name"),
		AcceptUnknown: rapid.Bool().Draw(t, "accept"),
		HostsPerPort:  rapid.IntRange(1, fabric.MaxHostsPerPort).Draw(t, "hosts per port"),
		Sites:         []fabric.Site{{Name: "true"}, {Name: "north", Parent: "true"}},
	}
	name := rapid.OneOf(
		rapid.Map(rapid.OneOf(rapid.Uint32Range(1, uint32(fabric.MaxPort)), rapid.Just(uint32(fabric.Local))), func(n uint32) fabric.PortName { return fabric.PortName{No: fabric.PortNo(n)} }),
		rapid.Map(rapid.StringMatching(`[0-9A-Za-z_][!-~]{0,14}`).Filter(func(s string) bool {
			p, err := fabric.ParsePortName(s)
			return err == nil && p.Name != ""
		}), func(s string) fabric.PortName { return fabric.PortName{Name: s} }),
	)
	numbers := rapid.Custom(func(t *rapid.T) (out []fabric.PortName) {
		first := rapid.Uint32Range(1, 1000).Draw(t, "first")
		for n := range rapid.Uint32Range(1, 5).Draw(t, "count") {
			out = append(out, fabric.PortName{No: fabric.PortNo(first + n)})
		}
		return out
	})
	for i := range rapid.IntRange(1, 4).Draw(t, "switches") {
		s := fabric.SwitchConfig{
			ID:   fabric.DPID(rapid.OneOf(rapid.Just(uint64(i+1)), rapid.Uint64Range(1, 1<<64-1)).Draw(t, "id")),
			Site: rapid.SampledFrom([]string{"", "true", "north"}).Draw(t, "site"),
		}
		if rapid.Bool().Draw(t, "named") {
			s.Name = fmt.Sprintf("s%d", i)
		}
		switch rapid.IntRange(0, 3).Draw(t, "ports") {
		case 0:
			s.HostPorts, s.LinkPorts = numbers.Draw(t, "host ports"), []fabric.PortName{name.Draw(t, "link port")}
		case 1:
			s.LinkPorts = append(numbers.Draw(t, "link ports"), numbers.Draw(t, "more link ports")...)
		case 2:
			s.HostPorts = append([]fabric.PortName{name.Draw(t, "host port")}, numbers.Draw(t, "host ports")...)
		}
		c.Switches = append(c.Switches, s)
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "routers") {
		c.Routers = append(c.Routers, fabric.RouterConfig{
			Name: fmt.Sprintf("r%d", i), Host: rapid.SampledFrom([]string{"agent", "null"}).Draw(t, "agent") + fmt.Sprint(i), Site: rapid.SampledFrom([]string{"", "north"}).Draw(t, "site"),
		})
	}
	ref := rapid.Custom(func(t *rapid.T) fabric.PortRef {
		if len(c.Routers) > 0 && rapid.Bool().Draw(t, "router") {
			return fabric.PortRef{Switch: rapid.SampledFrom(c.Routers).Draw(t, "router").ID(), Port: fabric.PortName{Name: rapid.SampledFrom([]string{"eth0", "eth1", "eth1.7", "0x1", "null"}).Draw(t, "interface")}}
		}
		return fabric.PortRef{Switch: rapid.SampledFrom(c.Switches).Draw(t, "switch").ID, Port: name.Draw(t, "port")}
	})
	for range rapid.IntRange(0, 2).Draw(t, "links") {
		l := fabric.LinkConfig{Ends: [2]fabric.PortRef{ref.Draw(t, "from"), ref.Draw(t, "to")}, Cost: rapid.Uint16Range(1, 1<<16-1).Draw(t, "cost")}
		if rapid.Bool().Draw(t, "capacity") {
			l.Capacity = unit.Rate(rapid.Uint64Range(1, uint64(unit.MaxRate)).Draw(t, "forth"))
			l.Back = unit.Rate(rapid.Uint64Range(0, uint64(unit.MaxRate)).Draw(t, "back"))
		}
		c.Links = append(c.Links, l)
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "hosts") {
		h := fabric.HostConfig{HostID: fabric.HostID{MAC: fabric.MAC{2, 0, 0, 0, 0, byte(i)}, VLAN: rapid.Uint16Range(0, program.MaxHostVLAN).Draw(t, "vlan")}, At: ref.Draw(t, "at")}
		if rapid.Bool().Draw(t, "addresses") {
			h.Name = rapid.SampledFrom([]string{"web1", "null", "0x1"}).Draw(t, "host")
			h.Addrs = []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), netip.AddrFrom16([16]byte{0xfd, 15: byte(i)})}
		}
		if h.At.Switch.IsRouter() {
			h.VLAN, h.Capacity = 0, unit.Rate(rapid.Uint64Range(1, uint64(unit.MaxRate)).Draw(t, "line"))
		}
		c.Hosts = append(c.Hosts, h)
	}
	for i := range rapid.Uint16Range(1, 3).Draw(t, "listeners") {
		at := rapid.SampledFrom([]netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified(), netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("fd00::1")}).Draw(t, "address")
		c.Listen = append(c.Listen, fabric.Listener{Address: netip.AddrPortFrom(at, 6653+i), TLS: rapid.Bool().Draw(t, "tls")})
	}
	for range rapid.IntRange(0, 2).Draw(t, "trusted") {
		c.Trust = append(c.Trust, ref.Draw(t, "trust"))
	}
	return c
}

// One mistake in a network is one error, also if other keys refer to it.
func TestNetworkFollowing(t *testing.T) {
	const rest = "links: [{ends: [s1/1, s2/1], capacity: 1Gbit}]\nhosts: [{mac: 02:00:00:00:00:01, at: s1/2}]\ntrust: [s1/3, s2/3]\n"
	for _, text := range []string{
		"switches: [{id: x, name: s1}, {id: 2, name: s2}]\n" + rest,
		"switches: [{id: 1, name: s 1}, {id: 2, name: s2}]\n" + rest,
		"switches: [{id: 1, nam: s1}, {id: 2, name: s2}]\n" + rest,
		"switches: [{id: 1, name: s1}, s2]\n" + rest,
		"swtches: [{id: 1, name: s1}, {id: 2, name: s2}]\n" + rest,
		"switches: [{id: 1, name: s1}]\nrouters: [{name: s2, hots: x}]\nlinks: [{ends: [s1/1, s2/eth1], capacity: 1Gbit}]\nhosts: [{mac: 02:00:00:00:00:01, at: s1/2}]\n",
		"routrs: [{name: s1}, {name: s2}]\nlinks: [{ends: [s1/eth1, s2/eth1], capacity: 1Gbit}]\nhosts: [{mac: 02:00:00:00:00:01, at: s1/eth2, capacity: 1Gbit}]\n",
		"routers: [{nam: s1}, {name: s2}]\nlinks: [{ends: [s1/eth1, s2/eth1], capacity: 1Gbit}]\nhosts: [{mac: 02:00:00:00:00:01, at: s1/eth2, capacity: 1Gbit}]\n",
		"routers: [{name: s1}, {name: s2}]\nlinks: [{ends: [s1/eth1, s2/eth1], capacity: 1Gbit}]\nhosts: [{mac: 02:00:00:00:00:01, at: s1/eth2, capacity: x}]\n",
		"sites: [{nam: north}]\nswitches: [{id: 1, name: s1, site: north}, {id: 2, name: s2}]\n" + rest,
		"switches: [{id: 1, name: s1, host_ports: [x y]}, {id: 2, name: s2}]\n" + rest,
		"listen: [{address: x}]\nswitches: [{id: 1, name: s1}, {id: 2, name: s2}]\n" + rest,
		"hosts_per_port: many\nswitches: [{id: 1, name: s1}, {id: 2, name: s2}]\n" + rest,
	} {
		_, err := Parse("-", []byte("kind: Network\nname: n\n"+text))
		var mistakes Errors
		if !errors.As(err, &mistakes) || len(mistakes) != 1 {
			t.Errorf("%s: %v, want one mistake", text, err)
		}
	}
}
