package fabric

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/unit"
)

// smallConfig has two switches with a link, two host ports and two hosts.
func smallConfig() Config {
	return Config{
		Name:  "campus",
		Sites: []Site{{"campus", ""}, {"north", "campus"}},
		Switches: []SwitchConfig{
			{ID: 1, Name: "s1", Site: "north", HostPorts: []PortName{{No: 1}, {Name: "eth2"}}, LinkPorts: []PortName{{No: 3}}},
			{ID: 2, HostPorts: []PortName{{No: 1}}},
		},
		Links: []LinkConfig{{Ends: [2]PortRef{{1, PortName{No: 3}}, {2, PortName{Name: "up"}}}, Capacity: unit.Gbit, Cost: 1}},
		Hosts: []HostConfig{
			{HostID: HostID{MAC{2, 0, 0, 0, 0, 1}, 7}, Name: "web1", Addrs: []netip.Addr{netip.MustParseAddr("10.0.0.1")}, At: PortRef{1, PortName{No: 1}}},
			{HostID: HostID{MAC{2, 0, 0, 0, 0, 2}, 7}, At: PortRef{2, PortName{No: Local}}},
		},
		Listen:       []Listener{{netip.MustParseAddrPort("0.0.0.0:6653"), true}},
		Trust:        []PortRef{{1, PortName{No: 9}}},
		HostsPerPort: DefaultHostsPerPort,
	}
}

// TestConfigCheck: every mistake is found at its key, and one mistake is one problem.
func TestConfigCheck(t *testing.T) {
	if wrong := smallConfig().Check(); wrong != nil {
		t.Fatalf("without a mistake: %v", wrong)
	}
	for name, c := range map[string]struct {
		mistake func(*Config)
		field   string
		text    string
	}{
		"no name":                {func(c *Config) { c.Name = "" }, "name", "the network has no name: write"},
		"no switch":              {func(c *Config) { *c = Config{Name: "n", Listen: c.Listen, HostsPerPort: 1} }, "switches", "no switch may connect, and there is no router: list switches or routers, or write unknown_switches: accept"},
		"two switches of an id":  {func(c *Config) { c.Switches = append(c.Switches, SwitchConfig{ID: 2, Name: "s3"}) }, "switches[2].id", "have the same datapath id 0000000000000002"},
		"two of a name":          {func(c *Config) { c.Switches[1].Name = "s1" }, "switches[1].name", "have the same name s1: rename one"},
		"unknown site":           {func(c *Config) { c.Switches[1].Site = "attic" }, "switches[1].site", "is in site attic, which does not exist"},
		"loop of sites":          {func(c *Config) { c.Sites[0].Parent = "north" }, "sites[0].parent", "sites form a loop: campus in north in campus"},
		"host port twice":        {func(c *Config) { c.Switches[0].HostPorts[1] = PortName{No: 1} }, "switches[0].host_ports", "port s1/1 is listed twice"},
		"link port twice":        {func(c *Config) { c.Switches[0].LinkPorts = append(c.Switches[0].LinkPorts, PortName{No: 3}) }, "switches[0].link_ports", "port s1/3 is listed twice"},
		"host and link port":     {func(c *Config) { c.Switches[0].LinkPorts[0] = PortName{Name: "eth2"} }, "switches[0].link_ports", "port s1/eth2 is in host_ports too"},
		"port 0":                 {func(c *Config) { c.Switches[1].HostPorts[0] = PortName{} }, "switches[1].host_ports", "0 is not a port: write"},
		"number and name":        {func(c *Config) { c.Trust[0].Port.Name = "x" }, "trust[0]", "x is not a port"},
		"link of no switch":      {func(c *Config) { c.Links[0].Ends[1].Switch = 9 }, "links[0].ends[1]", "switch 0000000000000009 does not exist: add it"},
		"link to its own switch": {func(c *Config) { c.Links[0].Ends[1].Switch = 1 }, "links[0].ends[1]", "link s1/3 - s1/up begins and ends at one switch"},
		"link to itself":         {func(c *Config) { c.Links[0].Ends[1] = c.Links[0].Ends[0] }, "links[0].ends[1]", "begins and ends at one switch"},
		"link twice": {func(c *Config) {
			l := c.Links[0]
			l.Ends[0], l.Ends[1] = l.Ends[1], l.Ends[0]
			c.Links = append(c.Links, l)
		}, "links[1]", "link 0000000000000002/up - s1/3 is listed twice"},
		"port of two links": {func(c *Config) {
			c.Links = append(c.Links, LinkConfig{Ends: [2]PortRef{{1, PortName{No: 3}}, {2, PortName{No: 4}}}, Cost: 1})
		}, "links[1].ends[0]", "port s1/3 has links to 0000000000000002/up and to 0000000000000002/4: a port has one cable"},
		"link at a host port":     {func(c *Config) { c.Links[0].Ends[1].Port = PortName{No: 1} }, "links[0].ends[1]", "ends at port 0000000000000002/1, which is in host_ports"},
		"capacity too high":       {func(c *Config) { c.Links[0].Capacity = unit.MaxRate + 1 }, "links[0].capacity", "write at most 10Tbit"},
		"back too high":           {func(c *Config) { c.Links[0].Back = unit.MaxRate + 1 }, "links[0].back", "write at most 10Tbit"},
		"back alone":              {func(c *Config) { c.Links[0].Capacity, c.Links[0].Back = 0, 1 }, "links[0].back", "write capacity too"},
		"cost 0":                  {func(c *Config) { c.Links[0].Cost = 0 }, "links[0].cost", "has a cost of 0: write 1 to 65535"},
		"trusted port twice":      {func(c *Config) { c.Trust = append(c.Trust, c.Trust[0]) }, "trust[1]", "port s1/9 is listed twice"},
		"trusted port of a link":  {func(c *Config) { c.Trust[0].Port.No = 3 }, "trust[0]", "trusted port s1/3 has a link to 0000000000000002/up: a port with a link has no hosts"},
		"trusted link port":       {func(c *Config) { c.Switches[0].LinkPorts = []PortName{{No: 9}} }, "trust[0]", "trusted port s1/9 is in link_ports"},
		"host at a link":          {func(c *Config) { c.Hosts[0].At.Port.No = 3 }, "hosts[0].at", "host web1 (02:00:00:00:00:01 in VLAN 7) is at port s1/3, which has a link to"},
		"host at a link port":     {func(c *Config) { c.Hosts[0].At.Port.No, c.Links = 3, nil }, "hosts[0].at", "is at port s1/3, which is in link_ports"},
		"host at no switch":       {func(c *Config) { c.Hosts[0].At.Switch = 9 }, "hosts[0].at", "switch 0000000000000009 does not exist"},
		"host twice":              {func(c *Config) { c.Hosts[1].HostID = c.Hosts[0].HostID }, "hosts[1].mac", "is listed twice"},
		"address twice":           {func(c *Config) { c.Hosts[1].Addrs = c.Hosts[0].Addrs }, "hosts[1].addresses", "have the same address 10.0.0.1"},
		"multicast MAC":           {func(c *Config) { c.Hosts[1].MAC[0] = 3 }, "hosts[1].mac", "its first octet must be even"},
		"no listener":             {func(c *Config) { c.Listen = nil }, "listen", "listens at no address: write"},
		"listener without a port": {func(c *Config) { c.Listen[0] = Listener{} }, "listen[0].address", "listener 1 has no address and port"},
		"two listeners": {func(c *Config) {
			c.Listen = append(c.Listen, Listener{netip.MustParseAddrPort("192.0.2.1:6653"), true})
		}, "listen[1].address", "192.0.2.1:6653 is in use by the listener at 0.0.0.0:6653"},
		"no hosts at a port": {func(c *Config) { c.HostsPerPort = 0 }, "hosts_per_port", "cannot have 0 hosts: write 1 to 10000"},
		"too many at a port": {func(c *Config) { c.HostsPerPort = 10_001 }, "hosts_per_port", "cannot have 10001 hosts"},
	} {
		t.Run(name, func(t *testing.T) {
			config := smallConfig()
			c.mistake(&config)
			wrong := config.Check()
			if len(wrong) != 1 || wrong[0].Field != c.field || !strings.Contains(wrong[0].Problem, c.text) {
				t.Errorf("%v, want %s: %s", problems(wrong), c.field, c.text)
			}
		})
	}
}

func problems(all []*Invalid) (out []string) {
	for _, one := range all {
		out = append(out, one.Field+": "+one.Problem)
	}
	return out
}

// TestListenersOverlap: two listeners that the kernel refuses are a mistake, and no others.
func TestListenersOverlap(t *testing.T) {
	for pair, want := range map[[2]string]bool{
		{"0.0.0.0:1", "0.0.0.0:1"}: true, {"0.0.0.0:1", "10.0.0.1:1"}: true, {"[::]:1", "10.0.0.1:1"}: true, {"[::]:1", "0.0.0.0:1"}: true,
		{"0.0.0.0:1", "[fd00::1]:1"}: false, {"0.0.0.0:1", "0.0.0.0:2"}: false, {"10.0.0.1:1", "10.0.0.2:1"}: false,
	} {
		a, b := netip.MustParseAddrPort(pair[0]), netip.MustParseAddrPort(pair[1])
		if overlap(a, b) != want || overlap(b, a) != want {
			t.Errorf("%s and %s: %v, want %v", a, b, overlap(a, b), want)
		}
	}
}

func TestParsePortName(t *testing.T) {
	for in, want := range map[string]PortName{
		"1": {No: 1}, "0007": {No: 7}, "4294967040": {No: MaxPort}, "LOCAL": {No: Local}, "local": {No: Local}, "4294967294": {No: Local},
		"eth3": {Name: "eth3"}, "1/1/2": {Name: "1/1/2"}, "ge-0/0/1.0": {Name: "ge-0/0/1.0"},
	} {
		if got, err := ParsePortName(in); err != nil || got != want {
			t.Errorf("%s: %+v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "0", "4294967041", "99999999999999999999", "-1", "eth 1", "é", "sixteen-letters-", "1-46"} {
		if got, err := ParsePortName(in); err == nil || !strings.Contains(err.Error(), "write ") {
			t.Errorf("%q: %+v, %v", in, got, err)
		}
	}
}

func FuzzParsePortName(f *testing.F) {
	for _, s := range []string{"1", "LOCAL", "eth3", "ge-0/0/1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePortName(s)
		if err != nil {
			return
		}
		if !p.valid() {
			t.Errorf("%q is read as %+v, which is not valid", s, p)
		}
		if again, err := ParsePortName(p.String()); err != nil || again != p {
			t.Errorf("%q is read as %+v, printed as %s, and read as %+v, %v", s, p, p, again, err)
		}
	})
}

func TestAccepts(t *testing.T) {
	c := smallConfig()
	if !c.Accepts(1) || c.Accepts(3) {
		t.Error("switch 1 is listed, and 3 is not")
	}
	if c.AcceptUnknown = true; !c.Accepts(3) {
		t.Error("unknown switches are accepted")
	}
}

// TestBind: names become numbers where the switch is connected, and the configuration itself does not change.
func TestBind(t *testing.T) {
	c := smallConfig()
	bound, wrong := c.Bind(map[DPID][]Port{1: {{No: 1}, {No: 2, Name: "eth2"}, {No: 3}, {No: 9}}})
	if wrong != nil {
		t.Fatal(problems(wrong))
	}
	if !reflect.DeepEqual(c, smallConfig()) {
		t.Error("the configuration has changed")
	}
	if got := bound.Switches[0].HostPorts; !slices.Equal(got, []PortName{{No: 1}, {No: 2}}) {
		t.Errorf("host ports %v", got)
	}
	if id, known := bound.Links[0].ID(); known {
		t.Errorf("link %v, although its second switch has not reported its ports", id)
	}
	bound, wrong = bound.Bind(map[DPID][]Port{2: {{No: 1}, {No: Local}, {No: 5, Name: "up"}}})
	if id, known := bound.Links[0].ID(); wrong != nil || !known || id != (LinkID{PortID{1, 3}, PortID{2, 5}}) {
		t.Errorf("link %v %v, %v", id, known, problems(wrong))
	}
	if h, known := bound.Hosts[1].Host(); !known || h.At != (PortID{2, Local}) || h.Learned != FromConfiguration {
		t.Errorf("host %+v, %v", h, known)
	}
}

// TestBindMistakes: ports that do not exist, and ports that are written by number and by name.
func TestBindMistakes(t *testing.T) {
	c, ports := smallConfig(), map[DPID][]Port{
		1: {{No: 1, Name: "eth2"}, {No: 3, Name: "3"}},
		2: {{No: 1, Name: "up"}},
	}
	_, twice := c.Bind(ports)
	var wrong []*Invalid
	for _, id := range []DPID{1, 2} {
		for _, w := range c.WrittenPorts()[id] {
			if m := c.MissingPort(w, ports[id]); m != nil {
				wrong = append(wrong, m)
			}
		}
	}
	wrong = append(wrong, twice...)
	want := []string{
		"trust[0]: port s1/9 does not exist: the switch has 1 (eth2), 3; correct the port, or add it to the switch",
		"hosts[1].at: port 0000000000000002/LOCAL does not exist: the switch has 1 (up); correct the port, or add it to the switch",
		"switches[0].host_ports: port s1/1 is listed twice: remove one",
		"links[0].ends[1]: link s1/3 - 0000000000000002/1 ends at port 0000000000000002/1, which is in host_ports: correct the port, or remove it from host_ports",
	}
	if got := problems(wrong); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	many := make([]Port, 10)
	for i := range many {
		many[i].No = PortNo(i + 1)
	}
	if got := list(many); got != "1, 2, 3, 4, 5, 6, 7, 8, 2 more" || list(nil) != "no ports" {
		t.Errorf("%s; %s", got, list(nil))
	}
}

// Admit refuses what the configuration does not accept, and an id of 0 in any case.
func TestAdmit(t *testing.T) {
	listed := &Config{Switches: []SwitchConfig{{ID: 1}}}
	for _, c := range []struct {
		config *Config
		id     DPID
		ok     bool
	}{
		{nil, 2, true}, {nil, 0, false}, {listed, 1, true}, {listed, 2, false}, {&Config{AcceptUnknown: true}, 2, true}, {&Config{AcceptUnknown: true}, 0, false},
	} {
		if err := c.config.Admit(c.id); (err == nil) != c.ok {
			t.Errorf("%+v, switch %v: %v", c.config, c.id, err)
		}
	}
}
