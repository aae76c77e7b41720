package host

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"net/netip"
	"os"
	"slices"
	"time"

	"headgate/collective"
	"headgate/collective/sockops"
	"headgate/internal/ask"
	"headgate/internal/cgroup2"
	"headgate/unit"
)

// Ours, in packets.
const (
	// leastWindow: with one a lost packet waits for the timer.
	leastWindow = 2
	// mostWindow is no bound any more: 16 GB in flight.
	mostWindow = 1<<24 - 1
)

// set is one policy at work.
type set struct {
	policy collective.Policy
	number uint32
	users  []uint32 // who may join
	at     place
	lost   string        // why the cgroup cannot be followed, as it was last told
	since  time.Duration // when it was made
	// parts are by destination, or one of the zero Addr; members are those of all.
	parts   map[netip.Addr]*part
	members map[collective.ID]*member
}

// place is where a set's cgroup is; the zero place is nowhere.
type place struct {
	path string
	id   uint64
}

// part is what is kept in proportion.
type part struct {
	to      netip.Addr
	control control
	members map[collective.ID]*member
	capped  bool // some of them
	phase   phase
}

// control is a control cycle: the seed's, or ours.
type control interface {
	Observe(collective.ID, collective.Reading)
	Remove(collective.ID)
	Caps(now time.Duration) iter.Seq2[collective.ID, collective.Cap]
	Controlling() bool
	Required(collective.ID) (unit.Rate, bool)
	Base(collective.ID) time.Duration
	Weigh(collective.ID, float64)
}

// member is a connection as it was at the last look.
type member struct {
	*sockops.Connection
	part   *part
	cap    collective.Cap
	weight float64 // by hand
	rate   rate
}

func newSet(p collective.Policy) (*set, error) {
	s := &set{policy: p, number: number(p.Name), since: sockops.Now(), parts: map[netip.Addr]*part{}, members: map[collective.ID]*member{}}
	for _, name := range p.Join {
		n, err := ask.User(name)
		if err != nil {
			return nil, fmt.Errorf("set %s: nobody joins as %s: %w", p.Name, name, err)
		}
		s.users = append(s.users, n)
	}
	if !p.PerDestination {
		s.part(netip.Addr{})
	}
	return s, nil
}

func (s *set) watched() sockops.Set {
	return sockops.Set{Number: s.number, Cgroup: s.at.path, Rules: s.policy.Rules}
}

// find looks where the set's cgroup is, and says whether it is another than before.
func (s *set) find() (moved bool, err error) {
	path := s.policy.Cgroup
	if s.policy.Unit != "" {
		path = cgroup2.Unit(s.policy.Unit)
	}
	var at place
	if path != "" {
		at.path = path
		at.id, err = cgroup2.ID(path)
	}
	if errors.Is(err, os.ErrNotExist) {
		at, err = place{}, nil
	}
	if err != nil {
		return false, err
	}
	moved = at != s.at
	s.at = at
	return moved, nil
}

// part is that of a destination.
func (s *set) part(to netip.Addr) *part {
	p := s.parts[to]
	if p == nil {
		p = &part{to: to, control: &collective.Control{}, members: map[collective.ID]*member{}}
		if s.policy.Seed {
			p.control = &collective.Seed{}
		}
		p.phase.begin(sockops.Now(), false)
		s.parts[to] = p
	}
	return p
}

// busy tells whether it has to be looked at often.
func (s *set) busy() bool {
	for _, p := range s.parts {
		if s.policy.Seed || p.control.Controlling() {
			return true
		}
	}
	return false
}

// take makes a connection a member.
func (s *set) take(c *sockops.Connection) *member {
	to := netip.Addr{}
	if s.policy.PerDestination {
		to = c.Remote.Addr()
	}
	p := s.part(to)
	m := &member{Connection: c, part: p, weight: s.policy.Weight(c.Local, c.Remote)}
	if c.Asked {
		m.weight = c.Weight
	}
	if m.weight > 0 {
		p.control.Weigh(c.ID, m.weight)
	}
	p.members[c.ID], s.members[c.ID] = m, m
	return m
}

// observe gives a connection's newest reading to the control, if there is one.
func (s *set) observe(c *sockops.Connection) {
	m := s.members[c.ID]
	if m == nil {
		m = s.take(c)
		if c.Rounds == 0 {
			return
		}
	}
	p, before := m.part, m.Connection
	m.Connection = c
	if before != c && c.Rounds == before.Rounds && c.Timeouts == before.Timeouts && c.Retransmits == before.Retransmits {
		return
	}
	if before.Rounds > 0 { // else one that was open before tells of all its life
		p.phase.count(c.Segments-before.Segments, c.Retransmits-before.Retransmits)
	}
	r := collective.Reading{At: c.Seen, RTT: c.RTT, Newest: c.Newest, Acked: c.Acked, Backlog: unit.Bytes(c.Backlog), ReceiverFull: c.ReceiverFull}
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
}

// remove forgets a connection that has ended, and a destination with it that has no other.
func (s *set) remove(id collective.ID) {
	m := s.members[id]
	if m == nil {
		return
	}
	p := m.part
	delete(s.members, id)
	delete(p.members, id)
	p.control.Remove(id)
	if s.policy.PerDestination && len(p.members) == 0 {
		delete(s.parts, p.to)
	}
}

func (s *set) obey(table *sockops.Table, now time.Duration, dry bool) {
	for _, p := range s.parts {
		p.obey(table, now, dry)
	}
}

// obey puts caps in force. A connection without one keeps none: its lease ends.
func (p *part) obey(table *sockops.Table, now time.Duration, dry bool) {
	caps, capped := p.control.Caps(now), false
	for id, c := range caps {
		capped = true
		m := p.members[id]
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
	if controlling := p.control.Controlling(); controlling != p.phase.controlling {
		p.phase.begin(now, controlling)
	}
}

// pace is a rate in the kernel's bytes a second; 0 is no bound.
func pace(r unit.Rate) uint32 { return uint32(min(r.BytesPerSecond(), math.MaxUint32-1)) }

// window is one of bytes in packets; 0 is no bound.
func window(b unit.Bytes, segment uint32) uint32 {
	if b == 0 {
		return 0
	}
	return uint32(min(max(leastWindow, math.Round(float64(b)/float64(segment))), mostWindow))
}

// weighed tells whether its connections have weights by hand, and whether it has any.
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

// allows tells whether a user's programs may join.
func (s *set) allows(user uint32) bool { return user == 0 || slices.Contains(s.users, user) }
