package cli

import (
	"fmt"

	"headgate/group"
	"headgate/lab"
	"headgate/unit"
)

// The link of the first host: what Headgate divides, and the real bottlenecks behind,
// at 101 %.
const (
	demoOut, demoIn         = 100 * unit.Mbit, 80 * unit.Mbit
	demoOutReal, demoInReal = demoOut / 100 * 101, demoIn / 100 * 101
	// demoLight is what the others divide, of a link that has room.
	demoLight = 10 * unit.Mbit
	// demoDev is each host's device; it leads to the node of that name.
	demoDev = "uplink"
	// demoController is the node where the controller runs, and its operator sits.
	demoController = "controller"
)

// demoHosts have an agent each; the first is the one whose link is contended.
var demoHosts = [...]string{"host1", "host2", "host3"}

// demoClients are at the other end. Each link has a network of its own, by its place.
var demoClients = []string{"client1", "client2", "client3"}

// The networks of client1, which is media's, and of the others, which are shop's.
const mediaClients, shopClients = "10.0.4.0/24", "[10.0.5.0/24, 10.0.6.0/24]"

// network is the first host behind its bottleneck with the clients beyond, two more
// hosts before it, and a network of its own for the service.
func (s scenario) network(name string) *lab.Topology {
	host := func(name string) lab.NodeSpec {
		// ECN lets Headgate slow TCP down by marks before a queue builds.
		return lab.NodeSpec{Name: name, Sysctl: map[string]string{"net.ipv4.tcp_ecn": "1"}}
	}
	const internet, management = "internet", "management"
	t := &lab.Topology{Name: name, Nodes: []lab.NodeSpec{{Name: demoDev, Router: true}, {Name: internet, Router: true}, {Name: management, Router: true}, host(demoController)}}
	link := func(a, b string) { t.Links = append(t.Links, lab.LinkSpec{Ends: [2]string{a, b}}) }
	for _, h := range demoHosts {
		t.Nodes = append(t.Nodes, host(h))
		link(h, demoDev)
	}
	t.Links = append(t.Links, lab.LinkSpec{Ends: [2]string{demoDev, internet}, Forward: lab.Limited(demoOutReal), Back: lab.Limited(demoInReal)})
	for _, c := range demoClients {
		t.Nodes = append(t.Nodes, host(c))
		link(internet, c)
	}
	for _, n := range append([]string{demoController}, demoHosts[:]...) {
		link(n, management)
	}
	return t
}

const demoPicture = `  client1 (media) --+                            +-- host1 --+
  client2 (shop) ---+-- internet ==== uplink ----+-- host2 --+-- controller
  client3 (shop) ---+    the real bottleneck:    +-- host3 --+
                         %v / %v      host1 divides %v / %v`

func (s scenario) picture() string {
	return fmt.Sprintf(demoPicture, demoOutReal, demoInReal, demoOut, demoIn)
}

// nested tells whether the engine has groups in groups, and ceilings: the seed's algorithm
// has neither.
func (s scenario) nested() bool { return s.engine != group.Quantum }

// path is a tenant's group as the engine has it.
func (s scenario) path(tenant, name string) string {
	if s.nested() {
		return tenant + "/" + name
	}
	return name
}

// config is what a user would write for a host. The guarantees leave 5 % for
// acknowledgements, which belong to no group. export is what that group is guaranteed out.
func (s scenario) config(host string, export unit.Rate) string {
	head := fmt.Sprintf("kind: Interface\ndev: %s\nengine: %s\n", demoDev, s.engine)
	if host != demoHosts[0] {
		return head + fmt.Sprintf(demoLightGroups, demoLight)
	}
	groups := demoNested
	if !s.nested() {
		groups = demoFlat
	}
	for _, d := range []struct {
		name                     string
		limit, export, web, most unit.Rate
		port, peer               string
	}{
		{"out", demoOut, export, demoWeb, demoBackupMost, "sport", "dst"},
		{"in", demoIn, demoExportIn, demoWebIn, demoBackupMostIn, "dport", "src"},
	} {
		head += fmt.Sprintf(groups, d.name, d.limit, d.export, d.web, d.most, d.port, d.peer, mediaClients, shopClients)
	}
	return head
}

// What of shop's groups is guaranteed, and the most that backup gets.
const (
	demoExport, demoExportMore, demoExportIn = 20 * unit.Mbit, 35 * unit.Mbit, 16 * unit.Mbit
	demoWeb, demoWebIn                       = 10 * unit.Mbit, 8 * unit.Mbit
	demoBackupMost, demoBackupMostIn         = 15 * unit.Mbit, 12 * unit.Mbit
)

const (
	demoNested = `%[1]s:
  limit: %[2]v
  groups:
    - name: media
      guarantee: 50%%
      match: [{%[7]s: %[8]s}]
      groups:
        - {name: storage, guarantee: 80%%, match: [{proto: tcp, %[6]s: 3260}]}
        - {name: backup, guarantee: 20%%, ceiling: %[5]v, default: true}
    - name: shop
      guarantee: 45%%
      match: [{%[7]s: %[9]s}]
      groups:
        - {name: export, guarantee: %[3]v, match: [{proto: tcp, %[6]s: 443}]}
        - {name: web, guarantee: %[4]v, default: true}
    - {name: others, default: true}
`
	demoFlat = `%[1]s:
  limit: %[2]v
  groups:
    - {name: storage, guarantee: 40%%, match: [{proto: tcp, %[6]s: 3260}]}
    - {name: backup, guarantee: 10%%, match: [{%[7]s: %[8]s}]}
    - {name: export, guarantee: %[3]v, match: [{proto: tcp, %[6]s: 443}]}
    - {name: web, guarantee: %[4]v, default: true}
`
	demoLightGroups = `out:
  limit: %v
  groups:
    - {name: media, guarantee: 50%%, match: [{sport: [3260, 5004]}]}
    - {name: shop, guarantee: 45%%, default: true}
`
)

// demoGift is a group that the operator gives to a tenant: what is in it is the tenant's.
type demoGift struct{ host, direction, group, tenant string }

// gifts are all of them.
func (s scenario) gifts() (all []demoGift) {
	of := map[string][]string{"media": {"media"}, "shop": {"shop"}}
	if !s.nested() {
		of = map[string][]string{"media": {"storage", "backup"}, "shop": {"export", "web"}}
	}
	for _, tenant := range demoTenants {
		for _, g := range of[tenant] {
			all = append(all, demoGift{demoHosts[0], "out", g, tenant}, demoGift{demoHosts[0], "in", g, tenant})
		}
		for _, h := range demoHosts[1:] {
			all = append(all, demoGift{h, "out", tenant, tenant})
		}
	}
	return all
}

// demoNobody is the group of whoever is no tenant; nothing is guaranteed to it.
const demoNobody = "others"

// demoTenants share the hosts.
var demoTenants = []string{"media", "shop"}
