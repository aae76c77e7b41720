package live

import (
	"cmp"
	"slices"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow/session"
	"headgate.dev/headgate/unit"
)

// snapshot is what Status is made of. The loop is locked while it is taken, and frames of hosts wait: at 1,000 switches, 3,000 cables
// and 10,000 hosts for a third of the time that Status takes (BenchmarkStatus).
type snapshot struct {
	Status   // without what follows from the rest
	parts    fabric.Parts
	switches map[fabric.DPID]switchNow // those that are connected
	ports    []portNow                 // of parts.Switches, in their order
	links    map[fabric.LinkID]fabric.Link
	listed   []fabric.SwitchConfig
}

type switchNow struct {
	conn    *session.Conn
	current bool
	problem error
}

type portNow struct {
	up, heard, ready bool
	traffic          fabric.PortTraffic
	last             fabric.PortCounters
}

// Status returns the network as it is now.
func (n *Network) Status() Status {
	s := n.snapshot()
	return s.status()
}

func (n *Network) snapshot() snapshot {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	s := snapshot{
		Status: Status{
			At: now, Name: n.config.Name, Sites: n.config.Sites, Settled: !n.planPending() && (n.plan != nil || len(n.switches) == 0), Faults: n.faults(), Counters: n.counters,
			Relays: n.announcedRelays(), Redirects: len(n.redirections()) > 0, Redirected: len(n.redirection.relayed), Redirection: n.redirection.counts,
		},
		parts: n.parts(), switches: make(map[fabric.DPID]switchNow, len(n.switches)),
		links: n.config.links, listed: n.config.Switches, // they are replaced, and not changed
	}
	s.Removed, s.RemovedLinks = n.removed.list(now)
	for id, at := range n.switches {
		s.switches[id] = switchNow{at.conn, n.current(at), at.problem}
	}
	ports := 0
	for _, one := range s.parts.Switches {
		ports += len(one.Ports)
	}
	s.ports = make([]portNow, 0, ports)
	for _, one := range s.parts.Switches {
		for _, p := range one.Ports {
			id := fabric.PortID{Switch: one.ID, Port: p.No}
			var as portNow
			if up := n.ports[id]; up != nil {
				as.up, as.heard, as.ready = true, up.heard, up.ready
			}
			as.traffic, as.last = n.portTraffic(id, now)
			s.ports = append(s.ports, as)
		}
	}
	return s
}

// status makes the status of what was copied.
func (s *snapshot) status() Status {
	out := s.Status
	out.Hosts = s.parts.Hosts
	leaves := make(map[fabric.PortID]bool, len(s.parts.Links)) // of the ends of links, whether one leaves there
	for _, l := range s.parts.Links {
		if _, ok := leaves[l.To]; !ok {
			leaves[l.To] = false
		}
		leaves[l.From] = true
	}
	speeds, ports := make(map[fabric.PortID]unit.Rate, len(leaves)), make(map[fabric.PortID]*portNow, len(leaves)) // of those
	out.Switches = make([]SwitchStatus, 0, len(s.parts.Switches))
	next := 0
	for _, part := range s.parts.Switches {
		one := SwitchStatus{ID: part.ID, Name: part.Name, Site: part.Site, Capabilities: part.Capabilities, Problem: errAbsent, Ports: make([]PortStatus, 0, len(part.Ports))}
		if at, ok := s.switches[part.ID]; ok {
			one.Address, one.Desc, one.Problem, one.Current = at.conn.RemoteAddr().String(), at.conn.Desc(), at.problem, at.current
			one.SurplusPorts, one.UnknownStructures = at.conn.SurplusPorts(), at.conn.Counts().Unknown
			out.Settled = out.Settled && one.Current
		}
		for _, p := range part.Ports {
			id, as := fabric.PortID{Switch: part.ID, Port: p.No}, &s.ports[next]
			next++
			linked, end := leaves[id]
			if end {
				speeds[id], ports[id] = p.Speed, as
			}
			one.Ports = append(one.Ports, PortStatus{p, as.use(linked), as.traffic})
		}
		out.Switches = append(out.Switches, one)
	}
	out.Links = make([]LinkStatus, 0, len(s.parts.Links))
	for _, l := range s.parts.Links {
		from, to := cmp.Or(ports[l.From], &unread), cmp.Or(ports[l.To], &unread)
		assumed := l.Source == fabric.Reported && min(speeds[l.From], speeds[l.To]) == 0
		out.Links = append(out.Links, LinkStatus{l, assumed, fabric.LinkTraffic(from.traffic.Tx, to.traffic.Rx), from.last, to.last})
	}
	slices.SortFunc(out.Switches, func(a, b SwitchStatus) int { return cmp.Compare(a.ID, b.ID) })
	s.addMissing(&out)
	return out
}

// unread is a port of which nothing is known: its switch has not described it.
var unread = portNow{traffic: fabric.PortTraffic{Rx: fabric.Unmeasured(), Tx: fabric.Unmeasured()}}

// addMissing adds what an operator wrote and is not there.
func (s *snapshot) addMissing(out *Status) {
	there := make(map[fabric.DPID]bool, len(out.Switches))
	for _, one := range out.Switches {
		there[one.ID] = true
	}
	for _, one := range s.listed {
		if !there[one.ID] {
			out.Missing = append(out.Missing, one)
		}
	}
	up := make(map[fabric.LinkID]bool, len(out.Links))
	for _, l := range out.Links {
		up[l.LinkID] = true
	}
	for id := range s.links {
		if !up[id] {
			out.MissingLinks = append(out.MissingLinks, id)
		}
	}
	slices.SortFunc(out.MissingLinks, fabric.LinkID.Compare)
}

func (p *portNow) use(linked bool) PortUse {
	switch {
	case !p.up:
		return Unused
	case linked:
		return ToSwitch
	case p.heard:
		return Faulty
	case p.ready:
		return ToHosts
	}
	return Undecided
}
