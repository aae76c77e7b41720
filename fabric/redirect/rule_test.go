package redirect

import (
	"net/netip"
	"testing"

	"headgate.dev/headgate/fabric"
)

// A rule of a reservation is about its ends and its agents alone, and comes before those of the network's file.
func TestDecide(t *testing.T) {
	line := func(from, to fabric.DPID) (int, bool) { return max(int(from)-int(to), int(to)-int(from)), true }
	to := func(addr string) []Exit {
		return []Exit{{Address: netip.MustParseAddr(addr), Destinations: prefixes("10.0.0.0/8")}}
	}
	agents := []Agent{
		{Name: "near", Host: host("10.0.0.10", 1), Takes: true, Exits: to("10.0.0.12")},
		{Name: "other", Host: host("10.0.0.11", 2), Takes: true, Exits: to("10.0.0.12")},
		{Name: "far", Host: host("10.0.0.12", 3), Takes: true, Connects: true, Exits: to("10.0.0.10")},
	}
	c := conn("10.0.0.1:40000", "10.0.0.2:80")
	ends := Ends{Client: host("10.0.0.1", 1), Beyond: host("10.0.0.2", 3), Server: host("10.0.0.2", 3)}
	by := func(near, far string) Rule {
		return Rule{Near: netip.MustParseAddr(near), Far: netip.MustParseAddr(far)}
	}
	of := by("10.0.0.11", "10.0.0.12")
	here, elsewhere, web := of, of, of
	here.ClientsAt, here.ServersAt = ends.Client.At, ends.Server.At
	elsewhere.ServersAt = fabric.PortID{Switch: 9, Port: 1}
	web.Ports = []fabric.PortRange{{First: 443, Last: 443}}
	for _, one := range []struct {
		name    string
		carried []Rule
		written []fabric.Redirect
		want    string
	}{
		{"no rule", nil, nil, ""},
		{"the file's rule", nil, []fabric.Redirect{{}}, "near far"},
		{"its agents", []Rule{of}, []fabric.Redirect{{}}, "other far"},
		{"its ends", []Rule{here}, nil, "other far"},
		{"another end", []Rule{elsewhere}, nil, ""},
		{"other ports", []Rule{web}, []fabric.Redirect{{}}, "near far"},
		{"an agent is gone", []Rule{by("10.0.0.9", "10.0.0.12")}, nil, ""},
		{"an agent is gone, and the file has a rule", []Rule{by("10.0.0.9", "10.0.0.12")}, []fabric.Redirect{{}}, "near far"},
	} {
		pair, ok := Decide(Rules(one.carried, one.written), c, ends, agents, line)
		got := pair.Near.Name + " " + pair.Far.Name
		if ok != (one.want != "") || ok && got != one.want {
			t.Errorf("%s: %s, %v, want %s", one.name, got, ok, one.want)
		}
	}
}
