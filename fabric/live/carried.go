package live

import (
	"reflect"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/redirect"
)

// SetCarried gives the network the connections of reservations that relay agents carry from now on, in place of those before. Connections that have
// begun stay where they are.
func (n *Network) SetCarried(all []redirect.Rule) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if r := &n.redirection; !reflect.DeepEqual(r.carried, all) {
		r.carried, r.due = all, time.Time{} // switches ask about other connections at once
	}
}

// Pair returns the agents that would carry a connection now, or why there are none (redirect.Choose).
func (n *Network) Pair(c fabric.Connection, e redirect.Ends) (redirect.Pair, string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.plan == nil {
		return redirect.Pair{}, "no switch is connected"
	}
	return redirect.Choose(c, e, n.agentsNow(), redirect.Hops(n.plan.Topology, n.plan.Next))
}

// redirections are the rules by which connections are redirected, in their order. n.mu must be held.
func (n *Network) redirections() []redirect.Rule {
	return redirect.Rules(n.redirection.carried, n.config.Relays.Redirect)
}
