package fabric

import (
	"fmt"
	"net/netip"
	"time"
)

// HostRules bound what a HostLearner keeps.
type HostRules struct {
	// Silence is how long a host must be silent at its port, after it was observed at another, until it has moved. The
	// caller asks the host at its old port meanwhile, so a few round trips are enough.
	Silence time.Duration
	// Expiry is how long a host, or an address of it, is kept without being observed. It can be kept 1/64 longer.
	Expiry time.Duration
	// PerPort, Total and PerHost are the greatest numbers of hosts at a port, of hosts, and of addresses of a host.
	PerPort, Total, PerHost int
}

// repeat is after how long the same refusal is reported again, so that a hostile port cannot flood the log.
const repeat = time.Minute

// HostLearner finds hosts by frames that they sent. It is a state machine without a clock: each call has the time,
// which never goes back.
//
// A host stays at its port until there is evidence that it left: the port is down, or it does not answer there while it
// is observed elsewhere. So a port cannot take the traffic of a host that answers. Configured hosts never move or expire; those that
// are configured with addresses have no others.
type HostLearner struct {
	hostTable
	rules HostRules
	label func(PortID) string
	links map[PortID]bool
	down  map[PortID]bool // of the ports of hosts and candidates
	// trusted are ports without a bound on hosts.
	trusted map[PortID]bool
	noted   map[note]time.Time
	// moving are the hosts with a candidate, and scanned is when Expire last looked at all hosts.
	moving  map[HostID]bool
	scanned time.Time
	// silent are those that Silent returns next.
	silent []HostID
}

// note identifies a refusal.
type note struct {
	kind EventKind
	port PortID
	host HostID
}

// Sighting is a frame that a host sent.
type Sighting struct {
	HostID
	// Addrs are the addresses that the frame shows to be the host's, and no others: the sender's of ARP, the target of a
	// neighbour advertisement, the leased one.
	Addrs []netip.Addr
	At    PortID
	By    Learned
}

// NewHostLearner returns a learner without hosts. label prints ports in texts; nil prints datapath ids and numbers.
func NewHostLearner(rules HostRules, label func(PortID) string) *HostLearner {
	if label == nil {
		label = PortID.String
	}
	return &HostLearner{
		hostTable: newHostTable(), rules: rules, label: label,
		links: map[PortID]bool{}, down: map[PortID]bool{}, noted: map[note]time.Time{},
		moving: map[HostID]bool{},
	}
}

// SetBounds replaces the greatest number of hosts at a port, and the ports that have no such bound: those of routers and of
// switches of other networks.
func (l *HostLearner) SetBounds(perPort int, trusted []PortID) {
	l.rules.PerPort, l.trusted = perPort, map[PortID]bool{}
	for _, p := range trusted {
		l.trusted[p] = true
	}
}

// Hosts returns all hosts, in the order of their identities. The list must not be modified.
func (l *HostLearner) Hosts() []Host { return l.all() }

// Host returns a host.
func (l *HostLearner) Host(id HostID) (Host, bool) {
	s, ok := l.hosts[id]
	if !ok {
		return Host{}, false
	}
	return s.host(), true
}

// Owner returns the host that an address belongs to, also while the host's port is down.
func (l *HostLearner) Owner(a netip.Addr, vlan uint16) (HostID, bool) {
	h, ok := l.owner(vlan, a.Unmap().WithZone(""))
	if !ok {
		return HostID{}, false
	}
	return h.HostID, true
}

// Observe takes a sighting. It reports whether the host is at that port, and has all those addresses; a frame of which
// this is false should not be forwarded or answered.
func (l *HostLearner) Observe(s Sighting, now time.Time) (ok bool, events []Event) {
	if s.MAC == (MAC{}) || s.MAC.Group() || s.VLAN > maxVLAN || l.links[s.At] {
		return false, nil
	}
	delete(l.down, s.At) // it passes frames
	h, known := l.hosts[s.HostID]
	switch {
	case !known:
		if h, events = l.admit(s, now); h == nil {
			return false, events
		}
	case h.At != s.At:
		if ok, events = l.elsewhere(h, s.At, now); !ok {
			return false, events
		}
	case h.candidate != PortID{}:
		port := h.candidate
		l.settle(h)
		events = l.note(events, now, Event{Kind: HostStayed, Host: h.HostID, Port: port},
			"host "+h.label()+" answers at "+l.label(h.At)+": a frame with its MAC at "+l.label(port)+" was not its own")
	}
	h.seen = now
	if s.By > h.Learned && s.By != FromConfiguration && h.Learned != FromConfiguration {
		l.describe(h, h.Name, s.By)
	}
	ok, more := l.claim(h, s.Addrs, now)
	return ok, append(events, more...)
}

// admit adds a host, or returns nil if a bound is reached.
func (l *HostLearner) admit(s Sighting, now time.Time) (*station, []Event) {
	if e := l.full(s.At); e != "" {
		return nil, l.note(nil, now, Event{Kind: HostLimit, Port: s.At}, e)
	}
	h := &station{Host: Host{HostID: s.HostID, At: s.At, Learned: min(s.By, FromDHCP)}, seen: now, addrs: map[netip.Addr]time.Time{}}
	l.place(h, s.At)
	return h, []Event{{Time: now, Kind: HostAdded, Host: h.HostID, Port: h.At, Text: "host " + h.label() + " is at " + l.label(h.At)}}
}

// full returns why a port can have no further host, empty if it can.
func (l *HostLearner) full(p PortID) string {
	switch {
	case len(l.at[p]) >= l.rules.PerPort && !l.trusted[p]:
		return "port " + l.label(p) + " has " + count(l.rules.PerPort, "host") + ", the maximum: further hosts there are not learned until one expires"
	case len(l.hosts) >= l.rules.Total:
		return "the network has " + count(l.rules.Total, "host") + ", the maximum: further hosts are not learned until one expires; the last was at port " + l.label(p)
	}
	return ""
}

// elsewhere takes a sighting of a host at a port that is not its own, and reports whether the host is there now.
func (l *HostLearner) elsewhere(h *station, p PortID, now time.Time) (moved bool, events []Event) {
	switch {
	case h.Learned == FromConfiguration:
		return false, l.note(nil, now, Event{Kind: HostStayed, Host: h.HostID, Port: p},
			"host "+h.label()+" is configured at "+l.label(h.At)+": a frame with its MAC at "+l.label(p)+" is refused; correct the configuration if the host was moved")
	case l.down[h.At], now.Sub(h.seen) >= l.rules.Expiry,
		h.candidate == p && now.Sub(h.since) >= l.rules.Silence:
		return l.move(h, p, now)
	case h.candidate != PortID{}:
		return false, nil
	}
	h.candidate, h.since = p, now
	l.moving[h.HostID] = true
	return false, []Event{{Time: now, Kind: HostElsewhere, Host: h.HostID, Port: p,
		Text: "host " + h.label() + " is at " + l.label(h.At) + ", and was observed at " + l.label(p)}}
}

// move puts a host at another port, if there is no bound against it.
func (l *HostLearner) move(h *station, p PortID, now time.Time) (moved bool, events []Event) {
	l.settle(h)
	if len(l.at[p]) >= l.rules.PerPort && !l.trusted[p] {
		return false, l.note(nil, now, Event{Kind: HostLimit, Port: p}, l.full(p))
	}
	from := h.At
	l.place(h, p)
	h.seen = now
	return true, []Event{{Time: now, Kind: HostMoved, Host: h.HostID, Port: p, Text: "host " + h.label() + " moved from " + l.label(from) + " to " + l.label(p)}}
}

// settle ends the doubt about where a host is.
func (l *HostLearner) settle(h *station) {
	p := h.candidate
	h.candidate = PortID{}
	delete(l.moving, h.HostID)
	l.forgetDown(p)
}

// matters reports whether hosts are at a port, or may have moved to it.
func (l *HostLearner) matters(p PortID) bool {
	if len(l.at[p]) > 0 {
		return true
	}
	for id := range l.moving {
		if l.hosts[id].candidate == p {
			return true
		}
	}
	return false
}

// forgetDown forgets that a port is down if that no longer matters. A switch can name any number of ports.
func (l *HostLearner) forgetDown(p PortID) {
	if l.down[p] && !l.matters(p) {
		delete(l.down, p)
	}
}

// place puts a host at a port.
func (l *HostLearner) place(h *station, p PortID) {
	from := h.At
	l.put(h, p)
	l.forgetDown(from)
}

// note appends an event with a text, unless the same one was reported a moment ago.
func (l *HostLearner) note(events []Event, now time.Time, e Event, text string) []Event {
	key := note{e.Kind, e.Port, e.Host}
	if e.Kind == HostStayed || e.Kind == AddressClaimed {
		key.port = PortID{} // an attacker could use many ports
	}
	if last, ok := l.noted[key]; ok && now.Sub(last) < repeat {
		return events
	}
	l.noted[key] = now
	e.Time, e.Text = now, text
	return append(events, e)
}

// count prints a number of things.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
