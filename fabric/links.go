package fabric

import (
	"fmt"
	"slices"
	"time"
)

// LinkLearner finds links by discovery frames (LLDP, IEEE 802.1AB) that one port sent and another received. It is a
// state machine without a clock: each call has the time, which never goes back.
//
// A link is up in both directions, or not at all: each of two ports hears the other, and no third one. A direction
// that is not observed for the timeout has expired, if frames were sent and would have been observed. What is not a link has a fault.
type LinkLearner struct {
	timeout time.Duration
	label   func(PortID) string
	cabling map[PortID]PortID
	ears    map[PortID]*ear
	links   []LinkID                   // that are up, nil after one of them has changed
	quiet   time.Time                  // nothing expires before
	hearers map[PortID]map[PortID]bool // which ports hear a port
}

// ear is what one port hears.
type ear struct {
	from map[PortID]interval
	// unanswered is since when the port hears another that does not hear it, zero if that is not so. unheard reports that this has
	// lasted for the timeout.
	unanswered time.Time
	unheard    bool
	state      earState
}

// interval is the times of the first and the last frame from a port.
type interval struct{ first, last time.Time }

// earState is what follows for one port.
type earState struct {
	linked bool
	peer   PortID // that the port hears; of several the last
	fault  FaultKind
	other  PortID // the second port of a shared segment
	// miswired reports that peer is not the configured port, expected.
	miswired bool
	expected PortID
}

// NewLinkLearner returns a learner without links. label prints ports in texts; nil prints datapath ids and numbers.
func NewLinkLearner(timeout time.Duration, label func(PortID) string) *LinkLearner {
	if label == nil {
		label = PortID.String
	}
	return &LinkLearner{timeout: timeout, label: label, ears: map[PortID]*ear{}, hearers: map[PortID]map[PortID]bool{}}
}

// Configure replaces the configured cables. Links that are up at one of their ports must be these.
func (l *LinkLearner) Configure(links []LinkID, now time.Time) []Event {
	l.cabling = map[PortID]PortID{}
	for _, c := range links {
		l.cabling[c.To], l.cabling[c.From] = c.From, c.To
	}
	var all []PortID
	for p := range l.ears {
		all = append(all, p)
	}
	return l.update(all, now)
}

// Observe takes a discovery frame that from sent and to received.
func (l *LinkLearner) Observe(from, to PortID, now time.Time) []Event {
	e := l.ears[to]
	if e == nil {
		e = &ear{from: map[PortID]interval{}}
		l.ears[to] = e
	}
	heard, known := e.from[from]
	if !known || now.Sub(heard.last) >= l.timeout {
		heard.first = now
	}
	heard.last = now
	e.from[from] = heard
	if known && len(e.from) == 1 && e.state.linked {
		return nil // nothing new
	}
	if l.hearers[from] == nil {
		l.hearers[from] = map[PortID]bool{}
	}
	l.hearers[from][to] = true
	return l.update(l.around(to), now)
}

// PortDown takes the failure of a port: its links are down at once.
func (l *LinkLearner) PortDown(p PortID, now time.Time) []Event {
	affected := l.around(p)
	if e := l.ears[p]; e != nil {
		for from := range e.from {
			l.forget(from, p)
		}
	}
	for to := range l.hearers[p] {
		affected = append(affected, l.around(to)...)
		l.forget(p, to)
	}
	return l.update(affected, now)
}

// SwitchGone takes the failure or removal of a switch: as PortDown of all its ports.
func (l *LinkLearner) SwitchGone(id DPID, now time.Time) []Event {
	var ports []PortID
	for p := range l.ears {
		if p.Switch == id {
			ports = append(ports, p)
		}
	}
	for p := range l.hearers {
		if p.Switch == id && l.ears[p] == nil {
			ports = append(ports, p)
		}
	}
	slices.SortFunc(ports, PortID.Compare)
	var events []Event
	for _, p := range ports {
		events = append(events, l.PortDown(p, now)...)
	}
	return events
}

// Hold takes switches that cannot send or report discovery frames, because their channels are silent. passes says of the port at
// the other end of a link whether frames pass between it and such a switch: the link stays, as if it had been observed now, or is
// down. A link between two of them stays.
func (l *LinkLearner) Hold(silent map[DPID]bool, passes func(PortID) bool, now time.Time) []Event {
	var affected []PortID
	for to, e := range l.ears {
		for from, heard := range e.from {
			first, second := silent[from.Switch], silent[to.Switch]
			if !first && !second {
				continue
			}
			if first && second || first && passes(to) || second && passes(from) {
				heard.last = now
				e.from[from] = heard
				continue
			}
			affected = append(affected, l.around(to)...)
			l.forget(from, to)
		}
	}
	return l.update(affected, now)
}

// Expire removes directions that were not observed for the timeout, and names links that stayed one-way for as long. The frames of
// such a direction can be on their way, or were never sent: sure reports whether it is known that nothing passes. It is called again
// each time, until it is, or a frame is observed. A nil sure is always true.
// The more often Expire is called, the sooner a silent failure is found.
func (l *LinkLearner) Expire(now time.Time, sure func(LinkID) bool) []Event {
	if now.Before(l.quiet) {
		return nil
	}
	var affected []PortID
	quiet := now
	for to, e := range l.ears {
		if !e.unanswered.IsZero() && e.unanswered.Before(quiet) {
			quiet = e.unanswered
		}
		if !e.unanswered.IsZero() && now.Sub(e.unanswered) >= l.timeout && (sure == nil || sure(LinkID{to, e.state.peer})) {
			e.unheard = true
			affected = append(affected, to)
		}
		for from, heard := range e.from {
			if heard.last.Before(quiet) {
				quiet = heard.last
			}
			if now.Sub(heard.last) >= l.timeout && (sure == nil || sure(LinkID{from, to})) {
				affected = append(affected, l.around(to)...)
				l.forget(from, to)
			}
		}
	}
	l.quiet = quiet.Add(l.timeout) // what is observed from now on expires later
	return l.update(affected, now)
}

// Links returns the links that are up, both directions of each, in order. The list must not be modified.
func (l *LinkLearner) Links() []LinkID {
	if l.links == nil {
		for to, e := range l.ears {
			if e.state.linked {
				l.links = append(l.links, LinkID{e.state.peer, to})
			}
		}
		slices.SortFunc(l.links, LinkID.Compare)
	}
	return l.links
}

// Peer returns the port at the other end of a port's link, and false if it has none.
func (l *LinkLearner) Peer(p PortID) (PortID, bool) {
	if e := l.ears[p]; e != nil && e.state.linked {
		return e.state.peer, true
	}
	return PortID{}, false
}

// Faults returns the faults of all ports, in the order of ports.
func (l *LinkLearner) Faults() []Fault {
	var faults []Fault
	for p, e := range l.ears {
		faults = append(faults, l.faults(p, e.state)...)
	}
	slices.SortStableFunc(faults, func(a, b Fault) int { return a.Port.Compare(b.Port) })
	return faults
}

func (l *LinkLearner) forget(from, to PortID) {
	delete(l.ears[to].from, from)
	delete(l.hearers[from], to)
	if len(l.hearers[from]) == 0 {
		delete(l.hearers, from)
	}
}

// around returns a port, the ports that it hears, and those that hear it: their states can depend on it.
func (l *LinkLearner) around(p PortID) []PortID {
	ports := []PortID{p}
	if e := l.ears[p]; e != nil {
		for from := range e.from {
			ports = append(ports, from)
		}
	}
	for to := range l.hearers[p] {
		ports = append(ports, to)
	}
	return ports
}

// update recomputes the states of ports, and returns what changed, in the order of ports.
func (l *LinkLearner) update(ports []PortID, now time.Time) []Event {
	slices.SortFunc(ports, PortID.Compare)
	var events []Event
	for _, p := range slices.Compact(ports) {
		e := l.ears[p]
		if e == nil {
			continue
		}
		old := e.state
		if e.state = l.state(p, e, now); e.state.linked != old.linked || e.state.peer != old.peer {
			l.links = nil
		}
		events = append(events, l.changes(p, old, e.state, now)...)
		if len(e.from) == 0 {
			delete(l.ears, p)
		}
	}
	return events
}

// clean returns the port that a port hears, and false if there is none or it hears several. A port that was heard and is
// silent since another is heard was replaced: the cable was moved.
func (l *LinkLearner) clean(p PortID) (peer, other PortID, ok bool) {
	e := l.ears[p]
	if e == nil || len(e.from) == 0 {
		return PortID{}, PortID{}, false
	}
	var last interval
	for from, heard := range e.from {
		if heard.last.After(last.last) || heard.last.Equal(last.last) && (last.first.IsZero() || from.Compare(peer) < 0) {
			peer, last = from, heard
		}
	}
	for from, heard := range e.from {
		if from != peer && !heard.last.Before(last.first) && (other == PortID{} || from.Compare(other) < 0) {
			other = from
		}
	}
	return peer, other, other == PortID{}
}

func (l *LinkLearner) state(p PortID, e *ear, now time.Time) earState {
	peer, other, ok := l.clean(p)
	s := earState{peer: peer}
	waits, unheard := e.unanswered, e.unheard
	e.unanswered, e.unheard = time.Time{}, false
	switch {
	case len(e.from) == 0:
		return s
	case !ok:
		s.fault, s.other = Shared, other
		return s
	case peer.Switch == p.Switch:
		s.fault = Looped
		return s
	}
	if expected, configured := l.cabling[p]; configured && expected != peer {
		s.miswired, s.expected = true, expected
	}
	if back, _, clean := l.clean(peer); clean && back == p {
		s.linked = true
		return s
	}
	if !l.hearers[p][peer] {
		// At first both directions are heard one after the other. A link that was up has no such excuse.
		switch {
		case e.state.linked && e.state.peer == peer, e.state.fault == OneWay && e.state.peer == peer:
			s.fault = OneWay
		case waits.IsZero() || e.state.peer != peer:
			e.unanswered = now
		case unheard:
			s.fault = OneWay
		default:
			e.unanswered = waits
		}
	}
	return s
}

// changes returns the events between two states of a port.
func (l *LinkLearner) changes(p PortID, old, now earState, t time.Time) []Event {
	var events []Event
	if old.linked && (!now.linked || old.peer != now.peer) {
		id := LinkID{old.peer, p}
		events = append(events, Event{Time: t, Kind: LinkRemoved, Link: id, Text: "link " + l.label(old.peer) + " -> " + l.label(p) + " is down"})
	}
	if now.linked && (!old.linked || old.peer != now.peer) {
		id := LinkID{now.peer, p}
		events = append(events, Event{Time: t, Kind: LinkAdded, Link: id, Text: "link " + l.label(now.peer) + " -> " + l.label(p) + " is up"})
	}
	was, is := l.faults(p, old), l.faults(p, now)
	for _, f := range was {
		if !slices.Contains(is, f) {
			events = append(events, Event{Time: t, Kind: LinkFaultCleared, Port: p, Text: fmt.Sprintf("port %s is no longer %s", l.label(p), f.Kind)})
		}
	}
	for _, f := range is {
		if !slices.Contains(was, f) {
			events = append(events, Event{Time: t, Kind: LinkFaulty, Port: p, Text: f.Text})
		}
	}
	return events
}

func (l *LinkLearner) faults(p PortID, s earState) []Fault {
	if s.fault == "" && !s.miswired {
		return nil
	}
	var faults []Fault
	add := func(kind FaultKind, format string, args ...any) {
		faults = append(faults, Fault{kind, p, s.peer, fmt.Sprintf(format, args...)})
	}
	port, peer := l.label(p), l.label(s.peer)
	switch s.fault {
	case OneWay:
		add(OneWay, "frames pass from %s to %s, but not back: check the cable and the configuration of both ports", peer, port)
	case Looped:
		add(Looped, "port %s receives its switch's own frames from %s: remove the cable", port, peer)
	case Shared:
		a, b := s.peer, s.other
		if b.Compare(a) < 0 {
			a, b = b, a
		}
		faults = append(faults, Fault{Shared, p, a, fmt.Sprintf("port %s receives frames from both %s and %s: connect each pair of ports by a cable of its own, without a hub or a switch of another network between them", port, l.label(a), l.label(b))})
	}
	if s.miswired {
		add(Miswired, "port %s is connected to %s, but the configuration says %s: correct the cable or the configuration", port, peer, l.label(s.expected))
	}
	return faults
}
