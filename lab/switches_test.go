package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Two groups of switches and a link, joined by a router:
//
//	h1 ── s1 ── s2 ── r ── t ── h2
//	            h4 ┘  └── h3
func groups() *Topology {
	link := func(a, b string) LinkSpec { return LinkSpec{Ends: [2]string{a, b}} }
	return &Topology{
		Name:     "groups",
		Nodes:    []NodeSpec{{Name: "h1"}, {Name: "h2"}, {Name: "h3"}, {Name: "h4"}, {Name: "r", Router: true}},
		Switches: []SwitchSpec{{Name: "t"}, {Name: "s1", ID: 0xff}, {Name: "s2"}},
		Links:    []LinkSpec{link("r", "h3"), link("h1", "s1"), link("s1", "s2"), link("s2", "r"), link("r", "t"), link("h2", "t"), link("h4", "s2")},
	}
}

// Nodes at connected switches share a network, in which a link may name the address of its node.
func TestSwitchAddresses(t *testing.T) {
	top := groups()
	list := func() (out []string) {
		for _, d := range top.Devices() {
			if d.Port == 0 {
				out = append(out, fmt.Sprintf("%s:%s %v %v", d.Node, d.Device, d.IPv4, d.IPv6))
			} else {
				out = append(out, fmt.Sprintf("%s %s:%s %d", d.DatapathID, d.Node, d.Device, d.Port))
			}
		}
		return out
	}
	want := []string{
		"r:h3 10.0.0.1/24 fd00::1/64", "h3:r 10.0.0.2/24 fd00::2/64",
		"h1:s1 10.129.0.1/16 fd00:0:1:1::1/64", "00000000000000ff s1:s1-h1 1",
		"00000000000000ff s1:s1-s2 2", "0000000000000003 s2:s2-s1 1",
		"0000000000000003 s2:s2-r 2", "r:s2 10.129.0.2/16 fd00:0:1:1::2/64",
		"r:t 10.128.0.1/16 fd00:0:1::1/64", "0000000000000001 t:t-r 1",
		"h2:t 10.128.0.2/16 fd00:0:1::2/64", "0000000000000001 t:t-h2 2",
		"h4:s2 10.129.0.3/16 fd00:0:1:1::3/64", "0000000000000003 s2:s2-h4 3",
	}
	if got := list(); !slices.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
	top.Links[3].IPv4 = netip.MustParsePrefix("192.0.2.1/28")
	if err := top.Validate(); err != nil {
		t.Error(err)
	}
	got := list()
	for i, part := range map[int]string{2: " 192.0.2.2/28 ", 7: " 192.0.2.1/28 ", 12: " 192.0.2.3/28 "} {
		if !strings.Contains(got[i], part) {
			t.Errorf("%s has no %s", got[i], part)
		}
	}
}

// Routes lead through the router's address in the network of the switches.
func TestSwitchRoutes(t *testing.T) {
	top := groups()
	a := top.addressing()
	for node, want := range map[string]string{
		"h1": "10.0.0.0/24 by s1 10.129.0.2, 10.128.0.0/16 by s1 10.129.0.2",
		"h2": "10.0.0.0/24 by t 10.128.0.1, 10.129.0.0/16 by t 10.128.0.1",
		"h3": "10.129.0.0/16 by r 10.0.0.1, 10.128.0.0/16 by r 10.0.0.1",
		"r":  "",
	} {
		var got []string
		for _, h := range top.routes(node, a) {
			got = append(got, fmt.Sprintf("%v by %s %v", a.segments[h.Net].v4, top.devices()[h.Via.link][h.Via.end], a.v4[h.Gateway.link][h.Gateway.end].Addr()))
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("routes of %s: %s, want %s", node, s, want)
		}
	}
}

// Whatever the names, the devices in the switches' namespace are different and short enough.
func TestPortDevices(t *testing.T) {
	top := &Topology{
		Nodes:    []NodeSpec{{Name: "b-c"}, {Name: "c"}, {Name: "a-c"}, {Name: "netdev"}},
		Switches: []SwitchSpec{{Name: "a"}, {Name: "a-b"}, {Name: "ovs"}, {Name: "longest-one"}},
		Links: []LinkSpec{
			{Ends: [2]string{"a", "b-c"}}, {Ends: [2]string{"a-b", "c"}}, {Ends: [2]string{"a", "c"}}, {Ends: [2]string{"ovs", "netdev"}},
			{Ends: [2]string{"longest-one", "b-c"}}, {Ends: [2]string{"longest-one", "netdev"}}, {Ends: [2]string{"netdev", "longest-one"}}, {Ends: [2]string{"a", "b-c"}},
		},
	}
	var got []string
	for _, name := range []string{"a", "a-b", "ovs", "longest-one"} {
		for _, p := range top.ports()[name] {
			got = append(got, p.Device)
		}
	}
	if s, want := strings.Join(got, " "), "a-b-c a.2 a-b-c-2 a-b.1 ovs.1 longest-one-b-c longest-one.2 longest-one.3"; s != want {
		t.Errorf("devices %s, want %s", s, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[ab][ab-]{0,10}`)
		top := &Topology{}
		all := rapid.SliceOfNDistinct(name, 2, 8, rapid.ID).Draw(t, "names")
		for i, n := range all {
			if i%2 == 0 {
				top.Switches = append(top.Switches, SwitchSpec{Name: n})
			} else {
				top.Nodes = append(top.Nodes, NodeSpec{Name: n})
			}
		}
		for range rapid.IntRange(1, 20).Draw(t, "links") {
			top.Links = append(top.Links, LinkSpec{Ends: [2]string{rapid.SampledFrom(all).Draw(t, "a"), rapid.SampledFrom(all).Draw(t, "b")}})
		}
		seen := map[string]bool{}
		for _, s := range top.Switches {
			seen[s.Name] = true
		}
		for _, n := range top.Nodes { // management links
			seen[n.Name] = true
		}
		for _, ports := range top.ports() {
			for _, p := range ports {
				if seen[p.Device] || len(p.Device) > 15 {
					t.Fatalf("device %q is taken or too long", p.Device)
				}
				seen[p.Device] = true
			}
		}
	})
}

// Every key of a switch.
func TestParseSwitches(t *testing.T) {
	got, err := Parse("f", []byte(`kind: Lab
name: x
nodes: [a, b]
switches:
- s
- {name: t, id: "00000000000000ff", fail_mode: standalone, rstp: true, protocols: [OpenFlow13, OpenFlow14], controllers: ["b:6653", "unix:mine"]}
- {name: u, id: 7}
links: [{ends: [a, s]}, {ends: [s, t], rate: 10Mbit}, {ends: [t, u]}]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []SwitchSpec{
		{Name: "s"},
		{Name: "t", ID: 255, FailMode: Standalone, RSTP: true, Protocols: []string{"OpenFlow13", "OpenFlow14"}, Controllers: []string{"b:6653", "unix:mine"}},
		{Name: "u", ID: 7},
	}
	if !reflect.DeepEqual(got.Switches, want) {
		t.Errorf("got  %+v\nwant %+v", got.Switches, want)
	}
	// A delay alone would need the emulator also on a kernel with netem, if super-packets crossed it.
	if !got.link(0).NoOffload || got.Links[0].NoOffload {
		t.Error("the link of a switch has offloads")
	}
}

// Mistakes in switches and their links, each with its place and remedy.
func TestSwitchMistakes(t *testing.T) {
	const head = "kind: Lab\nname: x\nnodes: [a, b]\n"
	const s = "switches: [s]\n"
	loop := func(a, b, c string) string {
		return head + "switches:\n- {name: s" + a + "}\n- {name: t" + b + "}\n- {name: u" + c + "}\nlinks: [{ends: [s, t]}, {ends: [t, u]}, {ends: [u, s]}, {ends: [a, s]}]\n"
	}
	const open, tree = ", fail_mode: standalone", ", fail_mode: standalone, rstp: true"
	for name, c := range map[string]struct{ text, want string }{
		"name":            {head + "switches: [1s]\n", `f:4: switches[0].name: "1s" is not a valid switch name`},
		"name of a node":  {head + "switches: [a]\n", `f:4: switches[0].name: duplicate name "a" of a node or switch`},
		"name twice":      {head + "switches: [s, s]\nlinks: [{ends: [a, s]}]\n", `f:4: switches[1].name: duplicate name "s"`},
		"own name":        {head + "switches: [ovs-netdev]\n", `f:4: switches[0].name: "ovs-netdev" is a name that the lab's Open vSwitch needs: rename`},
		"namespace":       {"kind: Lab\nname: x\nnodes: [switches]\n" + s + "links: [{ends: [s, switches]}]\n", `f:3: nodes[0].name: "switches" is the name of the namespace of the lab's switches: rename the node`},
		"no link":         {head + s, `f:4: switches[0]: switch "s" has no link: add one to links, or leave the switch out`},
		"id 0":            {head + "switches: [{name: s, id: 0}]\n", `f:4: switches[0].id: "0" is not a datapath id: write a number from 1, or 16`},
		"id twice":        {head + "switches:\n- {name: s, id: 2}\n- t\nlinks: [{ends: [s, t]}]\n", `f:6: switches[1].id: 0000000000000002 is the datapath id of "s", too: write another id`},
		"fail mode":       {head + "switches: [{name: s, fail_mode: open}]\n", `f:4: switches[0].fail_mode: "open" is not a fail mode: write secure or standalone`},
		"protocol":        {head + "switches: [{name: s, protocols: [OF13]}]\n", `f:4: switches[0].protocols[0]: "OF13" is not a protocol of Open vSwitch: write some of OpenFlow10,`},
		"protocol twice":  {head + "switches: [{name: s, protocols: [OpenFlow13, OpenFlow13]}]\n", "f:4: switches[0].protocols[1]: duplicate protocol OpenFlow13: remove one"},
		"controller":      {head + "switches: [{name: s, controllers: [a]}]\n", `f:4: switches[0].controllers[0]: "a" is not a controller: write a node and a port, for example c1:6653`},
		"controller port": {head + "switches: [{name: s, controllers: [\"a:0\"]}]\n", `f:4: switches[0].controllers[0]: "a:0" is not a controller`},
		"controller node": {head + "switches: [{name: s, controllers: [\"z:1\"]}]\n", `f:4: switches[0].controllers[0]: unknown node "z": add it to nodes`},
		"at a switch":     {head + "switches: [{name: s, controllers: [\"s:1\"]}]\n", `f:4: switches[0].controllers[0]: unknown node "s"`},
		"socket":          {head + "switches: [{name: s, controllers: [\"unix:/tmp/c\"]}]\n", `f:4: switches[0].controllers[0]: "unix:/tmp/c" is not a socket in the directory of the lab's switches`},
		"same controller": {head + "switches: [{name: s, controllers: [\"a:1\", \"a:1\"]}]\n", "f:4: switches[0].controllers[1]: duplicate controller a:1: remove one"},
		"storm":           {loop(open, open, open), `f:5: switches[0]: standalone switch "s" is on a loop (its links to "t" and "u"), in which a broadcast would circulate for ever: write rstp: true`},
		"half a tree":     {loop(tree, open, tree), `f:6: switches[1]: standalone switch "t" is on a loop`},
		"two cables":      {head + "switches: [{name: s" + open + "}, {name: t" + open + "}]\nlinks: [{ends: [s, t]}, {ends: [s, t]}]\n", `f:4: switches[0]: standalone switch "s" is on a loop (its links to "t" and "t")`},
		"trunk addresses": {head + "switches: [s, t]\nlinks:\n- ends: [s, t]\n  addresses: {ipv4: 192.0.2.1/24}\n", "f:7: links[0].addresses.ipv4: a link between two switches has no addresses: leave addresses out"},
		"network":         {head + s + "links:\n- ends: [a, s]\n  addresses: {ipv4: 192.0.2.0/24}\n", "f:7: links[0].addresses.ipv4: 192.0.2.0/24 is not the address of a node in a network: write for example 192.0.2.1/24"},
		"broadcast":       {head + s + "links:\n- ends: [a, s]\n  addresses: {ipv4: 192.0.2.255/24}\n", "f:7: links[0].addresses.ipv4: 192.0.2.255/24 is not the address of a node"},
		"two networks":    {head + s + "links:\n- ends: [a, s]\n  addresses: {ipv4: 192.0.2.1/24}\n- ends: [b, s]\n  addresses: {ipv4: 192.0.3.1/24}\n", "f:9: links[1].addresses.ipv4: 192.0.3.1/24 is not in 192.0.2.0/24, the network of link a-s at the same switches"},
		"one address":     {head + s + "links:\n- ends: [a, s]\n  addresses: {ipv6: 'fd01::1/64'}\n- ends: [b, s]\n  addresses: {ipv6: 'fd01::1/64'}\n", "f:9: links[1].addresses.ipv6: fd01::1 is the address of link a-s, too: write another"},
		"small network":   {head + s + "links:\n- ends: [a, s]\n  addresses: {ipv4: 192.0.2.1/30}\n- ends: [a, s]\n- ends: [b, s]\n", "f:7: links[0].addresses.ipv4: 192.0.2.0/30 is too small for 3 nodes at the same switches"},
		"overlap":         {head + s + "links:\n- ends: [a, s]\n  addresses: {ipv4: 10.0.1.9/24}\n- ends: [a, b]\n", "f:7: links[0].addresses.ipv4: 10.0.1.0/24 overlaps 10.0.1.0/24 of link a-b"},
		"overlapped":      {head + s + "links:\n- ends: [a, s]\n- ends: [a, b]\n  addresses: {ipv4: 10.128.7.0/24}\n", "f:8: links[1].addresses.ipv4: 10.128.7.0/24 overlaps 10.128.0.0/16 of switches s"},
		"offload":         {head + s + "links:\n- ends: [a, s]\n  offload: true\n", "f:7: links[0].offload: a switch passes no packets with unfinished checksums or of several segments: leave offload out"},
		"flow of switch":  {head + s + "links: [{ends: [a, s]}]\nflows: [{name: f, from: a, to: s, rate: 1Mbit}]\n", `f:6: flows[0].to: "s" is a switch: write the name of a node`},
		"unknown end":     {head + s + "links: [{ends: [a, s]}, {ends: [s, z]}]\n", `f:5: links[1].ends: unknown node "z": add it to nodes or switches`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("f", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, ErrConfig) {
				t.Errorf("error is %v\nwant %s", err, c.want)
			}
		})
	}
	for name, text := range map[string]string{
		"trees":                       loop(tree, tree, tree),
		"a loop by a secure switch":   loop(open, open, ""),
		"a leaf of a tree with loops": strings.Replace(loop(tree, tree, tree), "links: [", "- {name: leaf"+open+"}\nlinks: [{ends: [leaf, s]}, ", 1),
	} {
		if _, err := Parse("f", []byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Without Open vSwitch a lab with switches is refused, and says what to install.
func TestNoOpenVSwitch(t *testing.T) {
	err := groups().findOpenVSwitch("/nonexistent/vswitch.ovsschema")
	if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "apt-get install openvswitch-switch") {
		t.Errorf("error is %v", err)
	}
	if err := diamond().findOpenVSwitch("/nonexistent/vswitch.ovsschema"); err != nil {
		t.Errorf("a lab without switches: %v", err)
	}
}
