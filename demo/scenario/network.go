package scenario

import (
	"fmt"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/unit"
)

// The link of the first host: Headgate's limits, and the real bottlenecks behind them,
// at 101 %.
const (
	limitOut, limitIn = 100 * unit.Mbit, 80 * unit.Mbit
	linkOut, linkIn   = limitOut / 100 * 101, limitIn / 100 * 101
	// SmallLimit is the limit of the other hosts, whose link is not congested.
	SmallLimit = 10 * unit.Mbit
	// Dev is the name of each host's device, and of the node that it leads to.
	Dev = "uplink"
	// Controller is the node in which the controller and its operator's commands run.
	Controller = "controller"
)

// Hosts are the nodes with an agent. The link of the first is congested.
var Hosts = [...]string{"host1", "host2", "host3"}

// clients are the nodes at the other end. Each link has a network of its own, numbered by its
// position.
var clients = []string{"client1", "client2", "client3"}

// The networks of the tenant media, which has client1, and of shop, which has the others.
const mediaClients, shopClients = "10.0.4.0/24", "[10.0.5.0/24, 10.0.6.0/24]"

// Topology returns the network: the hosts on one side of the bottleneck, the clients on the other, and
// a management network for the service.
func Topology(name string) *lab.Topology {
	host := func(name string) lab.NodeSpec {
		// With ECN, Headgate slows TCP down with marks before a queue builds.
		return lab.NodeSpec{Name: name, Sysctl: map[string]string{"net.ipv4.tcp_ecn": "1"}}
	}
	const internet, management = "internet", "management"
	t := &lab.Topology{Name: name, Nodes: []lab.NodeSpec{{Name: Dev, Router: true}, {Name: internet, Router: true}, {Name: management, Router: true}, host(Controller)}}
	link := func(a, b string) { t.Links = append(t.Links, lab.LinkSpec{Ends: [2]string{a, b}}) }
	for _, h := range Hosts {
		t.Nodes = append(t.Nodes, host(h))
		link(h, Dev)
	}
	t.Links = append(t.Links, lab.LinkSpec{Ends: [2]string{Dev, internet}, Forward: lab.Limited(linkOut), Back: lab.Limited(linkIn)})
	for _, c := range clients {
		t.Nodes = append(t.Nodes, host(c))
		link(internet, c)
	}
	for _, n := range append([]string{Controller}, Hosts[:]...) {
		link(n, management)
	}
	return t
}

const pictureFormat = `  client1 (media) --+                            +-- host1 --+
  client2 (shop) ---+-- internet ==== uplink ----+-- host2 --+-- controller
  client3 (shop) ---+    the real bottleneck:    +-- host3 --+
                         %v / %v      host1 divides %v / %v`

// Picture is a drawing of the network.
func Picture() string {
	return fmt.Sprintf(pictureFormat, linkOut, linkIn, limitOut, limitIn)
}

// Nested reports whether the engine has nested groups and ceilings. The engine quantum has neither.
func (s Scenario) Nested() bool { return s.Engine != group.Quantum }

// Path returns the path of a tenant's group: without nested groups, the bare name.
func (s Scenario) Path(tenant, name string) string {
	if s.Nested() {
		return tenant + "/" + name
	}
	return name
}

// Config returns the configuration of a host. The guarantees leave 5 % for acknowledgements, which belong
// to no group. The argument export is the guarantee of the group export in direction out.
func (s Scenario) Config(host string, export unit.Rate) string {
	head := fmt.Sprintf("kind: Interface\ndev: %s\nengine: %s\n", Dev, s.Engine)
	if host != Hosts[0] {
		return head + fmt.Sprintf(smallGroups, SmallLimit)
	}
	groups := nestedGroups
	if !s.Nested() {
		groups = flatGroups
	}
	for _, d := range []struct {
		name                              string
		limit, export, web, backupCeiling unit.Rate
		port, peer                        string
	}{
		{"out", limitOut, export, webOut, backupCeiling, "sport", "dst"},
		{"in", limitIn, exportIn, webIn, backupCeilingIn, "dport", "src"},
	} {
		head += fmt.Sprintf(groups, d.name, d.limit, d.export, d.web, d.backupCeiling, d.port, d.peer, mediaClients, shopClients)
	}
	return head
}

// The guarantee of export in direction out.
const (
	Export = 20 * unit.Mbit
	// ExportRaised is the highest that is possible: shop's guarantee less that of web.
	ExportRaised = 35 * unit.Mbit
)

// The other guarantees of shop's groups, and the ceiling of backup.
const (
	exportIn                       = 16 * unit.Mbit
	webOut, webIn                  = 10 * unit.Mbit, 8 * unit.Mbit
	backupCeiling, backupCeilingIn = 15 * unit.Mbit, 12 * unit.Mbit
)

const (
	nestedGroups = `%[1]s:
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
	flatGroups = `%[1]s:
  limit: %[2]v
  groups:
    - {name: storage, guarantee: 40%%, match: [{proto: tcp, %[6]s: 3260}]}
    - {name: backup, guarantee: 10%%, match: [{%[7]s: %[8]s}]}
    - {name: export, guarantee: %[3]v, match: [{proto: tcp, %[6]s: 443}]}
    - {name: web, guarantee: %[4]v, default: true}
`
	smallGroups = `out:
  limit: %v
  groups:
    - {name: media, guarantee: 50%%, match: [{sport: [3260, 5004]}]}
    - {name: shop, guarantee: 45%%, default: true}
`
)

// Delegation is a group that the operator delegates to a tenant, which then divides it.
type Delegation struct{ Host, Direction, Group, Tenant string }

// Delegations returns all groups that are delegated to tenants.
func (s Scenario) Delegations() (all []Delegation) {
	of := map[string][]string{"media": {"media"}, "shop": {"shop"}}
	if !s.Nested() {
		of = map[string][]string{"media": {"storage", "backup"}, "shop": {"export", "web"}}
	}
	for _, tenant := range Tenants {
		for _, g := range of[tenant] {
			all = append(all, Delegation{Hosts[0], "out", g, tenant}, Delegation{Hosts[0], "in", g, tenant})
		}
		for _, h := range Hosts[1:] {
			all = append(all, Delegation{h, "out", tenant, tenant})
		}
	}
	return all
}

// Others is the group of traffic that belongs to no tenant. It has no guarantee.
const Others = "others"

// Tenants are the tenants that share the hosts.
var Tenants = []string{"media", "shop"}
