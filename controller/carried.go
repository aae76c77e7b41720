package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"headgate.dev/headgate/controller/reservations"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/redirect"
	"headgate.dev/headgate/fabric/reserve"
)

// carriedInterval is how often it is looked for reservations that begin or end, beside each change of them, chosen for Headgate. The moments themselves
// are waited for.
const carriedInterval = time.Second

// relayPair returns the relay agents that would carry a connection now, or why there are none.
func (c *Controller) relayPair(of fabric.Connection, e redirect.Ends) (redirect.Pair, string) {
	n := c.switches.Live()
	if n == nil {
		return redirect.Pair{}, "no controller leads the network at this moment"
	}
	return n.Pair(of, e)
}

// redirectReservations lets the network redirect the connections of reservations that relay agents carry, while these last, until ctx ends.
func (c *Controller) redirectReservations(ctx context.Context, o *reservations.Owner) {
	changed := o.Watch(ctx)
	for {
		now := o.Now()
		rules, holds := carriedRules(o.Carried(now, now.Add(carriedInterval)), now)
		if n := c.switches.Live(); n != nil {
			n.SetCarried(rules)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-time.After(holds):
		}
	}
}

// carriedRules returns what is redirected for those of some reservations that are active at a moment, and for how long that holds at most.
func carriedRules(all []reserve.Reservation, now time.Time) (rules []redirect.Rule, holds time.Duration) {
	holds = carriedInterval
	for _, r := range all {
		rule, ok := reservations.Rule(r)
		switch {
		case !ok || !now.Before(r.End):
		case now.Before(r.Start):
			holds = min(holds, r.Start.Sub(now))
		default:
			rules, holds = append(rules, rule), min(holds, r.End.Sub(now))
		}
	}
	return rules, holds
}

// missingRelays returns a fault for each active reservation whose relay agents do not carry its connections.
func (c *Controller) missingRelays(agents []redirect.Agent) (all []fabric.Fault) {
	o := c.reservations.Load()
	if o == nil {
		return nil
	}
	now := o.Now()
	for _, r := range o.Carried(now, now.Add(1)) {
		if why, at := missingRelay(r.Request, agents); why != "" {
			all = append(all, fabric.Fault{Kind: fabric.MissingRelay, Port: at, Text: fmt.Sprintf("reservation %v is carried by relay agents %s and %s, and %s: its connections go direct, without what is reserved; start the agent, or cancel the reservation and make it again",
				r.Request.ID, r.Request.Carried.Near, r.Request.Carried.Far, why)})
		}
	}
	return all
}

// missingRelay returns why two agents do not carry the streams of a reservation, and the port of the one that does not, "" if they do.
func missingRelay(q reserve.Request, agents []redirect.Agent) (why string, at fabric.PortID) {
	find := func(e reserve.Endpoint) (redirect.Agent, bool) {
		i := slices.IndexFunc(agents, func(a redirect.Agent) bool {
			return a.Host.At == e.At && slices.Contains(a.Host.Addrs, e.Prefix.Addr())
		})
		if i < 0 {
			return redirect.Agent{}, false
		}
		return agents[i], true
	}
	near, isNear := find(q.Source)
	far, isFar := find(q.Destination)
	switch {
	case !isNear || !near.Takes:
		return q.Carried.Near + " is gone", q.Source.At
	case !isFar || !far.Connects:
		return q.Carried.Far + " is gone", q.Destination.At
	}
	i := slices.IndexFunc(near.Exits, func(e redirect.Exit) bool { return e.Address == q.Destination.Prefix.Addr() })
	if i < 0 {
		return q.Carried.Near + " has no streams to " + q.Carried.Far, q.Source.At
	}
	for _, f := range q.Flows {
		if !slices.Contains(near.Exits[i].Ports, f.Destination.First) {
			return fmt.Sprintf("%s no longer has streams to port %d of %s", q.Carried.Near, f.Destination.First, q.Carried.Far), q.Source.At
		}
	}
	return "", at
}
