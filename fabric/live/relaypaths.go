package live

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/program"
	"headgate.dev/headgate/fabric/redirect"
)

// The streams between two relay agents take disjoint paths: those to each port at which the far agent accepts streams have a path of their own, and
// the answers take it back (relay thesis, slides "Flow Entries on Core for Agent to Agent Communication"). Each is a circuit that is not reserved. With
// fewer paths than ports, several ports share one.

// relayCircuits returns the circuits of the paths between agents. Numbers that are taken are not used.
func relayCircuits(t *fabric.Topology, agents []redirect.Agent, taken map[uint32]bool) (all []program.Circuit) {
	for _, near := range agents {
		for _, e := range near.Exits {
			i := slices.IndexFunc(agents, func(far redirect.Agent) bool { return slices.Contains(far.Host.Addrs, e.Address) })
			if i < 0 || len(e.Ports) < 2 || near.Host.VLAN != agents[i].Host.VLAN {
				continue
			}
			far := agents[i]
			paths := t.Disjoint(near.Host.At.Switch, far.Host.At.Switch, len(e.Ports), fabric.ByLink, fabric.Cost, nil)
			if len(paths) < 2 {
				continue // they take it anyway
			}
			from := near.AddrLike(e.Address)
			if !from.IsValid() {
				continue
			}
			for n, port := range e.Ports {
				path, ports := paths[n%len(paths)], program.Ports{First: port, Last: port}
				there := program.Circuit{
					Name: fmt.Sprintf("relay %s to %s, port %d", near.Name, far.Name, port), From: near.Host.At, To: far.Host.At, VLAN: near.Host.VLAN,
					Source: netip.PrefixFrom(from, from.BitLen()), Destination: netip.PrefixFrom(e.Address, e.Address.BitLen()), Flows: []program.Traffic{{Protocol: 6, Destination: ports}}, Paths: []fabric.Path{path}, Class: 4, Rest: true,
				}
				back := there
				back.Name = fmt.Sprintf("relay %s from %s, port %d", near.Name, far.Name, port)
				back.From, back.To, back.Source, back.Destination = there.To, there.From, there.Destination, there.Source
				back.Flows, back.Paths = []program.Traffic{{Protocol: 6, Source: ports}}, []fabric.Path{path.Reverse()}
				all = append(all, there, back)
			}
		}
	}
	for i := range all {
		h := fnv.New32a()
		h.Write([]byte(all[i].Name))
		number := h.Sum32()
		for number == 0 || taken[number] {
			number++
		}
		taken[number] = true
		all[i].Number = number
	}
	return all
}

// reservedFor reports whether some of the traffic of a circuit between agents has a reservation, whose paths and rate it then has.
func reservedFor(reserved []program.Circuit, one program.Circuit) bool {
	either := func(a, b netip.Prefix) bool { return !a.IsValid() || !b.IsValid() || a.Overlaps(b) }
	ports := func(a, b program.Ports) bool {
		return a == program.Ports{} || b == program.Ports{} || a.First <= b.Last && b.First <= a.Last
	}
	return slices.ContainsFunc(reserved, func(r program.Circuit) bool {
		return !r.Unreserved && r.From == one.From && r.To == one.To && either(r.Source, one.Source) && either(r.Destination, one.Destination) &&
			(len(r.Flows) == 0 || slices.ContainsFunc(r.Flows, func(f program.Traffic) bool {
				return slices.ContainsFunc(one.Flows, func(g program.Traffic) bool {
					return (f.Protocol == 0 || f.Protocol == g.Protocol) && ports(f.Source, g.Source) && ports(f.Destination, g.Destination)
				})
			}))
	})
}

// planRelayPaths gives the network the paths between agents, if they or the network are others. n.mu must be held.
func (n *Network) planRelayPaths() {
	if n.plan == nil || !n.circuits.told {
		return
	}
	agents := n.agentsNow()
	r := &n.redirection
	if n.plan.Topology == r.pathsOf && slices.EqualFunc(agents, r.pathsFor, sameAgent) {
		return
	}
	r.pathsOf, r.pathsFor = n.plan.Topology, agents
	n.combineCircuits()
}

// sameAgent reports whether two agents need the same paths.
func sameAgent(a, b redirect.Agent) bool {
	return a.Name == b.Name && a.Host.At == b.Host.At && a.Host.VLAN == b.Host.VLAN && slices.Equal(a.Host.Addrs, b.Host.Addrs) &&
		slices.EqualFunc(a.Exits, b.Exits, func(x, y redirect.Exit) bool { return x.Address == y.Address && slices.Equal(x.Ports, y.Ports) })
}
