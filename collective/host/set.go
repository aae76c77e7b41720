package host

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"net/netip"
	"os"
	"slices"
	"time"

	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/collective/sockops"
	"headgate.dev/headgate/internal/ask"
	"headgate.dev/headgate/internal/cgroup2"
	"headgate.dev/headgate/unit"
)

// Bounds of a window in packets, chosen by Headgate.
const (
	// minWindow: with a window of one, a lost packet waits for the timer.
	minWindow = 2
	// noThreshold is the slow start threshold before the first loss (TCP_INFINITE_SSTHRESH).
	noThreshold = 0x7fffffff
	// unboundedWindow is no effective bound: 16 GB in flight.
	unboundedWindow = 1<<24 - 1
)

// set is a policy in operation.
type set struct {
	policy    collective.Policy
	number    uint32
	users     []uint32 // users whose programs may join
	cgroup    cgroupRef
	lastError string        // last logged error of looking up the cgroup
	since     time.Duration // when the set was created
	// parts are by destination or bottleneck, or only one with the zero partKey; members are those of all
	// parts.
	parts   map[partKey]*part
	members map[collective.ID]*member
	over    []Congestion // that have ended since the last look
	// bottlenecks are those of the host, which sets may have in common.
	bottlenecks bottlenecks
	needs       *collective.Needs
	young       map[collective.Role]int // connections whose own need is not known
	found       collective.Bottlenecks
	// agreed is for how many slow ticks connections, by their IDs in order, have been found to share a bottleneck.
	agreed map[string]int
	// restored are connections of an earlier process that have not been seen since.
	restored map[collective.ID]keptConnection
}

// bottlenecks are the controls of sets that have a bottleneck in common, by its name and destination.
type bottlenecks map[bottleneck]*collective.Control

type bottleneck struct {
	name string
	to   netip.Addr
}

// control returns the control of a bottleneck, or a new one for "".
func (b bottlenecks) control(name string, to netip.Addr) *collective.Control {
	if name == "" {
		return &collective.Control{}
	}
	key := bottleneck{name, to}
	if b[key] == nil {
		b[key] = &collective.Control{}
	}
	return b[key]
}

// cgroupRef is the cgroup of a set; the zero cgroupRef is none.
type cgroupRef struct {
	path string
	id   uint64
}

// partKey identifies a part: the destination, or the first connection that was found at a bottleneck.
type partKey struct {
	to         netip.Addr
	bottleneck collective.ID
}

// part is the connections that are controlled together.
type part struct {
	partKey
	control   control
	learns    *collective.Control // control, if it is Headgate's
	members   map[collective.ID]*member
	capped    bool                  // some members have caps
	suspended time.Duration         // when it was suspended the last time
	ended     []CongestedConnection // in the present congestion
	phase     phase
}

// control is a control cycle: Headgate's or the seed's.
type control interface {
	Observe(collective.ID, collective.Reading)
	Remove(collective.ID)
	Caps(now time.Duration) iter.Seq2[collective.ID, collective.Cap]
	Controlling() bool
	LearnedRate(collective.ID) (unit.Rate, bool)
	Base(collective.ID) time.Duration
	SetWeight(collective.ID, float64)
}

// member is a connection at the last look.
type member struct {
	*sockops.Connection
	part   *part
	role   collective.Role
	since  time.Duration // when it was added
	cap    collective.Cap
	weight float64 // configured weight
	rate   rate
	counted
}

func newSet(p collective.Policy) (*set, error) {
	s := &set{policy: p, number: number(p.Name), since: sockops.Now(), parts: map[partKey]*part{}, members: map[collective.ID]*member{}, needs: &collective.Needs{}, young: map[collective.Role]int{}, restored: map[collective.ID]keptConnection{}}
	for _, name := range p.Join {
		n, err := ask.User(name)
		if err != nil {
			return nil, fmt.Errorf("set %s: cannot resolve user %s: %w", p.Name, name, err)
		}
		s.users = append(s.users, n)
	}
	if !p.PerDestination && !p.PerBottleneck && p.Bottleneck == "" {
		s.part(partKey{})
	}
	return s, nil
}

func (s *set) sockopsSet() sockops.Set {
	return sockops.Set{Number: s.number, Cgroup: s.cgroup.path, Rules: s.policy.Rules}
}

// find looks up the cgroup of the set, and reports whether it has changed.
func (s *set) find() (moved bool, err error) {
	path := s.policy.Cgroup
	if s.policy.Unit != "" {
		path = cgroup2.Unit(s.policy.Unit)
	}
	var at cgroupRef
	if path != "" {
		at.path = path
		at.id, err = cgroup2.ID(path)
	}
	if errors.Is(err, os.ErrNotExist) {
		at, err = cgroupRef{}, nil
	}
	if err != nil {
		return false, err
	}
	moved = at != s.cgroup
	s.cgroup = at
	return moved, nil
}

// part returns the part of a destination or bottleneck.
func (s *set) part(k partKey) *part {
	p := s.parts[k]
	if p == nil {
		p = &part{partKey: k, members: map[collective.ID]*member{}}
		if s.policy.PaperControl {
			p.control = &collective.PaperControl{}
		} else {
			p.learns = s.bottlenecks.control(s.policy.Bottleneck, k.to)
			p.control = p.learns
		}
		p.phase.begin(sockops.Now(), false)
		s.parts[k] = p
	}
	return p
}

// pause returns the time until the next look that the set needs.
func (s *set) pause() time.Duration {
	if s.policy.PaperControl { // it counts round trips
		pause := Tick
		for _, m := range s.members {
			if m.RTT > 0 {
				pause = min(pause, max(m.RTT, minTick))
			}
		}
		return pause
	}
	for _, p := range s.parts {
		if p.control.Controlling() {
			return Tick
		}
	}
	return calmTick
}

// addConnection makes a connection a member.
func (s *set) addConnection(c *sockops.Connection) *member {
	k := partKey{}
	switch {
	case s.policy.PerDestination:
		k.to = c.Remote.Addr()
	case s.policy.PerBottleneck:
		k.bottleneck = c.ID // until it is found with others
	}
	p := s.part(k)
	m := &member{Connection: c, part: p, since: sockops.Now(), role: s.role(c.Passive, c.Joined, c.Local, c.Remote), weight: s.policy.Weight(c.Local, c.Remote)}
	if c.Joined {
		m.weight = c.Weight
	}
	if m.weight > 0 {
		p.control.SetWeight(c.ID, m.weight)
	}
	if s.policy.Bottleneck != "" {
		p.learns.SetClass(c.ID, s.policy.Name, s.policy.SetWeight)
	}
	s.inherit(m)
	m.count(m.since)
	p.members[c.ID], s.members[c.ID] = m, m
	return m
}

// observe passes a new reading of a connection to the control.
func (s *set) observe(c *sockops.Connection) {
	m := s.members[c.ID]
	if m == nil {
		m = s.addConnection(c)
		if c.Rounds == 0 {
			return
		}
	}
	p, before := m.part, m.Connection
	if m.Connection = c; before.Rounds == 0 {
		m.count(c.Seen)
	}
	if before != c && c.Rounds == before.Rounds && c.Timeouts == before.Timeouts && c.Retransmits == before.Retransmits {
		return
	}
	if before.Rounds > 0 { // the first counts of a connection that was already open include its whole life
		p.phase.count(c.Segments-before.Segments, c.Retransmits-before.Retransmits)
	}
	r := collective.Reading{
		At: c.Seen, RTT: c.RTT, Newest: c.Newest, Acked: c.Acked, Backlog: unit.Bytes(c.Backlog), ReceiverFull: c.ReceiverFull,
		Lost: int(c.Lost - before.Lost), Recovery: c.LossAt, Window: int(c.Window), Threshold: int(c.Threshold), Reno: c.Reno,
	}
	if c.Threshold >= noThreshold {
		r.Threshold = 0
	}
	if c.Marked != before.Marked {
		r.Events |= collective.ECN
	}
	if c.Timeouts != before.Timeouts {
		r.Events |= collective.Timeout
	}
	if c.Resent != before.Resent {
		r.Events |= collective.FastRetransmit
	}
	p.control.Observe(c.ID, r)
	if s.policy.PerBottleneck {
		s.found.Observe(c.ID, r)
	}
}

// remove removes a connection, and its destination if that has no other connection.
func (s *set) remove(id collective.ID) {
	m := s.members[id]
	if m == nil {
		return
	}
	p := m.part
	p.leave(m, sockops.Now())
	delete(s.members, id)
	s.found.Remove(id)
	s.removeEmpty(p)
}

// leave removes a member from a part.
func (p *part) leave(m *member, now time.Duration) {
	if p.phase.controlling && len(p.ended) < maxCongestionConnections {
		p.ended = append(p.ended, m.congested(now))
	}
	p.control.Remove(m.ID)
	delete(p.members, m.ID)
}

// removeEmpty removes a part without connections, if the set has several.
func (s *set) removeEmpty(p *part) {
	if p.partKey == (partKey{}) || len(p.members) > 0 {
		return
	}
	if p.phase.controlling {
		s.endCongestion(p, sockops.Now())
	}
	delete(s.parts, p.partKey)
}

func (s *set) applyCaps(table *sockops.Table, now time.Duration, dry bool) {
	if !dry {
		s.start(table, now+lease)
	}
	for _, p := range s.parts {
		if p.applyCaps(table, now, dry) {
			s.turn(p, now)
		}
	}
}

// turn begins a phase of a part with control, or without.
func (s *set) turn(p *part, now time.Duration) {
	controlling := p.control.Controlling()
	if controlling {
		p.beginCongestion(now)
	} else {
		s.endCongestion(p, now)
	}
	p.phase.begin(now, controlling)
	if p.learns != nil && p.learns.Suspended().At != p.suspended {
		p.suspended = p.learns.Suspended().At
		slog.Warn("control suspended", "set", s.policy.Name, "reason", p.notice(now))
	}
}

// applyCaps puts caps in force. A connection without a cap keeps none: its lease expires.
// It reports whether control began or ended.
func (p *part) applyCaps(table *sockops.Table, now time.Duration, dry bool) (turned bool) {
	caps, capped := p.control.Caps(now), false
	for id, c := range caps {
		m := p.members[id]
		if m == nil {
			continue // of another set with the same bottleneck
		}
		capped = true
		if m.cap = c; !dry && m.Segment > 0 {
			table.Cap(m.Connection, pace(c.Rate), window(c.Window, m.Segment), now+lease)
		}
	}
	if p.capped && !capped {
		for _, m := range p.members {
			if m.cap != (collective.Cap{}) && !dry && m.Segment > 0 {
				table.Cap(m.Connection, 0, 0, 0)
			}
			m.cap = collective.Cap{}
		}
	}
	p.capped = capped
	return p.control.Controlling() != p.phase.controlling
}

// pace returns a rate in the kernel's bytes per second; 0 is no bound.
func pace(r unit.Rate) uint32 { return uint32(min(r.BytesPerSecond(), math.MaxUint32-1)) }

// window returns a window of bytes in packets; 0 is no bound.
func window(b unit.Bytes, segment uint32) uint32 {
	if b == 0 {
		return 0
	}
	return uint32(min(max(minWindow, math.Round(float64(b)/float64(segment))), unboundedWindow))
}

// weighed reports whether the connections have configured weights. some is false if that
// is still open.
func (s *set) weighed() (weighed, some bool) {
	if len(s.policy.Rules) > 0 {
		return s.policy.Rules[0].Weight > 0, true
	}
	if s.policy.Cgroup != "" || s.policy.Unit != "" {
		return false, true
	}
	for _, p := range s.parts {
		for _, m := range p.members {
			return m.weight > 0, true
		}
	}
	return false, false
}

// allows reports whether programs of a user may join.
func (s *set) allows(user uint32) bool { return user == 0 || slices.Contains(s.users, user) }
