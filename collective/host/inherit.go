package host

import (
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/collective/sockops"
)

// role returns the role of a connection in the set.
func (s *set) role(accepted, joined bool, local, remote netip.AddrPort) collective.Role {
	r := collective.Role{Remote: remote.Addr(), Port: remote.Port(), Accepted: accepted}
	if accepted {
		r.Port = local.Port()
		if !s.policy.PerDestination {
			r.Remote = netip.Addr{} // clients come from anywhere
		}
	}
	if !joined {
		r.Rule = s.policy.Rule(local, remote)
		r.Rule.Weight = 0 // it may change
	}
	return r
}

// need returns what a part has learned of a connection.
func (p *part) need(id collective.ID) collective.Need {
	if p.learns == nil {
		return collective.Need{}
	}
	return p.learns.Need(id)
}

// inherit tells the control what is known of a new connection: by an earlier process, of one in whose place it is, or of others like it.
func (s *set) inherit(m *member) {
	c := m.part.learns
	if c == nil {
		return
	}
	if k, ok := s.restored[m.ID]; ok {
		delete(s.restored, m.ID)
		c.Inherit(m.ID, k.Need)
		return
	}
	if need, ok := s.needs.Inherit(m.role, sockops.Now()); ok {
		c.Inherit(m.ID, need)
		return
	}
	s.young[m.role]++
	if rate, base := s.needs.Assume(m.role, s.young[m.role]); rate > 0 {
		c.Assume(m.ID, rate, base)
	}
}

// end takes what a connection leaves to those after it, and removes it.
func (s *set) end(e sockops.Ended) {
	now := sockops.Now()
	m := s.members[e.ID]
	switch {
	case s.policy.PaperControl:
	case m == nil: // it was too short to be seen
		if e.Complete {
			s.needs.Short(s.role(e.Passive, e.Joined, e.Local, e.Remote), float64(e.Acked)*8, now)
		}
	case m.part.need(e.ID).Known():
		s.needs.Leave(m.role, m.part.need(e.ID), now)
	default:
		s.young[m.role] = max(s.young[m.role]-1, 0)
		s.needs.Short(m.role, float64(e.Acked)*8, now)
	}
	s.remove(e.ID)
}

// learn takes what is known of the connections now, after a time. If complete is set, connections of an earlier process that have not been seen have ended.
func (s *set) learn(now, took time.Duration, complete bool) {
	if s.policy.PaperControl {
		return
	}
	young := map[collective.Role][]*member{}
	s.needs.SetAlive(func(yield func(collective.Role, collective.Need)) {
		for id, m := range s.members {
			if need := m.part.need(id); need.Known() {
				yield(m.role, need)
			} else if m.Rounds > 0 {
				young[m.role] = append(young[m.role], m)
			}
		}
	})
	s.needs.Pass(took, s.controlled)
	clear(s.young)
	for role, members := range young {
		s.young[role] = len(members)
		if rate, base := s.needs.Assume(role, len(members)); rate > 0 {
			for _, m := range members {
				m.part.learns.Assume(m.ID, rate, base)
			}
		}
	}
	if !complete {
		return
	}
	for id, k := range s.restored {
		s.needs.Leave(k.Role, k.Need, now)
		delete(s.restored, id)
	}
}

// controlled reports whether connections of a role are controlled now.
func (s *set) controlled(r collective.Role) bool {
	for _, p := range s.parts {
		if p.control.Controlling() && (!s.policy.PerDestination || p.to == r.Remote) {
			return true
		}
	}
	return false
}

// maxStarts bounds the roles whose new connections begin with a cap.
const maxStarts = 64

// start caps new connections of roles with short ones, while the set is controlled. Where sets or destinations have controls of their own a connection's is not known
// when it begins.
func (s *set) start(table *sockops.Table, until time.Duration) {
	p := s.parts[partKey{}]
	if p == nil || p.learns == nil || s.policy.Bottleneck != "" || !p.control.Controlling() {
		return
	}
	n := 0
	for role := range s.needs.Pools {
		if n++; n > maxStarts {
			return
		}
		rate, _ := s.needs.Assume(role, s.young[role]+1)
		c, ok := p.learns.NewCap(rate)
		if !ok {
			return
		}
		if err := table.Start(s.number, s.ruleIndex(role), role, pace(c.Rate), window(c.Window, startSegment), until); err != nil {
			slog.Debug("cannot cap new connections", "set", s.policy.Name, "error", err)
			return
		}
	}
}

// startSegment is taken for the segment size of a new connection: that of 1500 bytes with timestamps.
const startSegment = 1448

// ruleIndex returns the index of the rule of a role, 0 without rules.
func (s *set) ruleIndex(r collective.Role) int {
	return max(slices.IndexFunc(s.policy.Rules, func(of collective.Rule) bool {
		of.Weight = 0
		return of == r.Rule
	}), 0)
}
