package summary

import (
	"encoding/json"
	"strings"
	"testing"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/internal/golden"
)

const campus = `kind: Network
name: campus
sites: [{name: campus}, {name: north, parent: campus}]
switches:
  - {id: 1, name: s1, site: north, host_ports: [1-24, 26], link_ports: [uplink]}
  - {id: 2}
links:
  - {ends: [s1/uplink, 2/4], capacity: 1Gbit, cost: 10}
  - {ends: [s1/25, 2/5], capacity: 1Gbit, back: 2.5Gbit}
  - {ends: [s1/27, 2/6]}
hosts:
  - {name: web1, mac: 02:00:00:00:00:01, addresses: [10.0.0.1, fd00::1], at: s1/1, vlan: 7}
  - {mac: 02:00:00:00:00:02, at: 2/LOCAL}
trust: [s1/28]
listen: [{address: "0.0.0.0:6653"}, {address: "192.0.2.1:6654", tls: false}]
---
kind: Network
name: lab
unknown_switches: accept
---
kind: Network
name: wan
sites: [{name: north}]
routers: [{name: r1, host: gw1, site: north}, {name: r2}]
links: [{ends: [r1/eth1, r2/wg0], capacity: 1Gbit, back: 500Mbit}]
hosts: [{name: h1, mac: 02:00:00:00:00:11, addresses: [10.1.0.1], at: r1/eth0, capacity: 10Gbit}]
`

// A description has what the file has, with defaults.
func TestNetworks(t *testing.T) {
	set, err := config.Parse("network.yaml", []byte(campus))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := Of(set).Write(&b); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/networks.txt", b.String())
	out, err := json.MarshalIndent(Of(set).Networks, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/networks.json", string(out)+"\n")
	if notes := Notes(set); len(notes) != 1 || notes[0].Key != "listen[1]" {
		t.Errorf("notes %v", notes)
	}
}
