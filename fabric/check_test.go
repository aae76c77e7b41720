package fabric

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"headgate.dev/headgate/unit"
)

// TestNewRefuses: every mistake is found at its field, with the object and the remedy.
func TestNewRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		mistake func(*builder)
		field   string
		text    string
	}{
		"switch without id":     {func(b *builder) { b.Switches[1].ID = 0 }, "switches[1].id", "switch s2 has no datapath id: write"},
		"two switches of an id": {func(b *builder) { b.Switches[1].ID = 1 }, "switches[1].id", "switches s1 and s2 have the same datapath id 0000000000000001: give"},
		"two of a name":         {func(b *builder) { b.Switches[1].Name = "s1" }, "switches[1].name", "have the same name s1: rename one"},
		"unknown site":          {func(b *builder) { b.Switches[1].Site = "attic" }, "switches[1].site", "switch s2 is in site attic, which does not exist: add it"},
		"port 0":                {func(b *builder) { b.Switches[1].Ports[2].No = 0 }, "switches[1].ports[2].no", "switch s2 has a port with number 0: write 1 to"},
		"reserved port":         {func(b *builder) { b.Switches[1].Ports[2].No = MaxPort + 1 }, "switches[1].ports[2].no", "write 1 to 4294967040"},
		"port twice":            {func(b *builder) { b.Switches[1].Ports[2].No = 2 }, "switches[1].ports[2].no", "switch s2 has port 2 twice: remove one"},
		"port name twice":       {func(b *builder) { b.Switches[1].Ports[2].Name = "eth1" }, "switches[1].ports[2].name", "ports 1 and 3 of switch s2 have the same name eth1: rename one"},
		"link of no switch":     {func(b *builder) { b.Links[0].To.Switch = 9 }, "links[0].to", "switch 0000000000000009 does not exist: add it"},
		"link of no port":       {func(b *builder) { b.Links[0].From.Port = 9 }, "links[0].from", "link s1/9 -> s2/1: switch s1 has no port 9: correct"},
		"link to itself":        {func(b *builder) { b.Links[0].To = PortID{1, 2} }, "links[0].to", "link s1/1 -> s1/2 begins and ends at one switch: connect two"},
		"capacity 0":            {func(b *builder) { b.Links[1].Capacity = 0 }, "links[1].capacity", "link s2/1 -> s1/1 has a capacity of 0: write its rate"},
		"capacity too high":     {func(b *builder) { b.Links[1].Capacity = unit.MaxRate + 1 }, "links[1].capacity", "write at most 10Tbit"},
		"cost 0":                {func(b *builder) { b.Links[1].Cost = 0 }, "links[1].cost", "has a cost of 0: write 1 to 65535"},
		"link twice":            {func(b *builder) { b.Links = append(b.Links, b.Links[0]) }, "links[4]", "link s1/1 -> s2/1 is listed twice: remove one"},
		"port of two links": {func(b *builder) {
			b.Links = append(b.Links, Link{LinkID{PortID{1, 1}, PortID{2, 3}}, unit.Gbit, Configured, 1, 0, 0})
		}, "links[4]", "port s1/1 has links to s2/1 and to s2/3: a port has one cable; remove one"},
		"port of an arriving and a leaving link": {func(b *builder) { b.Links[1].To = PortID{1, 2} }, "links[1]", "port s2/1 has links to s1/1 and to s1/2"},
		"site without name":                      {func(b *builder) { b.Sites[0].Name = "" }, "sites[0].name", "site 1 has no name: add one"},
		"site twice":                             {func(b *builder) { b.Sites[1].Name = "campus" }, "sites[1].name", "site campus is listed twice: remove one"},
		"site in no site":                        {func(b *builder) { b.Sites[1].Parent = "town" }, "sites[1].parent", "site lab is in site town, which does not exist"},
		"sites in a loop":                        {func(b *builder) { b.Sites[0].Parent = "rack" }, "sites[0].parent", "sites form a loop: campus in rack in lab in campus: remove"},
		"site in a loop that it is not part of": {func(b *builder) {
			b.Sites[1].Parent = "lab"
			b.Sites = []Site{b.Sites[2], b.Sites[1], b.Sites[0]}
		}, "sites[1].parent", "sites form a loop: lab in lab: remove"},
		"site in itself":          {func(b *builder) { b.Sites[2].Parent = "rack" }, "sites[2].parent", "sites form a loop: rack in rack"},
		"group MAC":               {func(b *builder) { b.Hosts[0].MAC[0] = 1 }, "hosts[0].mac", "its first octet must be even"},
		"MAC 0":                   {func(b *builder) { b.Hosts[0].MAC = MAC{} }, "hosts[0].mac", "the MAC must not be 0"},
		"VLAN 4095":               {func(b *builder) { b.Hosts[0].VLAN = 4095 }, "hosts[0].vlan", "is in VLAN 4095: write 1 to 4094"},
		"host twice":              {func(b *builder) { b.Hosts[1].HostID = b.Hosts[0].HostID }, "hosts[1].mac", "host 02:00:00:00:00:01 is listed twice"},
		"host at no port":         {func(b *builder) { b.Hosts[0].At.Port = 9 }, "hosts[0].at", "switch s1 has no port 9"},
		"host at a link":          {func(b *builder) { b.Hosts[0].At.Port = 1 }, "hosts[0].at", "is at port s1/1, which has a link to s2/1: a port with a link has no hosts"},
		"address of no host":      {func(b *builder) { b.Hosts[0].Addrs[0] = netip.MustParseAddr("224.0.0.1") }, "hosts[0].addresses", "has the address 224.0.0.1, which no host can have"},
		"address twice at a host": {func(b *builder) { b.Hosts[0].Addrs = append(b.Hosts[0].Addrs, b.Hosts[0].Addrs...) }, "hosts[0].addresses", "host 02:00:00:00:00:01 has the address 10.0.0.1 twice: remove one"},
		"address twice":           {func(b *builder) { b.Hosts[1].Addrs = b.Hosts[0].Addrs }, "hosts[1].addresses", "hosts 02:00:00:00:00:01 and 02:00:00:00:00:02 have the same address 10.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			b := smallNetwork()
			c.mistake(b)
			top, err := New(b.Parts)
			if err == nil || top != nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %q, want %q", err, c.text)
			}
			for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
				var invalid *Invalid
				if !errors.As(e, &invalid) {
					t.Errorf("%v has no field", e)
				} else if strings.Contains(invalid.Problem, c.text) && invalid.Field != c.field {
					t.Errorf("the field is %s, want %s", invalid.Field, c.field)
				}
			}
		})
	}
}

// smallNetwork has three switches in a row, three sites and two hosts.
func smallNetwork() *builder {
	b := switches(3)
	b.cable(1, 2, 1)
	b.cable(2, 3, 2)
	for id := range DPID(3) {
		b.port(id + 1)
	}
	b.Sites = []Site{{"campus", ""}, {"lab", "campus"}, {"rack", "lab"}}
	b.Switches[0].Site = "rack"
	for i, at := range []PortID{{1, 2}, {3, 2}} {
		mac := MAC{2, 0, 0, 0, 0, byte(i + 1)}
		b.Hosts = append(b.Hosts, Host{HostID: HostID{MAC: mac}, Addrs: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})}, At: at, Learned: FromARP})
	}
	return b
}

// TestNewFindsAllMistakes: mistakes do not hide each other, and one mistake is one error.
func TestNewFindsAllMistakes(t *testing.T) {
	b := smallNetwork()
	b.Links[0].Capacity = 0
	b.Links[2].Cost = 0
	b.Sites[0].Parent = "rack"
	b.Hosts[0].At.Port = 9
	_, err := New(b.Parts)
	if n := len(err.(interface{ Unwrap() []error }).Unwrap()); n != 4 {
		t.Errorf("%d errors, want 4: %v", n, err)
	}
}

func TestLookups(t *testing.T) {
	b := smallNetwork()
	b.Switches[2].Ports[0].State = Blocked
	top := b.topology(t)
	if s, ok := top.SwitchNamed("s2"); !ok || s.ID != 2 {
		t.Errorf("s2: %v %v", s, ok)
	}
	if _, ok := top.SwitchNamed(""); ok {
		t.Error("there is a switch without name")
	}
	first, blocked := b.Links[0].LinkID, b.Links[2].LinkID
	if !top.Usable(first) || top.Usable(blocked) || top.Usable(blocked.Reverse()) || top.Usable(LinkID{first.From, blocked.To}) {
		t.Error("usable links are those between ports that are up")
	}
	if h, ok := top.HostWith(netip.MustParseAddr("10.0.0.2"), 0); !ok || h.At != (PortID{3, 2}) {
		t.Errorf("10.0.0.2: %v %v", h, ok)
	}
	if h, ok := top.HostWith(netip.MustParseAddr("10.0.0.2"), 7); ok {
		t.Errorf("10.0.0.2 in VLAN 7: %v", h)
	}
	if hosts := top.HostsAt(PortID{1, 2}); len(hosts) != 1 || hosts[0].MAC != (MAC{2, 0, 0, 0, 0, 1}) {
		t.Errorf("hosts at s1/2: %v", hosts)
	}
	if !top.CarriesLink(PortID{1, 1}) || top.CarriesLink(PortID{1, 2}) {
		t.Error("s1/1 carries a link, and s1/2 does not")
	}
	if got, want := top.PortLabel(first.From), "s1/1 (eth1)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	b.Switches[0].Name = "changed later"
	if top.SwitchLabel(1) != "s1" {
		t.Error("the topology shares memory with the parts")
	}
}

func TestCapacity(t *testing.T) {
	for _, c := range []struct {
		configured, measured, reported, want unit.Rate
		source                               CapacitySource
	}{{3, 2, 1, 2, Measured}, {3, 4, 1, 3, Configured}, {3, 0, 1, 3, Configured}, {0, 2, 0, 2, Measured}, {0, 2, 3, 2, Measured}, {0, 2, 1, 1, Reported}, {0, 0, 1, 1, Reported}, {0, 0, 0, 0, Reported}} {
		if got, source := Capacity(c.configured, c.measured, c.reported); got != c.want || source != c.source {
			t.Errorf("%+v: %v %v", c, got, source)
		}
	}
}
