package redirect

import (
	"net/netip"
	"slices"

	"headgate.dev/headgate/fabric"
)

// Agent is a relay agent that has announced itself.
type Agent struct {
	Name string
	Host fabric.Host
	// Takes reports that it takes connections that the network sends to it, and Connects that it connects to servers with the address and port of
	// the client.
	Takes, Connects bool
	// Exits are the agents to which it has streams.
	Exits []Exit
}

// Exit is an agent by the address at which it accepts streams, with the destinations that the near agent sends to it.
type Exit struct {
	Address netip.Addr
	// Ports are those of the exit to which streams go, each for a path of its own.
	Ports        []uint16
	Destinations []netip.Prefix
}

// Pair is the two agents that carry a connection.
type Pair struct {
	Near, Far Agent
	// Exit is the one of Near that leads to Far.
	Exit Exit
}

// AddrLike returns the first address of the agent's host of the family of another, the zero Addr if there is none: that from which streams to it come.
func (a Agent) AddrLike(of netip.Addr) netip.Addr {
	i := slices.IndexFunc(a.Host.Addrs, func(one netip.Addr) bool { return one.Is4() == of.Is4() && !one.IsLinkLocalUnicast() })
	if i < 0 {
		return netip.Addr{}
	}
	return a.Host.Addrs[i]
}

// Ends are where a connection begins and ends in the network.
type Ends struct {
	Client fabric.Host
	// Beyond is the host to which the client sends: the server, or a router on the way to it.
	Beyond fabric.Host
	// Server is the host that has the server's address, or Beyond if there is none.
	Server fabric.Host
}

// Distance is how far it is from a switch to another, false if there is no path.
type Distance func(from, to fabric.DPID) (int, bool)

// Hops returns the number of links of the best path between switches.
func Hops(t *fabric.Topology, next *fabric.NextHops) Distance {
	return func(from, to fabric.DPID) (n int, ok bool) {
		for ; from != to; n++ {
			l, ok := t.LinkFrom(fabric.PortID{Switch: from, Port: next.At(from, to).Best})
			if !ok || n > len(t.Switches()) {
				return 0, false
			}
			from = l.To.Switch
		}
		return n, true
	}
}

// Choose returns the agents that carry a connection, or why there are none, as the end of a sentence that begins with "it goes direct, because".
func Choose(c fabric.Connection, e Ends, agents []Agent, hops Distance) (best Pair, why string) {
	is := func(a netip.Addr, h fabric.Host) bool { return slices.Contains(h.Addrs, a) }
	least := -1
	why = "no agent takes connections and has streams to another for this destination"
	for _, a := range agents {
		if is(c.Client.Addr(), a.Host) || is(c.Server.Addr(), a.Host) {
			return Pair{}, "relay agent " + a.Name + " is one of its ends"
		}
	}
	for _, near := range agents {
		exit, ok := near.exitFor(c.Server.Addr())
		if !near.Takes || !ok {
			continue
		}
		n := slices.IndexFunc(agents, func(far Agent) bool { return is(exit.Address, far.Host) })
		switch {
		case n < 0:
			why = "the exit " + exit.Address.String() + " of relay agent " + near.Name + " has not announced itself to the network"
			continue
		case !agents[n].Connects:
			why = "relay agent " + agents[n].Name + " does not connect with the address of the client: set keep_source"
			continue
		case near.Host.VLAN != e.Client.VLAN || agents[n].Host.VLAN != e.Server.VLAN:
			why = "relay agents " + near.Name + " and " + agents[n].Name + " are in other VLANs than its ends"
			continue
		}
		far := agents[n]
		there, ok1 := hops(e.Client.At.Switch, near.Host.At.Switch)
		beyond, ok2 := hops(far.Host.At.Switch, e.Server.At.Switch)
		if sum := there + beyond; ok1 && ok2 && (least < 0 || sum < least) {
			least, best = sum, Pair{near, far, exit}
		}
	}
	if least < 0 {
		return Pair{}, why
	}
	return best, ""
}

// Destinations returns the prefixes of servers to which some pair of agents can carry connections.
func Destinations(agents []Agent) (all []netip.Prefix) {
	for _, near := range agents {
		for _, e := range near.Exits {
			if near.Takes && slices.ContainsFunc(agents, func(far Agent) bool { return far.Connects && slices.Contains(far.Host.Addrs, e.Address) }) {
				all = append(all, e.Destinations...)
			}
		}
	}
	slices.SortFunc(all, netip.Prefix.Compare)
	return slices.Compact(all)
}

// exitFor returns the exit of a destination: the one with the longest prefix, and of several the first, as the agent chooses (relay.Policy.ExitFor).
func (a Agent) exitFor(to netip.Addr) (exit Exit, ok bool) {
	bits := -1
	for _, e := range a.Exits {
		for _, d := range e.Destinations {
			if d.Contains(to) && d.Bits() > bits {
				exit, bits = e, d.Bits()
			}
		}
	}
	return exit, bits >= 0
}
