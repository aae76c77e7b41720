package fabric

import (
	"strings"
	"testing"

	api "headgate.dev/headgate/api/client"
)

// What a lab has is what a controller has to show, and each difference is named.
func TestExpected(t *testing.T) {
	s := ring(3, 2, [2]int{1, 2}) // a second cable between s1 and s2
	want := expectedOf(s.topology(method{}, controllerNode))
	if len(want.Switches) != 3 || len(want.Links) != 8 || len(want.Hosts) != 2 || !want.Hosts[portOf(1, 4)] {
		t.Fatalf("%+v", want)
	}
	if tree := expectedOf(s.topology(method{tree: true}, controllerNode)); len(tree.Links) != 4 {
		t.Errorf("a tree of three switches has %d links", len(tree.Links))
	}
	port := func(id string, no int64) api.NetworkPortID { return api.NetworkPortID{Switch: id, Port: no} }
	n := api.Network{}
	for id := range want.Switches {
		n.Switches = append(n.Switches, api.NetworkSwitch{Id: id, Ports: []api.NetworkPort{{Number: 9, Use: api.PortUndecided}}})
	}
	for l := range want.Links {
		from, to, _ := strings.Cut(l, "->")
		n.Links = append(n.Links, api.NetworkLink{From: port(from[:16], int64(from[17]-'0')), To: port(to[:16], int64(to[17]-'0'))})
	}
	for i, s := range n.Switches {
		for h := range want.Hosts {
			if h[:16] == s.Id {
				n.Switches[i].Ports = append(n.Switches[i].Ports, api.NetworkPort{Number: int64(h[17] - '0'), Use: api.PortToHosts})
			}
		}
	}
	if wrong := want.differs(shownBy(n)); wrong != "" {
		t.Error(wrong)
	}
	n.Links[0].From.Port = 8
	n.Switches[0].Ports[0].Use = api.PortToHosts
	n.Switches = append(n.Switches, api.NetworkSwitch{Id: "0000000000000009"})
	wrong := want.differs(shownBy(n))
	for _, part := range []string{"1 switches do not exist, such as 0000000000000009", "1 links are missing", "1 links do not exist", "1 ports of hosts do not exist"} {
		if !strings.Contains(wrong, part) {
			t.Errorf("%q is not in %q", part, wrong)
		}
	}
}
