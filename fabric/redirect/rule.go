package redirect

import (
	"net/netip"
	"slices"

	"headgate.dev/headgate/fabric"
)

// Rule matches connections that are redirected: as the operator writes it of the network, or those of a reservation, which one pair of agents carries.
type Rule struct {
	fabric.Redirect
	// ClientsAt and ServersAt are the ports of the network at which clients and servers are. Zero is anywhere.
	ClientsAt, ServersAt fabric.PortID
	// Near and Far are the addresses of the agents that carry the connections. Those that are not valid are any.
	Near, Far netip.Addr
}

// Rules returns those of reservations and those that an operator has written, which are asked after them.
func Rules(carried []Rule, written []fabric.Redirect) []Rule {
	all := slices.Clone(carried)
	for _, one := range written {
		all = append(all, Rule{Redirect: one})
	}
	return all
}

// CanBegin reports whether a host can begin a connection that the rule matches.
func (r Rule) CanBegin(h fabric.Host) bool {
	return (r.ClientsAt == fabric.PortID{} || r.ClientsAt == h.At) && r.Redirect.CanBegin(h)
}

// Matches reports whether the rule is about a connection between two ends.
func (r Rule) Matches(c fabric.Connection, e Ends) bool {
	return (r.ClientsAt == fabric.PortID{} || r.ClientsAt == e.Client.At) && (r.ServersAt == fabric.PortID{} || r.ServersAt == e.Server.At) && r.Redirect.Matches(c)
}

// agents returns those of some that may carry the connections of the rule.
func (r Rule) agents(all []Agent) (pair []Agent) {
	if !r.Near.IsValid() {
		return all
	}
	for _, a := range all {
		near, far := slices.Contains(a.Host.Addrs, r.Near), slices.Contains(a.Host.Addrs, r.Far)
		if a.Takes = a.Takes && near; near || far {
			pair = append(pair, a)
		}
	}
	return pair
}

// Decide returns the agents that carry a connection by the first of some rules that matches it and has a pair of agents, false if it goes direct.
func Decide(rules []Rule, c fabric.Connection, e Ends, agents []Agent, hops Distance) (Pair, bool) {
	for _, r := range rules {
		if !r.Matches(c, e) {
			continue
		}
		if pair, why := Choose(c, e, r.agents(agents), hops); why == "" {
			return pair, true
		}
	}
	return Pair{}, false
}
