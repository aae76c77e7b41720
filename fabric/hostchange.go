package fabric

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// claim takes addresses that a host uses. An address stays with its host until that host is gone: expired, or its port
// is down. It reports whether all addresses are the host's now.
func (l *HostLearner) claim(h *station, list []netip.Addr, now time.Time) (ok bool, events []Event) {
	ok = true
	for _, a := range list {
		a = a.Unmap().WithZone("")
		if !hostAddr(a) {
			continue
		}
		owner, taken := l.owner(h.VLAN, a)
		switch {
		case taken && owner == h:
			h.addrs[a] = now
			continue
		case taken && !l.gone(owner, a, now):
			ok = false
			events = l.note(events, now, Event{Kind: AddressClaimed, Host: owner.HostID, Port: h.At},
				fmt.Sprintf("address %v belongs to host %s, and host %s at %s uses it too: give one of them another address", a, owner.HostID, h.HostID, l.label(h.At)))
			continue
		case h.fixed:
			ok = false
			events = l.note(events, now, Event{Kind: AddressClaimed, Host: h.HostID, Port: h.At},
				fmt.Sprintf("host %s uses the address %v, which is not one of its configured addresses: add it to the configuration, or remove it from the host", h.label(), a))
			continue
		case len(h.addrs) >= l.rules.PerHost:
			ok = false
			events = l.note(events, now, Event{Kind: HostLimit, Host: h.HostID, Port: h.At},
				fmt.Sprintf("host %s has %s, the maximum: further ones are not learned until one expires", h.label(), addresses(len(h.addrs))))
			continue
		case taken:
			l.take(owner, a)
			events = append(events, Event{Time: now, Kind: HostChanged, Host: owner.HostID, Port: owner.At, Text: fmt.Sprintf("host %s no longer has the address %v", owner.HostID, a)})
		}
		l.give(h, a, now)
		events = append(events, Event{Time: now, Kind: HostChanged, Host: h.HostID, Port: h.At, Text: fmt.Sprintf("host %s has the address %v", h.label(), a)})
	}
	return ok, events
}

func addresses(n int) string {
	if n == 1 {
		return "1 address"
	}
	return fmt.Sprintf("%d addresses", n)
}

// gone reports whether a host no longer has an address.
func (l *HostLearner) gone(h *station, a netip.Addr, now time.Time) bool {
	return !h.fixed && (l.down[h.At] || now.Sub(h.addrs[a]) >= l.rules.Expiry)
}

// Expire removes hosts and addresses that were not observed for the expiry, and moves hosts that did not answer at their
// old port. Call it a few times in each Silence: it looks at all hosts only 64 times in each Expiry.
func (l *HostLearner) Expire(now time.Time) []Event {
	var events []Event
	for _, h := range l.sorted(true) {
		if now.Sub(h.since) < l.rules.Silence {
			continue
		}
		if p := h.candidate; l.down[p] {
			l.settle(h)
		} else {
			_, more := l.move(h, p, now)
			events = append(events, more...)
		}
	}
	if now.Sub(l.scanned) < l.rules.Expiry/64 {
		return events
	}
	l.scanned, l.silent = now, nil
	for _, h := range l.sorted(false) {
		if h.Learned != FromConfiguration && now.Sub(h.seen) >= l.rules.Expiry {
			events = append(events, l.remove(h, now, "expired"))
			continue
		}
		if h.fixed {
			continue
		}
		for _, a := range h.host().Addrs {
			if len(l.silent) == 0 || l.silent[len(l.silent)-1] != h.HostID {
				if now.Sub(h.addrs[a]) >= l.rules.Expiry/2 {
					l.silent = append(l.silent, h.HostID)
				}
			}
			if now.Sub(h.addrs[a]) >= l.rules.Expiry {
				l.take(h, a)
				events = append(events, Event{Time: now, Kind: HostChanged, Host: h.HostID, Port: h.At, Text: fmt.Sprintf("host %s no longer has the address %v", h.label(), a)})
			}
		}
	}
	for n, last := range l.noted {
		if now.Sub(last) >= repeat {
			delete(l.noted, n)
		}
	}
	return events
}

// Silent returns at most so many hosts with addresses that were not observed for half the expiry. The caller asks them: a network can
// carry what hosts ask each other without showing it. Each is returned once after each look of Expire at all hosts.
func (l *HostLearner) Silent(most int) (all []Host) {
	for len(l.silent) > 0 && len(all) < most {
		if h, ok := l.Host(l.silent[0]); ok && len(h.Addrs) > 0 {
			all = append(all, h)
		}
		l.silent = l.silent[1:]
	}
	return all
}

// sorted returns all hosts, or only those with a candidate, in the order of their identities, so that events do not depend on the order of a map.
func (l *HostLearner) sorted(onlyMoving bool) []*station {
	var all []*station
	if onlyMoving {
		for id := range l.moving {
			all = append(all, l.hosts[id])
		}
	} else {
		for _, h := range l.hosts {
			all = append(all, h)
		}
	}
	return inOrder(all)
}

func inOrder(all []*station) []*station {
	slices.SortFunc(all, func(a, b *station) int { return a.HostID.Compare(b.HostID) })
	return all
}

// PortDown takes the failure of a port. Its hosts stay known, but may appear elsewhere at once, and their addresses may be
// taken.
func (l *HostLearner) PortDown(p PortID) {
	if l.matters(p) {
		l.down[p] = true
	}
}

// PortUp takes the return of a port.
func (l *HostLearner) PortUp(p PortID) { delete(l.down, p) }

// SetLinkPorts takes all ports that carry links. They have no hosts: those that were learned there are removed, and
// frames that arrive there are not evidence of a host.
func (l *HostLearner) SetLinkPorts(ports []PortID, now time.Time) []Event {
	l.links = map[PortID]bool{}
	for _, p := range ports {
		l.links[p] = true
	}
	var there []*station
	for _, h := range l.hosts {
		if l.links[h.candidate] {
			l.settle(h)
		}
		if l.links[h.At] && h.Learned != FromConfiguration {
			there = append(there, h)
		}
	}
	var events []Event
	for _, h := range inOrder(there) {
		events = append(events, l.remove(h, now, "removed, because its port "+l.label(h.At)+" has a link"))
	}
	return events
}

// Configure replaces the configured hosts. They take the places and addresses of learned ones.
func (l *HostLearner) Configure(hosts []Host, now time.Time) []Event {
	var events []Event
	listed := map[HostID]bool{}
	for _, c := range hosts {
		listed[c.HostID] = true
	}
	for _, h := range l.sorted(false) {
		if h.Learned == FromConfiguration && !listed[h.HostID] {
			events = append(events, l.remove(h, now, "removed from the configuration"))
		}
	}
	for _, c := range hosts {
		h, known := l.hosts[c.HostID]
		if !known {
			h = &station{Host: Host{HostID: c.HostID, At: c.At}, addrs: map[netip.Addr]time.Time{}}
			events = append(events, Event{Time: now, Kind: HostAdded, Host: c.HostID, Port: c.At, Text: "host " + c.label() + " is configured at " + l.label(c.At)})
		} else if h.At != c.At {
			events = append(events, Event{Time: now, Kind: HostMoved, Host: c.HostID, Port: c.At, Text: "host " + c.label() + " is configured at " + l.label(c.At) + ", and was at " + l.label(h.At)})
		}
		l.place(h, c.At)
		l.settle(h)
		l.describe(h, c.Name, FromConfiguration)
		h.seen, h.fixed = now, len(c.Addrs) > 0
		if !h.fixed {
			continue
		}
		for a := range h.addrs {
			l.take(h, a)
		}
		for _, a := range c.Addrs {
			if owner, taken := l.owner(c.VLAN, a); taken {
				l.take(owner, a)
				events = append(events, Event{Time: now, Kind: HostChanged, Host: owner.HostID, Port: owner.At, Text: fmt.Sprintf("host %s no longer has the address %v, which is configured for host %s", owner.HostID, a, c.label())})
			}
			l.give(h, a, now)
		}
	}
	return events
}

func (l *HostLearner) remove(h *station, now time.Time, why string) Event {
	l.settle(h)
	l.drop(h)
	l.forgetDown(h.At)
	return Event{Time: now, Kind: HostRemoved, Host: h.HostID, Port: h.At, Text: "host " + h.label() + " at " + l.label(h.At) + " is " + why}
}

// label prints the name of a host and its identity.
func (h Host) label() string {
	if h.Name == "" {
		return h.HostID.String()
	}
	return h.Name + " (" + h.HostID.String() + ")"
}
