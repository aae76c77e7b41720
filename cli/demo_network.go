package cli

import (
	"fmt"

	"headgate/group"
	"headgate/lab"
	"headgate/unit"
)

// The link of the first host: Headgate's limits, and the real bottlenecks behind them,
// at 101 %.
const (
	demoOut, demoIn         = 100 * unit.Mbit, 80 * unit.Mbit
	demoOutReal, demoInReal = demoOut / 100 * 101, demoIn / 100 * 101
	// demoLight is the limit of the other hosts, whose link is not congested.
	demoLight = 10 * unit.Mbit
	// demoDev is the name of each host's device, and of the node that it leads to.
	demoDev = "uplink"
	// demoController is the node in which the controller and its operator's commands run.
	demoController = "controller"
)

// demoHosts are the nodes with an agent. The link of the first is congested.
var demoHosts = [...]string{"host1", "host2", "host3"}

// demoClients are the nodes at the other end. Each link has a network of its own, numbered by its
// position.
var demoClients = []string{"client1", "client2", "client3"}

// The networks of the tenant media, which has client1, and of shop, which has the others.
const mediaClients, shopClients = "10.0.4.0/24", "[10.0.5.0/24, 10.0.6.0/24]"

// network returns the topology: the hosts on one side of the bottleneck, the clients on the other, and
// a management network for the service.
func (s demoScenario) network(name string) *lab.Topology {
	host := func(name string) lab.NodeSpec {
		// With ECN, Headgate slows TCP down with marks before a queue builds.
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

func (s demoScenario) picture() string {
	return fmt.Sprintf(demoPicture, demoOutReal, demoInReal, demoOut, demoIn)
}

// nested reports whether the engine has nested groups and ceilings. The seed's algorithm, quantum, has
// neither.
func (s demoScenario) nested() bool { return s.engine != group.Quantum }

// path returns the path of a tenant's group: without nested groups, the bare name.
func (s demoScenario) path(tenant, name string) string {
	if s.nested() {
		return tenant + "/" + name
	}
	return name
}

// config returns the configuration of a host. The guarantees leave 5 % for acknowledgements, which belong
// to no group. The argument export is the guarantee of the group export in direction out.
func (s demoScenario) config(host string, export unit.Rate) string {
	head := fmt.Sprintf("kind: Interface\ndev: %s\nengine: %s\n", demoDev, s.engine)
	if host != demoHosts[0] {
		return head + fmt.Sprintf(demoLightGroups, demoLight)
	}
	groups := demoNested
	if !s.nested() {
		groups = demoFlat
	}
	for _, d := range []struct {
		name                            string
		limit, export, web, lowestLimit unit.Rate
		port, peer                      string
	}{
		{"out", demoOut, export, demoWeb, demoBackupMost, "sport", "dst"},
		{"in", demoIn, demoExportIn, demoWebIn, demoBackupMostIn, "dport", "src"},
	} {
		head += fmt.Sprintf(groups, d.name, d.limit, d.export, d.web, d.lowestLimit, d.port, d.peer, mediaClients, shopClients)
	}
	return head
}

// The guarantees of shop's groups, and the ceiling of backup.
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

// demoDelegation is a group that the operator delegates to a tenant, which then divides it.
type demoDelegation struct{ host, direction, group, tenant string }

// delegations returns all groups that are delegated to tenants.
func (s demoScenario) delegations() (all []demoDelegation) {
	of := map[string][]string{"media": {"media"}, "shop": {"shop"}}
	if !s.nested() {
		of = map[string][]string{"media": {"storage", "backup"}, "shop": {"export", "web"}}
	}
	for _, tenant := range demoTenants {
		for _, g := range of[tenant] {
			all = append(all, demoDelegation{demoHosts[0], "out", g, tenant}, demoDelegation{demoHosts[0], "in", g, tenant})
		}
		for _, h := range demoHosts[1:] {
			all = append(all, demoDelegation{h, "out", tenant, tenant})
		}
	}
	return all
}

// demoOthers is the group of traffic that belongs to no tenant. It has no guarantee.
const demoOthers = "others"

// demoTenants are the tenants that share the hosts.
var demoTenants = []string{"media", "shop"}
