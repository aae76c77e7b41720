package fabric

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/unit"
)

func iface(router, name string) PortRef { return PortRef{RouterID(router), PortName{Name: name}} }

// routedConfig is a network of three routers in a ring, each with a host, and no switch.
//
//	h1 -- r1 -- r2 -- h2
//	        \   /
//	         r3 -- h3
func routedConfig() Config {
	host := func(n byte, capacity unit.Rate) HostConfig {
		return HostConfig{
			HostID: HostID{MAC: MAC{2, 0, 0, 0, 0, n}}, Name: fmt.Sprintf("h%d", n), Addrs: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, n, 1})},
			At: iface(fmt.Sprintf("r%d", n), "eth0"), Capacity: capacity,
		}
	}
	return Config{
		Name: "wan", HostsPerPort: DefaultHostsPerPort,
		Sites:   []Site{{Name: "north"}},
		Routers: []RouterConfig{{"r1", "agent1", "north"}, {"r2", "r2", ""}, {"r3", "r3", ""}},
		Links: []LinkConfig{
			{Ends: [2]PortRef{iface("r1", "eth1"), iface("r2", "eth1")}, Capacity: unit.Gbit, Back: 500 * unit.Mbit, Cost: 1},
			{Ends: [2]PortRef{iface("r1", "eth2"), iface("r3", "eth2")}, Capacity: unit.Gbit, Cost: 1},
			{Ends: [2]PortRef{iface("r2", "eth2"), iface("r3", "eth1.7")}, Capacity: unit.Gbit, Cost: 1},
		},
		Hosts: []HostConfig{host(1, unit.Gbit), host(2, 2*unit.Gbit), host(3, unit.Gbit)},
	}
}

// mixedConfig has a router at a switch.
//
//	h1 -- r1 -- s1 (-- s2)
func mixedConfig() Config {
	c := routedConfig()
	c.Routers, c.Hosts = c.Routers[:1], c.Hosts[:1]
	c.Switches = []SwitchConfig{{ID: 1, Name: "s1", HostPorts: []PortName{{No: 1}}}, {ID: 2, Name: "s2", LinkPorts: []PortName{{No: 4}}}}
	c.Links = []LinkConfig{{Ends: [2]PortRef{{1, PortName{Name: "eth3"}}, iface("r1", "eth1")}, Capacity: 100 * unit.Mbit, Back: 200 * unit.Mbit, Cost: 5}}
	c.Listen = []Listener{{netip.MustParseAddrPort("0.0.0.0:6653"), true}}
	return c
}

// TestRoutersCheck: every mistake of routers is found at its key, and one mistake is one problem.
func TestRoutersCheck(t *testing.T) {
	for _, c := range []Config{routedConfig(), mixedConfig()} {
		if wrong := c.Check(); wrong != nil {
			t.Fatalf("without a mistake: %v", problems(wrong))
		}
	}
	atHostPort := func(c *Config) { c.Switches[0].HostPorts = []PortName{{Name: "eth3"}} }
	config := mixedConfig()
	if atHostPort(&config); config.Check() != nil {
		t.Errorf("a router can be at a port in host_ports: %v", problems(config.Check()))
	}
	for name, c := range map[string]struct {
		config      func() Config
		mistake     func(*Config)
		field, text string
	}{
		"no name":           {routedConfig, func(c *Config) { c.Routers = append(c.Routers, RouterConfig{Host: "x"}) }, "routers[3].name", "router 4 has no name"},
		"no agent":          {routedConfig, func(c *Config) { c.Routers[0].Host = "" }, "routers[0].host", "router r1 has no agent: write the name of its agent, for example host: r1"},
		"twice":             {routedConfig, func(c *Config) { c.Routers = append(c.Routers, RouterConfig{Name: "r1", Host: "x"}) }, "routers[3].name", "router r1 is listed twice"},
		"agent twice":       {routedConfig, func(c *Config) { c.Routers[1].Host = "agent1" }, "routers[1].host", "routers r1 and r2 have the same agent agent1"},
		"a switch too":      {mixedConfig, func(c *Config) { c.Routers = append(c.Routers, RouterConfig{Name: "s2", Host: "s2"}) }, "routers[1].name", "router s2 is listed as a switch too: remove it from one"},
		"unknown site":      {routedConfig, func(c *Config) { c.Routers[1].Site = "attic" }, "routers[1].site", "router r2 is in site attic, which does not exist"},
		"id of a router":    {mixedConfig, func(c *Config) { c.Switches[1] = SwitchConfig{ID: 0xfffe000000000001} }, "switches[1].id", "is one of those that stand for routers: give the switch one that does not begin with fffe"},
		"interface twice":   {routedConfig, func(c *Config) { c.Links[1].Ends[0] = iface("r1", "eth1") }, "links[1].ends[0]", "port r1/eth1 has links to r2/eth1 and to r3/eth2: a port has one cable"},
		"interface of host": {routedConfig, func(c *Config) { c.Hosts[0].At = iface("r1", "eth1") }, "hosts[0].at", "host h1 (02:00:00:00:00:01) is at port r1/eth1, which has a link to r2/eth1"},
		"a number":          {routedConfig, func(c *Config) { c.Hosts[0].At.Port = PortName{No: 3} }, "hosts[0].at", "3 is not an interface of a router: write its name, for example r1/eth1"},
		"a slash":           {routedConfig, func(c *Config) { c.Hosts[0].At.Port = PortName{Name: "ge-0/0"} }, "hosts[0].at", "ge-0/0 is not an interface of a router"},
		"not listed":        {routedConfig, func(c *Config) { c.Hosts[0].At = iface("r9", "eth0") }, "hosts[0].at", "the router is not listed: add it to routers"},
		"link of one":       {routedConfig, func(c *Config) { c.Links[0].Ends[1] = iface("r1", "eth9") }, "links[0].ends[1]", "link r1/eth1 - r1/eth9 begins and ends at one router"},
		"no capacity":       {routedConfig, func(c *Config) { c.Links[0].Capacity = 0 }, "links[0].capacity", "link r1/eth1 - r2/eth1 has no capacity, which a router does not report"},
		"no capacity mixed": {mixedConfig, func(c *Config) { c.Links[0].Capacity, c.Links[0].Back = 0, 0 }, "links[0].capacity", "link s1/eth3 - r1/eth1 has no capacity"},
		"a link port":       {mixedConfig, func(c *Config) { c.Switches[0].LinkPorts = []PortName{{Name: "eth3"}} }, "links[0].ends[0]", "ends at port s1/eth3, which is in link_ports"},
		"trust":             {routedConfig, func(c *Config) { c.Trust = []PortRef{iface("r1", "eth9")} }, "trust[0]", "trusted port r1/eth9 is of a router"},
		"host no capacity":  {routedConfig, func(c *Config) { c.Hosts[0].Capacity = 0 }, "hosts[0].capacity", "host h1 (02:00:00:00:00:01) is at router interface r1/eth0 without a capacity"},
		"host too fast":     {routedConfig, func(c *Config) { c.Hosts[0].Capacity = unit.MaxRate + 1 }, "hosts[0].capacity", "write at most 10Tbit"},
		"two capacities":    {routedConfig, func(c *Config) { c.Hosts[1].At = c.Hosts[0].At }, "hosts[1].capacity", "has a capacity of 2Gbit, and another host at r1/eth0 one of 1Gbit"},
		"VLAN":              {routedConfig, func(c *Config) { c.Hosts[0].VLAN = 7 }, "hosts[0].vlan", "for example at: r1/eth0.7, and remove vlan"},
		"capacity at switch": {mixedConfig, func(c *Config) {
			c.Hosts = append(c.Hosts, HostConfig{HostID: HostID{MAC: MAC{2, 9}}, At: PortRef{1, PortName{No: 1}}, Capacity: 1})
		}, "hosts[1].capacity", "is at a switch, which reports the speed"},
	} {
		t.Run(name, func(t *testing.T) {
			config := c.config()
			c.mistake(&config)
			wrong := config.Check()
			if len(wrong) != 1 || wrong[0].Field != c.field || !strings.Contains(wrong[0].Problem, c.text) {
				t.Errorf("%v, want %s: %s", problems(wrong), c.field, c.text)
			}
			for _, one := range wrong {
				if strings.Contains(one.Problem, RouterID("r1").String()) {
					t.Errorf("%s shows the identity of a router", one.Problem)
				}
			}
		})
	}
}

// TestRoutedTopology: a network of routers is a topology by its configuration alone, with the labels that were written.
func TestRoutedTopology(t *testing.T) {
	top, err := New(routedConfig().WithRouters(Parts{}))
	if err != nil {
		t.Fatal(err)
	}
	r1, _ := top.SwitchNamed("r1")
	r2, _ := top.SwitchNamed("r2")
	if !r1.IsRouter() || r1.Agent != "agent1" || r1.Site != "north" || len(r1.Ports) != 3 {
		t.Errorf("router %+v", r1)
	}
	path, ok := top.Shortest(r1.ID, r2.ID, Hops, nil)
	if !ok || len(path) != 1 {
		t.Fatalf("path %v", path)
	}
	if from, to := top.PortLabel(path[0].From), top.PortLabel(path[0].To); from != "r1/eth1" || to != "r2/eth1" {
		t.Errorf("from %s to %s", from, to)
	}
	forth, _ := top.Link(path[0])
	back, _ := top.Link(path[0].Reverse())
	if forth.Capacity != unit.Gbit || back.Capacity != 500*unit.Mbit || forth.Source != Configured {
		t.Errorf("%+v, back %+v", forth, back)
	}
	if paths := top.Disjoint(r1.ID, r2.ID, 2, BySwitch, Hops, nil); len(paths) != 2 || top.PortLabel(paths[1][1].From) != "r3/eth1.7" {
		t.Errorf("disjoint paths %v", paths)
	}
	h2, ok := top.HostWith(netip.MustParseAddr("10.0.2.1"), 0)
	if port, _ := top.Port(h2.At); !ok || top.PortLabel(h2.At) != "r2/eth0" || port.Speed != 2*unit.Gbit || top.CarriesLink(h2.At) {
		t.Errorf("host %+v at %s, %+v", h2, top.PortLabel(h2.At), port)
	}
}

// TestMixedTopology: routers join the switches that were found, with what was written of their ports.
func TestMixedTopology(t *testing.T) {
	c := mixedConfig()
	port := func(sw DPID, no PortNo) PortID { return PortID{sw, no} }
	found := Parts{
		Sites: c.Sites,
		Switches: []Switch{
			{ID: 1, Name: "s1", Ports: []Port{{No: 1}, {No: 3, Name: "eth3"}, {No: 4}}},
			{ID: 2, Name: "s2", Ports: []Port{{No: 4}, {No: 5}}},
		},
		Links: []Link{{LinkID: LinkID{port(1, 4), port(2, 4)}, Capacity: 1, Cost: 1}, {LinkID: LinkID{port(2, 4), port(1, 4)}, Capacity: 1, Cost: 1}},
		Hosts: []Host{
			{HostID: HostID{MAC: MAC{2, 7}}, At: port(1, 3)},             // the router's interface
			{HostID: HostID{MAC: MAC{2, 0, 0, 0, 0, 1}}, At: port(1, 1)}, // claims to be h1
			{HostID: HostID{MAC: MAC{2, 8}}, Addrs: []netip.Addr{netip.MustParseAddr("10.0.1.1"), netip.MustParseAddr("10.9.0.1")}, At: port(2, 5)}, // claims its address
		},
	}
	before := fmt.Sprint(found)
	top, err := New(c.WithRouters(found))
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(found) != before {
		t.Error("what was found has changed")
	}
	path, ok := top.Shortest(RouterID("r1"), 2, Hops, nil)
	if !ok || len(path) != 2 || top.PortLabel(path[0].From) != "r1/eth1" || top.PortLabel(path[0].To) != "s1/3 (eth3)" {
		t.Fatalf("path %v", path)
	}
	if l, _ := top.Link(path[0]); l.Capacity != 200*unit.Mbit || l.Cost != 5 {
		t.Errorf("from the router %+v", l)
	}
	if len(top.Hosts()) != 2 || top.Hosts()[0].Name != "h1" || !slices.Equal(top.Hosts()[1].Addrs, []netip.Addr{netip.MustParseAddr("10.9.0.1")}) {
		t.Errorf("hosts %+v", top.Hosts())
	}
	// A link that was found at the port of a router is replaced.
	found.Links[0].From.Port, found.Links[1].To.Port, found.Hosts = 3, 3, nil
	if top, err = New(c.WithRouters(found)); err != nil || len(top.Links()) != 2 {
		t.Errorf("%v", err)
	}
	// Until the switch is found, and has the port, the link is left out.
	for _, found := range []Parts{{}, {Switches: []Switch{{ID: 1, Ports: []Port{{No: 1}}}}}} {
		if top, err = New(c.WithRouters(found)); err != nil || len(top.Links()) != 0 {
			t.Errorf("%v", err)
		}
	}
}

// TestSwitched: those who know switches alone see a router as a trusted port of hosts.
func TestSwitched(t *testing.T) {
	c := mixedConfig()
	got := c.Switched()
	at := PortRef{1, PortName{Name: "eth3"}}
	if len(got.Links)+len(got.Hosts)+len(got.Routers) > 0 || !slices.Equal(got.Trust, []PortRef{at}) || !slices.Equal(got.Switches[0].HostPorts, []PortName{{No: 1}, at.Port}) {
		t.Errorf("%+v", got)
	}
	if !reflect.DeepEqual(c, mixedConfig()) {
		t.Error("the configuration has changed")
	}
	if only := routedConfig().Switched(); len(only.Links)+len(only.Hosts)+len(only.Trust) > 0 {
		t.Errorf("%+v", only)
	}
	if same := smallConfig(); !reflect.DeepEqual(same.Switched(), smallConfig()) {
		t.Error("a network without routers has changed")
	}
}

// TestAdmitRouter: a switch cannot have the identity of a router, even where all switches may connect.
func TestAdmitRouter(t *testing.T) {
	for _, c := range []*Config{nil, {AcceptUnknown: true}} {
		if err := c.Admit(RouterID("r1")); err == nil || !strings.Contains(err.Error(), "does not begin with fffe") {
			t.Errorf("%v", err)
		}
	}
}

// TestRouterIDs: the identities of routers, and the numbers of interfaces, are valid and differ.
func TestRouterIDs(t *testing.T) {
	ids, ports := map[DPID]bool{}, map[PortNo]bool{}
	for i := range MaxRouters {
		id, port := RouterID(fmt.Sprintf("r%d", i)), routerPort(fmt.Sprintf("eth%d", i))
		if !id.IsRouter() || !port.valid() || ids[id] || ports[port] {
			t.Fatalf("router %d has %v, and port %v", i, id, port)
		}
		ids[id], ports[port] = true, true
	}
	// They are stored with reservations, so that they must not change.
	if id, port := RouterID("r1"), routerPort("eth0"); id != 0xfffe82f3e9c695dc || port != 1943587730 || DPID(1).IsRouter() {
		t.Errorf("%#x, port %d", uint64(id), uint32(port))
	}
}
