package fabric

import (
	"net/netip"
	"slices"
	"testing"

	"headgate.dev/headgate/unit"

	"pgregory.net/rapid"
)

func TestDiff(t *testing.T) {
	from := smallNetwork()
	for name, c := range map[string]struct {
		change func(*builder)
		want   []string // kind: text
	}{
		"nothing":  {func(*builder) {}, nil},
		"switch":   {func(b *builder) { b.Switches = append(b.Switches, Switch{ID: 4, Name: "s4"}) }, []string{"switch-added: switch s4 was added, with 0 ports"}},
		"site":     {func(b *builder) { b.Switches[0].Site = "" }, []string{"switch-moved: switch s1 moved from site rack to no site"}},
		"name":     {func(b *builder) { b.Switches[0].Name = "core" }, []string{`switch-changed: switch core changed: its name was "s1" and is "core"`}},
		"meters":   {func(b *builder) { b.Switches[0].Capabilities = Capabilities{1, true, 5, false} }, []string{"switch-changed: switch s1 changed: its capabilities were (0 tables, 0 meters) and are (1 table, 5 meters, fast failover)"}},
		"port":     {func(b *builder) { b.port(3) }, []string{"port-added: port s3/3 (eth3) was added"}},
		"no port":  {func(b *builder) { b.Switches[1].Ports = b.Switches[1].Ports[:2] }, []string{"port-removed: port s2/3 (eth3) was removed"}},
		"down":     {func(b *builder) { b.Switches[0].Ports[0].State = Down }, []string{"port-changed: port s1/1 (eth1) changed: it was up and is down"}},
		"speed":    {func(b *builder) { b.Switches[0].Ports[0].Speed = 0 }, []string{"port-changed: port s1/1 (eth1) changed: its speed was 1Gbit and is 0bit"}},
		"capacity": {func(b *builder) { b.Links[0].Capacity, b.Links[0].Source = 2*unit.Gbit, Measured }, []string{"link-changed: link s1/1 (eth1) -> s2/1 (eth1) changed: it had 1Gbit (configured) at cost 1, and has 2Gbit (measured) at cost 1"}},
		"no link":  {func(b *builder) { b.Links = b.Links[1:] }, []string{"link-removed: link s1/1 (eth1) -> s2/1 (eth1) was removed"}},
		"cable moved": {func(b *builder) { b.Links[0].To.Port, b.Links[1].From.Port = 3, 3 }, []string{
			"link-moved: link s1/1 (eth1) -> s2/1 (eth1) moved, and is s1/1 (eth1) -> s2/3 (eth3) now",
			"link-moved: link s2/1 (eth1) -> s1/1 (eth1) moved, and is s2/3 (eth3) -> s1/1 (eth1) now"}},
		"host moved": {func(b *builder) { b.Hosts[0].At = PortID{2, 3} }, []string{"host-moved: host 02:00:00:00:00:01 moved from s1/2 (eth2) to s2/3 (eth3)"}},
		"host changed": {func(b *builder) {
			b.Hosts[0].Addrs, b.Hosts[0].Learned, b.Hosts[0].Name = nil, FromDHCP, "h1"
		}, []string{`host-changed: host h1 (02:00:00:00:00:01) changed: its name was "" and is "h1", its addresses were 10.0.0.1 and are no address, it was learned by arp and now by dhcp`}},
		"no host": {func(b *builder) { b.Hosts = b.Hosts[:1] }, []string{"host-removed: host 02:00:00:00:00:02 at s3/2 (eth2) was removed"}},
		"host": {func(b *builder) {
			b.Hosts = append(b.Hosts, Host{HostID: HostID{MAC{2}, 7}, At: PortID{2, 3}, Addrs: []netip.Addr{netip.MustParseAddr("fe80::1"), netip.MustParseAddr("10.0.0.9")}})
		}, []string{"host-added: host 02:00:00:00:00:00 in VLAN 7 with 10.0.0.9, fe80::1 was added at s2/3 (eth3)"}},
	} {
		t.Run(name, func(t *testing.T) {
			to := &builder{clone(from.Parts)}
			c.change(to)
			var got []string
			for _, e := range Diff(from.topology(t), to.topology(t)) {
				got = append(got, string(e.Kind)+": "+e.Text)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestDiffIsComplete: a diff is empty only between equal networks, names each added and removed object once, and the
// way back has the same number of events of the opposite kind.
func TestDiffIsComplete(t *testing.T) {
	opposite := map[EventKind]EventKind{SwitchAdded: SwitchRemoved, PortAdded: PortRemoved, LinkAdded: LinkRemoved, HostAdded: HostRemoved}
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawParts(t, 5, 6).topology(t), drawParts(t, 5, 6).topology(t)
		if events := Diff(a, a); len(events) > 0 {
			t.Fatalf("a network differs from itself: %+v", events)
		}
		there, back := map[EventKind]int{}, map[EventKind]int{}
		for _, e := range Diff(a, b) {
			if there[e.Kind]++; e.Text == "" {
				t.Fatalf("%+v has no text", e)
			}
		}
		for _, e := range Diff(b, a) {
			back[e.Kind]++
		}
		for added, removed := range opposite {
			if there[added] != back[removed] || there[removed] != back[added] {
				t.Fatalf("%v there, and %v back", there, back)
			}
		}
		newLinks := 0
		for _, l := range b.Links() {
			if _, ok := a.Link(l.LinkID); !ok {
				newLinks++
			}
		}
		if there[LinkAdded]+there[LinkMoved] != newLinks {
			t.Fatalf("%d new links: %v", newLinks, there)
		}
	})
}
