package config

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// Controllers is one "kind: Controllers" document: the controllers of a service. All
// controllers have the same document.
type Controllers struct {
	File string
	Line int
	// Members has one entry, or three or more. A controller finds its own entry by name.
	Members []Member
	// API, Agents, Store and Peers are the ports for API clients, for agents, for the
	// controllers' access to the store, and for the members of the store. They are the same on
	// all controllers.
	API, Agents, Store, Peers uint16
}

// Member is one controller.
type Member struct {
	Name string
	// Address is the host at which clients, agents and the other controllers reach this
	// controller.
	Address string
}

// Unspecified reports whether the address is the unspecified one, 0.0.0.0 or ::.
func (m Member) Unspecified() bool {
	ip, err := netip.ParseAddr(m.Address)
	return err == nil && ip.IsUnspecified()
}

// Default ports. The defaults of etcd are 2379 and 2380.
const (
	APIPort    = 8420
	AgentsPort = 8421
	StorePort  = 8422
	PeersPort  = 8423
)

func controllersDocument(s *source, n *node) Controllers {
	d := newDecoder(s)
	out := Controllers{File: s.file, Line: n.line, API: APIPort, Agents: AgentsPort, Store: StorePort, Peers: PeersPort}
	d.fields(n, "", "a list of controllers", []field{
		{"kind", func(*node, string) {}},
		{"api", one(d, &out.API, portNumber)},
		{"agents", one(d, &out.Agents, portNumber)},
		{"store", one(d, &out.Store, portNumber)},
		{"peers", one(d, &out.Peers, portNumber)},
		{"members", func(n *node, key string) {
			d.each(n, key, "a controller", func(n *node, key string) {
				var m Member
				d.fields(n, key, "a controller", []field{
					{"name", one(d, &m.Name, serverName)},
					{"address", one(d, &m.Address, hostAddress)},
				})
				d.needs(n, key, "name", "the controller has no %s: write for example %[1]s: c1")
				d.needs(n, key, "address", "the controller has no %s: write for example %[1]s: 10.0.0.1")
				out.Members = append(out.Members, m)
			})
		}},
	})
	d.needs(n, "", "members", "%s is missing: list the controllers, each with name and address")
	const key = "members"
	if len(out.Members) == 2 && !d.broken[key] {
		d.invalid(n, key, "two controllers have no quorum if one of them fails: list one, three or five")
	}
	names, addresses := map[string]int{}, map[string]int{}
	for i, m := range out.Members {
		at := fmt.Sprintf("%s[%d]", key, i)
		if first, dup := names[m.Name]; dup && m.Name != "" {
			d.invalid(n, at+".name", "%q is already the name of members[%d]: names must be unique", m.Name, first)
		}
		if first, dup := addresses[m.Address]; dup && m.Address != "" {
			d.invalid(n, at+".address", "%s is already the address of members[%d]: list each controller once", m.Address, first)
		}
		names[m.Name], addresses[m.Address] = i, i
	}
	return out
}

func portNumber(s string) (uint16, error) {
	v, err := strconv.ParseUint(s, 10, 16)
	if err != nil || v == 0 {
		return 0, fmt.Errorf("%q is not a port: write 1 to 65535", s)
	}
	return uint16(v), nil
}

// hostAddress parses an IP address, or a name that resolves to one.
func hostAddress(s string) (string, error) {
	if _, err := netip.ParseAddr(s); err == nil {
		return s, nil
	}
	if _, _, err := net.SplitHostPort(s); err == nil {
		return "", fmt.Errorf("%q has a port: write only the address, and set the ports once for all controllers", s)
	}
	return serverName(s)
}
