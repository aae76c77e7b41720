package host

import (
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"

	"headgate/collective"
	"headgate/collective/sockops"
)

// Check tells what this machine would refuse about a set: users that it does not have, or that
// it has no cgroup v2. A cgroup that is not there is waited for.
func Check(p collective.Policy) error {
	s, err := newSet(p)
	if err == nil {
		_, err = s.find()
	}
	return err
}

// Change gives a Host that runs other sets. What did not change is not touched, and a set of
// which weights, rules or users are others keeps what it has learnt of the connections that stay
// in it. What could not be done is told by set, which is as it was before then, or not there.
func (h *Host) Change(policies []collective.Policy) (troubles map[string]error, err error) {
	err = h.asks.Do(func() { troubles = h.change(policies) })
	return troubles, err
}

func (h *Host) change(policies []collective.Policy) map[string]error {
	troubles := map[string]error{}
	var sets, attached []*set
	for _, p := range policies {
		s, fresh, err := h.have(p, attached)
		if err != nil {
			troubles[p.Name] = err
		}
		if s == nil {
			continue
		}
		sets = append(sets, s)
		if fresh {
			attached = append(attached, s)
		}
	}
	h.sets = sets
	if gone := h.dismiss(); gone || len(attached) > 0 {
		for _, s := range sets { // what one lets go may be another's
			h.join(s)
		}
	}
	return troubles
}

// have has a set as its policy says, and tells whether it was attached for that; others were just
// now.
func (h *Host) have(p collective.Policy, attached []*set) (s *set, fresh bool, err error) {
	i := slices.IndexFunc(h.sets, func(s *set) bool { return s.policy.Name == p.Name })
	if i >= 0 {
		s = h.sets[i]
	}
	next, err := newSet(p)
	if err == nil {
		_, err = next.find()
	}
	if err != nil {
		return s, false, err
	}
	if s == nil {
		if other := h.by[next.number]; other != nil {
			return nil, false, fmt.Errorf("it cannot be told apart from the set %s in the kernel: rename one", other.policy.Name)
		}
		if err := h.table.Attach(next.watched()); err != nil {
			return nil, false, err
		}
		h.by[next.number] = next
		return next, true, nil
	}
	// Of sets of one cgroup the one that was attached first has what both could have.
	follows := slices.ContainsFunc(attached, func(o *set) bool { return o.at == next.at })
	if !follows && reflect.DeepEqual(next.policy, s.policy) {
		return s, false, nil
	}
	if fresh = follows || next.at != s.at || !sameRules(next.policy, s.policy); fresh {
		if err := h.table.Attach(next.watched()); err != nil {
			return s, false, err
		}
	}
	h.become(s, next)
	return s, fresh, nil
}

// sameRules tells whether two sets choose the same connections of a cgroup, whatever their weights.
func sameRules(a, b collective.Policy) bool {
	return slices.EqualFunc(a.Rules, b.Rules, func(a, b collective.Rule) bool {
		a.Weight, b.Weight = 0, 0
		return a == b
	})
}

// become makes a set what next says.
func (h *Host) become(s, next *set) {
	moved, before := s.at != next.at, s.policy
	s.policy, s.users, s.at = next.policy, next.users, next.at
	if s.policy.Seed != before.Seed || s.policy.PerDestination != before.PerDestination {
		// Other cycles, which learn anew.
		members := s.members
		s.parts, s.members = next.parts, next.members
		for _, m := range members {
			s.take(m.Connection)
		}
	}
	h.abandon(func(c *sockops.Connection) bool {
		return c.Set == s.number && !c.Asked && (moved || !s.policy.Holds(c.Local, c.Remote))
	})
	for id, m := range s.members {
		if w := s.policy.Weight(m.Local, m.Remote); !m.Asked && w != m.weight {
			m.weight = w
			m.part.control.Weigh(id, w)
		}
	}
}

// dismiss lets go the connections of sets that are not there any more, and tells whether there
// are such. The programs of the others lift what still caps them.
func (h *Host) dismiss() (some bool) {
	var stay []uint32
	for _, s := range h.sets {
		stay = append(stay, s.number)
	}
	for n := range h.by {
		some = some || !slices.Contains(stay, n)
	}
	if !some {
		return false
	}
	// First, so that none joins them that nobody takes out again.
	if err := h.table.Detach(stay...); err != nil {
		slog.Warn("a set that is gone is still watched", "error", err)
	}
	h.abandon(func(c *sockops.Connection) bool { return h.by[c.Set] != nil && !slices.Contains(stay, c.Set) })
	maps.DeleteFunc(h.by, func(n uint32, _ *set) bool { return !slices.Contains(stay, n) })
	return true
}

// abandon takes connections out of their sets.
func (h *Host) abandon(which func(*sockops.Connection) bool) {
	h.table.Abandon(func(c *sockops.Connection) bool {
		goes := which(c)
		if s := h.by[c.Set]; goes && s != nil {
			s.remove(c.ID)
		}
		return !goes
	})
}
