package reservations

import (
	"net/netip"
	"strings"
	"testing"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
)

// Ends are found by what the request names; what is ambiguous or unknown is refused with a remedy.
func TestResolve(t *testing.T) {
	sw := func(id fabric.DPID, site string) fabric.Switch {
		return fabric.Switch{ID: id, Name: "s" + string('0'+rune(id)), Site: site, Ports: []fabric.Port{{No: 1}, {No: 2}, {No: 3}}}
	}
	host := func(n byte, name string, vlan uint16, sw fabric.DPID, port fabric.PortNo, addrs ...string) fabric.Host {
		h := fabric.Host{HostID: fabric.HostID{MAC: fabric.MAC{2, 0, 0, 0, 0, n}, VLAN: vlan}, Name: name, At: fabric.PortID{Switch: sw, Port: port}}
		for _, a := range addrs {
			h.Addrs = append(h.Addrs, netip.MustParseAddr(a))
		}
		return h
	}
	top, err := fabric.New(fabric.Parts{
		Sites:    []fabric.Site{{Name: "campus"}, {Name: "north", Parent: "campus"}, {Name: "south"}},
		Switches: []fabric.Switch{sw(1, "north"), sw(2, "south")},
		Hosts: []fabric.Host{
			host(1, "web", 0, 1, 1, "10.0.0.1"), host(2, "db", 20, 1, 1, "10.0.20.1"),
			host(3, "storage", 0, 2, 2, "10.1.0.1", "fd00::1"), host(4, "twin", 0, 2, 3, "10.2.0.1"), host(5, "twin", 0, 1, 2, "10.3.0.1"),
			host(6, "both", 20, 2, 3, "10.2.20.1", "10.2.20.2"),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	at := func(sw fabric.DPID, port fabric.PortNo) fabric.PortID { return fabric.PortID{Switch: sw, Port: port} }
	end := func(kind reserve.EndpointKind, name string) reserve.Endpoint {
		return reserve.Endpoint{Kind: kind, Name: name}
	}
	prefix := func(text string) reserve.Endpoint {
		return reserve.Endpoint{Kind: reserve.Prefix, Name: text, Prefix: netip.MustParsePrefix(text)}
	}
	vlan := func(n uint16, p fabric.PortID) reserve.Endpoint {
		return reserve.Endpoint{Kind: reserve.VLAN, Name: "n", VLAN: n, At: p}
	}
	for _, one := range []struct {
		end    reserve.Endpoint
		at     fabric.PortID
		prefix string
		vlan   uint16
		error  string
	}{
		{end: end(reserve.Host, "web"), at: at(1, 1), prefix: "10.0.0.1/32"},
		{end: end(reserve.Host, "02:00:00:00:00:01"), at: at(1, 1), prefix: "10.0.0.1/32"},
		{end: end(reserve.Host, "fd00::1"), at: at(2, 2), prefix: "fd00::1/128"},
		{end: end(reserve.Host, "storage"), at: at(2, 2), prefix: "invalid Prefix"}, // alone at its port
		{end: end(reserve.Host, "db"), at: at(1, 1), prefix: "10.0.20.1/32", vlan: 20},
		{end: end(reserve.Host, "twin"), error: "is at ports s2/3 and s1/2"},
		{end: reserve.Endpoint{Name: "twin", At: at(2, 3)}, at: at(2, 3), prefix: "10.2.0.1/32"},
		{end: end(reserve.Host, "both"), error: "name one of its addresses"},
		{end: end(reserve.Host, "storag"), error: "did you mean storage?"},
		{end: end(reserve.Host, "moon"), error: "the network knows no host moon: correct the name"},
		{end: end(reserve.Host, "10.9.9.9"), error: "the network knows no host 10.9.9.9"},
		{end: end(reserve.Site, "south"), error: "has hosts at ports"},
		{end: end(reserve.Site, "west"), error: "knows no site west"},
		{end: end(reserve.Site, "campus"), error: "has hosts at ports s1/1 and s1/2"},
		{end: prefix("10.1.0.0/16"), at: at(2, 2), prefix: "10.1.0.0/16"},
		{end: prefix("10.0.0.0/8"), error: "name the port"},
		{end: prefix("10.9.0.0/16"), error: "the network knows no host of prefix 10.9.0.0/16: name the port"},
		{end: vlan(20, fabric.PortID{}), error: "name the port"},
		{end: vlan(30, at(1, 3)), at: at(1, 3), vlan: 30, prefix: "invalid Prefix"},
	} {
		r, err := resolve(reserve.Request{Source: one.end, Destination: reserve.Endpoint{Name: "web"}}, top, nil, true)
		if one.error != "" {
			if err == nil || !strings.HasPrefix(err.Error(), "from: ") || !strings.Contains(err.Error(), one.error) {
				t.Errorf("%v: %v, want %s", one.end, err, one.error)
			}
			continue
		}
		if got := r.Source; err != nil || got.At != one.at || got.Prefix.String() != one.prefix || got.VLAN != one.vlan {
			t.Errorf("%v: %+v, %v", one.end, got, err)
		}
	}
	// The service has a host "edge" with the MAC of the network's storage, and one whose name the network's document has for another.
	joined := func(name string) ([]fabric.MAC, netip.Addr) {
		from := map[string]string{"edge": "10.1.0.1", "web": "10.1.0.1", "liar": "10.9.9.9"}[name]
		if from == "" {
			return nil, netip.Addr{}
		}
		return []fabric.MAC{{2, 0, 0, 0, 0, 3}}, netip.MustParseAddr(from)
	}
	if _, err := resolve(reserve.Request{Source: end(reserve.Host, "web"), Destination: end(reserve.Host, "liar")}, top, joined, true); err == nil {
		t.Error("a host has the MAC address of another one")
	}
	r, err := resolve(reserve.Request{Source: end(reserve.Host, "web"), Destination: end(reserve.Host, "edge")}, top, joined, true)
	if err != nil || r.Source.At != at(1, 1) || r.Destination.At != at(2, 2) || r.Destination.Name != "edge" {
		t.Errorf("hosts of the service: %+v, %v", r, err)
	}
	if _, err := resolve(reserve.Request{Source: reserve.Endpoint{Name: "web"}, Destination: reserve.Endpoint{Name: "storag"}}, top, nil, false); err == nil || strings.Contains(err.Error(), "storage") {
		t.Errorf("a tenant learns the name of a host: %v", err)
	}
}
