package fabric

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strings"
)

// RouterConfig is a Linux router that an operator listed. It forwards by its own routing table, and no switch of the
// network waits for it.
type RouterConfig struct {
	// Name is unique among the switches and routers of the network.
	Name string
	// Host is the name of the agent on the router.
	Host string
	// Site is the name of the router's site, empty if it has none.
	Site string
}

// ID returns the identity of the router in a Topology.
func (r RouterConfig) ID() DPID { return RouterID(r.Name) }

// MaxRouters is the greatest number of routers of a network: the number of switches that package reserve and the path
// searches were measured with.
const MaxRouters = 1000

// routers are the upper 16 bits of the identities of routers. A datapath id has a number there that its implementer
// chooses (OpenFlow 1.3.5, 7.3.1); Open vSwitch has 0. Switches with these bits are refused.
const routers DPID = 0xfffe << 48

// RouterID returns the identity of the Linux router with a name: 48 bits of the name's hash, so that it stays the same
// whichever other routers there are. Two of 1,000 names have one identity with a probability of 2e-9 (Config.Check).
// People are not shown it: Topology.SwitchLabel and Config.PortLabel print the name.
func RouterID(name string) DPID {
	sum := sha256.Sum256([]byte(name))
	return routers | DPID(binary.BigEndian.Uint64(sum[:]))>>16
}

// IsRouter reports whether the identity is one of a Linux router.
func (d DPID) IsRouter() bool { return d>>48 == routers>>48 }

// routerPort returns the number, in a Topology, of an interface of a router: 30 bits of the name's hash. Two of 100
// names have one number with a probability of 5e-6 (Config.Check).
func routerPort(name string) PortNo {
	h := fnv.New32a()
	h.Write([]byte(name))
	return PortNo(h.Sum32()>>1 | 1<<30)
}

// isInterface reports whether a port can be an interface of a Linux router: a name that has no slash
// (dev_valid_name of the kernel), and is no number.
func (p PortName) isInterface() bool {
	return p.Name != "" && p.valid() && !strings.ContainsAny(p.Name, "/:")
}

// IsRouter reports whether the node is a Linux router.
func (s Switch) IsRouter() bool { return s.ID.IsRouter() }

// Router returns the router with an identity.
func (c Config) Router(id DPID) (RouterConfig, bool) {
	if !id.IsRouter() {
		return RouterConfig{}, false
	}
	i := slices.IndexFunc(c.Routers, func(r RouterConfig) bool { return r.ID() == id })
	if i < 0 {
		return RouterConfig{}, false
	}
	return c.Routers[i], true
}
