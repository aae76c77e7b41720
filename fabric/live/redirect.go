package live

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/program"
	"headgate.dev/headgate/fabric/redirect"
	"headgate.dev/headgate/internal/relaylldp"
)

// Constants of redirection, chosen for Headgate.
const (
	// relaySilence is after what time without a frame an agent is gone: agents announce themselves each 250 ms.
	relaySilence = 800 * time.Millisecond
	// watchInterval is how often switches get the flows that ask about connections, and watchSeconds for how long they have them: when the controller is
	// dead, connections go direct after a second and a half at most.
	watchInterval, watchSeconds = 300 * time.Millisecond, 1
	// beginRate and beginBurst bound the connections of each port that are decided about, per second. A port that exceeds them is let alone for
	// bypassTime: its connections go direct.
	beginRate, beginBurst = 3000, 3000
	bypassTime            = 10 * time.Second
	// maxSetups is how many connections are being redirected at the same time. The others go direct.
	maxSetups = 1024
	// setupTimeout is how long switches may take for the flows of a connection. A client repeats its first segment after a second (RFC 6298, section 2.1).
	setupTimeout = 300 * time.Millisecond
	// endDelay is for how long the flows of a connection stay after its end: a client can have to acknowledge the end again.
	endDelay = time.Second
	// maxRelayed is the number of connections that are known at the same time.
	maxRelayed = 1 << 17
)

// redirection is what the loop knows of relay agents, and of the connections that they carry.
type redirection struct {
	agents  map[fabric.HostID]*announced
	watched map[fabric.DPID]bool // the switches that ask about connections
	due     time.Time            // when they get their flows again
	begun   map[fabric.PortID]*bucket
	setups  int
	relayed map[fabric.Connection]*relayed
	// carried are the connections of reservations that agents carry now.
	carried []redirect.Rule
	resets  map[fabric.Connection]*resetting
	refused map[fabric.DPID]bool // switches that do not take the flows
	// pathsOf and pathsFor are the network and the agents of which the paths between agents are.
	pathsOf  *fabric.Topology
	pathsFor []redirect.Agent
	counts   RedirectionCounters
}

// announced is an agent as it has announced itself.
type announced struct {
	redirect.Agent
	heard time.Time
}

// relayed is a connection that agents carry.
type relayed struct {
	program.Redirection
	began time.Time
	// near and far report whether the flows of this side are there.
	near, far bool
}

// RedirectionCounters count what the controller has decided about connections.
type RedirectionCounters struct {
	// Asked are first segments that switches have sent, Redirected those that went to a relay agent, Direct those that went on to their destination, and
	// Failed those of them for which a switch did not take the flows in time. Bypassed is how often a port was let alone.
	Asked, Redirected, Direct, Failed, Bypassed uint64
}

func newRedirection() redirection {
	return redirection{agents: map[fabric.HostID]*announced{}, watched: map[fabric.DPID]bool{}, begun: map[fabric.PortID]*bucket{}, relayed: map[fabric.Connection]*relayed{}, resets: map[fabric.Connection]*resetting{}, refused: map[fabric.DPID]bool{}}
}

// relayAnnounced takes the frame of a relay agent that has come to a port. It reports false if it is none. n.mu must be held.
func (n *Network) relayAnnounced(at fabric.PortID, data []byte, now time.Time) bool {
	a, ok, err := relaylldp.Read(data)
	if !ok {
		return false
	}
	h, known := n.hosts.Host(fabric.HostID{MAC: fabric.MAC(data[6:12])})
	switch {
	case err != nil || !known || h.At != at: // it becomes known when it sends something else
		return true
	case !n.config.Relays.IsAgent(h):
		if n.noteOnce(at, now) {
			n.event(fabric.Event{Kind: fabric.RelayChanged, Port: at, Host: h.HostID, Text: fmt.Sprintf("relay agent %q at host %v announces itself, and is not in relays.agents of the network: connections are not sent to it", a.Name, h.HostID)})
		}
		return true
	}
	one := n.redirection.agents[h.HostID]
	if one == nil {
		if a.Leaving {
			return true
		}
		one = &announced{}
		n.redirection.agents[h.HostID] = one
		n.event(fabric.Event{Kind: fabric.RelayChanged, Port: at, Host: h.HostID, Text: fmt.Sprintf("relay agent %q is at host %v, port %s", a.Name, h.HostID, n.label(at))})
	}
	one.heard = now
	if len(a.Ended) > 0 { // such a frame says nothing else
		for _, c := range a.Ended {
			n.relayEnded(h.HostID, fabric.Connection{Client: c.Client, Server: c.Server})
		}
		return true
	}
	one.Agent = redirect.Agent{Name: a.Name, Host: h, Takes: a.Takes && !a.Leaving, Connects: a.Connects && !a.Leaving}
	for _, e := range a.Exits {
		one.Exits = append(one.Exits, redirect.Exit{Address: e.Address, Ports: e.Ports, Destinations: e.Destinations})
	}
	return true
}

// expireRelays forgets agents that are silent. n.mu must be held.
func (n *Network) expireRelays(now time.Time) {
	for id, one := range n.redirection.agents {
		if now.Sub(one.heard) < relaySilence {
			continue
		}
		delete(n.redirection.agents, id)
		n.redirection.due = time.Time{} // connections go direct at once
		n.resetRelayed(id)
		n.event(fabric.Event{Kind: fabric.RelayChanged, Port: one.Host.At, Host: id, Text: fmt.Sprintf("relay agent %q at host %v has been silent for %v: connections go direct", one.Name, id, relaySilence)})
	}
}

// announcedRelays returns the agents that have announced themselves, in the order of their hosts. n.mu must be held.
func (n *Network) announcedRelays() (all []redirect.Agent) {
	for _, one := range n.redirection.agents {
		all = append(all, one.Agent)
	}
	slices.SortFunc(all, func(a, b redirect.Agent) int { return a.Host.HostID.Compare(b.Host.HostID) })
	return all
}

// agentsNow returns the agents that take or make connections. n.mu must be held.
func (n *Network) agentsNow() []redirect.Agent {
	return slices.DeleteFunc(n.announcedRelays(), func(a redirect.Agent) bool { return !a.Takes && !a.Connects })
}

// watchDue gives switches the flows that ask about connections, while agents can carry some. n.mu must be held.
func (n *Network) watchDue(now time.Time) {
	r := &n.redirection
	n.expireRelays(now)
	if now.Before(r.due) {
		return
	}
	r.due = now.Add(watchInterval)
	n.askReset()
	n.planRelayPaths()
	flows := program.Watch(n.watchedConnections(), watchSeconds)
	wanted := map[fabric.DPID]bool{}
	rules := n.redirections()
	if len(flows) > 0 && n.plan != nil {
		for _, h := range n.plan.Topology.Hosts() {
			wanted[h.At.Switch] = wanted[h.At.Switch] || slices.ContainsFunc(rules, func(r redirect.Rule) bool { return r.CanBegin(h) })
		}
	}
	for id, s := range n.switches {
		switch {
		case wanted[id] && program.Watches(s.capabilities) && !r.refused[id]:
			messages := make([]openflow.Message, len(flows))
			for i, f := range flows {
				messages[i] = f.Mod()
			}
			_ = s.conn.Send(messages...) // errors go to Handle
			r.watched[id] = true
		case r.watched[id]:
			delete(r.watched, id)
			_ = s.conn.Send(program.DeleteKind(program.KindWatch))
		}
	}
	gone := func(id fabric.DPID, _ bool) bool { return n.switches[id] == nil }
	maps.DeleteFunc(r.watched, gone)
	maps.DeleteFunc(r.refused, gone) // it may be another program when it returns
}

// refusesWatch takes that a switch has refused a message, and reports whether it was a flow that asks about connections: it then gets no more. n.mu must be held.
func (n *Network) refusesWatch(s *attached, m *openflow.Error) bool {
	const cookieAt = 8 // in struct ofp_flow_mod, behind the header (OpenFlow 1.3.5, section 7.3.4.1)
	if len(m.Data) < cookieAt+8 || openflow.Type(m.Data[1]) != openflow.TypeFlowMod {
		return false
	}
	if kind, ours := program.KindOf(binary.BigEndian.Uint64(m.Data[cookieAt:])); !ours || kind != program.KindWatch {
		return false
	}
	if !n.redirection.refused[s.id] {
		n.redirection.refused[s.id] = true
		n.event(fabric.Event{Kind: fabric.SwitchLimited, Switch: s.id, Text: fmt.Sprintf("switch %v refuses flows that match the flags of TCP, so connections that hosts there begin are not redirected to relays: %v", s.id, m)})
	}
	return true
}

// watchedConnections are those that agents could carry now, none without a pair of agents. n.mu must be held.
func (n *Network) watchedConnections() (all []program.NewConnections) {
	destinations := redirect.Destinations(n.agentsNow())
	if len(destinations) == 0 {
		return nil
	}
	for _, rule := range n.redirections() {
		for _, s := range rule.Selectors(destinations) {
			all = append(all, program.NewConnections{Source: s.From, Destination: s.To, Ports: program.Ports(s.Ports)})
		}
	}
	return all
}

// begins decides about a connection that a host begins, of which its switch has sent the first segment. n.mu must be held.
func (n *Network) begins(s *attached, at fabric.PortID, data []byte, now time.Time) {
	g, ok := parseSegment(data)
	if !ok || n.plan == nil {
		return
	}
	r := &n.redirection
	r.counts.Asked++
	if n.floodsConnections(s, at, now) {
		n.direct(at, g)
		return
	}
	if known := r.relayed[g.Connection]; known != nil {
		if known.near && known.far && known.From.At == at { // the client has repeated it
			n.toAgent(known.Redirection, g)
			return
		}
		n.forget(known, true, true) // a former connection had the same ports
	}
	client, known := n.plan.Topology.Host(fabric.HostID{MAC: g.src, VLAN: g.vlan})
	beyond, also := n.plan.Topology.Host(fabric.HostID{MAC: g.dst, VLAN: g.vlan})
	if !known || !also || r.setups >= maxSetups || len(r.relayed) >= maxRelayed {
		n.direct(at, g)
		return
	}
	server, has := n.plan.Topology.HostWith(g.Server.Addr(), g.vlan)
	if !has {
		server = beyond
	}
	rules, ends := n.redirections(), redirect.Ends{Client: client, Beyond: beyond, Server: server}
	if agent := r.agents[client.HostID]; agent != nil && slices.ContainsFunc(rules, func(r redirect.Rule) bool { return r.Matches(g.Connection, ends) }) {
		n.answersToAgent(at, g, agent.Agent, server, beyond)
		return
	}
	pair, found := redirect.Decide(rules, g.Connection, ends, n.agentsNow(), redirect.Hops(n.plan.Topology, n.plan.Next))
	if !found {
		n.direct(at, g)
		return
	}
	n.redirect(at, g, &relayed{
		Redirection: program.Redirection{Client: g.Client, Server: g.Server, From: client, To: server, Beyond: beyond, Near: pair.Near.Host, Far: pair.Far.Host}, began: now, near: true, far: true,
	})
}

// answersToAgent decides about a connection that a relay agent begins. It can be one with the address of a client that came to the near agent without the network,
// by a listener: what the server answers must go to the agent then. n.mu must be held.
func (n *Network) answersToAgent(at fabric.PortID, g segment, agent redirect.Agent, server, beyond fabric.Host) {
	if !agent.Connects || slices.Contains(agent.Host.Addrs, g.Client.Addr()) {
		n.direct(at, g)
		return
	}
	client, known := n.plan.Topology.HostWith(g.Client.Addr(), g.vlan)
	if !known {
		client = agent.Host
	}
	n.redirect(at, g, &relayed{Redirection: program.Redirection{Client: g.Client, Server: g.Server, From: client, To: server, Beyond: beyond, Far: agent.Host}, began: time.Now(), far: true})
}

// direct sends the first segment on to its destination. n.mu must be held.
func (n *Network) direct(at fabric.PortID, g segment) {
	n.redirection.counts.Direct++
	n.forward(at, g.frame)
}

// floodsConnections reports whether a port begins more connections than are decided about. Its switch then lets them go direct. n.mu must be held.
func (n *Network) floodsConnections(s *attached, at fabric.PortID, now time.Time) bool {
	r := &n.redirection
	b := r.begun[at]
	if b == nil {
		b = &bucket{tokens: beginBurst, at: now}
		r.begun[at] = b
	}
	b.fill(beginRate, beginBurst, now)
	if b.tokens >= 1 {
		b.tokens--
		return false
	}
	if now.After(b.quiet) {
		b.quiet = now.Add(bypassTime)
		r.counts.Bypassed++
		for _, six := range []bool{false, true} {
			_ = s.conn.Send(program.Bypass(at.Port, six, uint16(bypassTime/time.Second)).Mod())
		}
		if b.note(now) {
			n.limited(at, fmt.Sprintf("more than %d connections per second that match a redirection: they go direct for %v", beginRate, bypassTime))
		}
	}
	return true
}

// redirect gives switches the flows of a connection, and its first segment to the near agent, or to the server if it has flows on the far side alone. n.mu must be held.
func (n *Network) redirect(at fabric.PortID, g segment, c *relayed) {
	changes := map[*attached][]openflow.Message{}
	sides := []map[fabric.DPID][]program.Flow{c.FarFlows()}
	if c.near {
		sides = append(sides, c.NearFlows())
	}
	for _, side := range sides {
		for id, flows := range side {
			one := n.switches[id]
			if one == nil || !program.Watches(one.capabilities) {
				n.direct(at, g)
				return
			}
			for _, f := range flows {
				changes[one] = append(changes[one], f.Mod())
			}
		}
	}
	r := &n.redirection
	r.setups++
	r.relayed[g.Connection] = c
	n.changeFlows(changes, func(err error) {
		r.setups--
		if err == nil {
			r.counts.Redirected++
			if c.near {
				n.toAgent(c.Redirection, g)
			} else {
				copy(g.data[6:12], c.From.MAC[:])
				n.forward(at, g.frame)
			}
			return
		}
		r.counts.Failed++
		n.options.Log.Warn("a connection goes direct because switches did not take its flows", "client", c.Client, "server", c.Server, "error", err)
		n.forget(c, true, true)
		n.direct(at, g)
	})
}

// collect adds a message for each flow of the switches that are connected. n.mu must be held.
func (n *Network) collect(changes map[*attached][]openflow.Message, flows map[fabric.DPID][]program.Flow, message func(program.Flow) *openflow.FlowMod) {
	for id, all := range flows {
		if s := n.switches[id]; s != nil {
			for _, f := range all {
				changes[s] = append(changes[s], message(f))
			}
		}
	}
}

// toAgent sends the first segment of a connection to the near agent. n.mu must be held.
func (n *Network) toAgent(c program.Redirection, g segment) {
	s := n.switches[c.Near.At.Switch]
	if s == nil {
		return
	}
	data := slices.Clone(finished(g.data))
	copy(data[:6], c.Near.MAC[:])
	n.out(s, c.Near.At.Port, data)
}

// flowRemoved takes that the flows of a connection have ended at a switch because no packet came for long. n.mu must be held.
func (n *Network) flowRemoved(m *openflow.FlowRemoved) {
	if kind, ours := program.KindOf(m.Cookie); !ours || kind != program.KindRelayed || m.Reason != openflow.RemovedIdleTimeout {
		return
	}
	if c := n.redirection.relayed[program.ClientOf(m.Match)]; c != nil {
		n.forget(c, true, true)
	}
}

// relayEnded takes that an agent says that a connection has ended. n.mu must be held.
func (n *Network) relayEnded(agent fabric.HostID, c fabric.Connection) {
	one := n.redirection.relayed[c]
	if one == nil {
		return
	}
	near, far := one.near && one.Near.HostID == agent, one.far && one.Far.HostID == agent
	if !near && !far {
		return
	}
	time.AfterFunc(endDelay, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.redirection.relayed[c] == one {
			n.forget(one, near, far)
		}
	})
}

// forget deletes the flows of a connection on one side or both. n.mu must be held.
func (n *Network) forget(c *relayed, near, far bool) {
	changes := map[*attached][]openflow.Message{}
	if near && c.near {
		c.near = false
		n.collect(changes, c.NearFlows(), program.Flow.Delete)
	}
	if far && c.far {
		c.far = false
		n.collect(changes, c.FarFlows(), program.Flow.Delete)
	}
	n.changeLater(changes)
	if at := (fabric.Connection{Client: c.Client, Server: c.Server}); !c.near && !c.far && n.redirection.relayed[at] == c {
		delete(n.redirection.relayed, at)
	}
}

// Redirection returns what the controller has decided about connections.
func (n *Network) Redirection() RedirectionCounters {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.redirection.counts
}
