package host

import (
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"

	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/collective/sockops"
	"headgate.dev/headgate/internal/ask"
)

// Check returns an error if this machine cannot run a set: because of unknown users, or
// without cgroup v2. A missing cgroup is not an error, since the set waits for it.
func Check(p collective.Policy) error {
	s, err := newSet(p)
	if err == nil {
		_, err = s.find()
	}
	return err
}

// UnknownUser returns the index of the first user in Join that this machine does not have, and why; without one it returns no error.
func UnknownUser(p collective.Policy) (i int, err error) {
	for i, name := range p.Join {
		if _, err := ask.User(name); err != nil {
			return i, err
		}
	}
	return 0, nil
}

// Change replaces the sets of a running Host. Unchanged sets are not touched, and a set
// with new weights, rules or users keeps what it has learned of its remaining
// connections. errs has the errors by set; such a set is unchanged, or missing if it
// is new.
func (h *Host) Change(policies []collective.Policy) (errs map[string]error, err error) {
	err = h.requests.Do(func() { errs = h.change(policies) })
	return errs, err
}

func (h *Host) change(policies []collective.Policy) map[string]error {
	errs := map[string]error{}
	var sets, attached []*set
	for _, p := range policies {
		s, fresh, err := h.ensureSet(p, attached)
		if err != nil {
			errs[p.Name] = err
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
	maps.DeleteFunc(h.bottlenecks, func(b bottleneck, _ *collective.Control) bool {
		return !slices.ContainsFunc(sets, func(s *set) bool { return s.policy.Bottleneck == b.name })
	})
	if gone := h.removeSets(); gone || len(attached) > 0 {
		for _, s := range sets { // connections of a removed set may match another one
			h.join(s)
		}
	}
	return errs
}

// ensureSet creates or updates the set of a policy. fresh reports whether it was attached for
// that; attached are the sets that this change has attached before.
func (h *Host) ensureSet(p collective.Policy, attached []*set) (s *set, fresh bool, err error) {
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
	next.bottlenecks = h.bottlenecks
	if s == nil {
		if other := h.by[next.number]; other != nil {
			return nil, false, fmt.Errorf("set name collides with the set %s in the kernel: rename one of them", other.policy.Name)
		}
		if err := h.table.Attach(next.sockopsSet()); err != nil {
			return nil, false, err
		}
		h.by[next.number] = next
		return next, true, nil
	}
	// If connections match several sets of one cgroup, the set that was attached first
	// has them.
	follows := slices.ContainsFunc(attached, func(o *set) bool { return o.cgroup == next.cgroup })
	if !follows && reflect.DeepEqual(next.policy, s.policy) {
		return s, false, nil
	}
	if fresh = follows || next.cgroup != s.cgroup || !sameRules(next.policy, s.policy); fresh {
		if err := h.table.Attach(next.sockopsSet()); err != nil {
			return s, false, err
		}
	}
	h.updateSet(s, next)
	return s, fresh, nil
}

// sameRules reports whether two sets select the same connections of a cgroup, whatever
// their weights.
func sameRules(a, b collective.Policy) bool {
	return slices.EqualFunc(a.Rules, b.Rules, func(a, b collective.Rule) bool {
		a.Weight, b.Weight = 0, 0
		return a == b
	})
}

// updateSet updates a set to next.
func (h *Host) updateSet(s, next *set) {
	moved, before := s.cgroup != next.cgroup, s.policy
	s.policy, s.users, s.cgroup = next.policy, next.users, next.cgroup
	if s.policy.PaperControl != before.PaperControl || s.policy.PerDestination != before.PerDestination || s.policy.PerBottleneck != before.PerBottleneck || s.policy.Bottleneck != before.Bottleneck {
		// These need other control cycles.
		members := s.members
		s.parts, s.members = next.parts, next.members
		for id, m := range members {
			s.restored[id] = keptConnection{m.role, m.part.need(id)}
			m.part.control.Remove(id)
			s.addConnection(m.Connection)
		}
	}
	h.removeConnections(func(c *sockops.Connection) bool {
		return c.Set == s.number && !c.Joined && (moved || !s.policy.Matches(c.Local, c.Remote))
	})
	for id, m := range s.members {
		if s.policy.Bottleneck != "" {
			m.part.learns.SetClass(id, s.policy.Name, s.policy.SetWeight)
		}
		m.role = s.role(m.Passive, m.Joined, m.Local, m.Remote)
		if w := s.policy.Weight(m.Local, m.Remote); !m.Joined && w != m.weight {
			m.weight = w
			m.part.control.SetWeight(id, w)
		}
	}
}

// removeSets releases the connections of removed sets, and reports whether there are any.
// The programs of the remaining sets lift the caps that are still in force.
func (h *Host) removeSets() (some bool) {
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
	// Detach first, so that no new connection joins the removed sets.
	if err := h.table.Detach(stay...); err != nil {
		slog.Warn("cannot detach removed connection sets", "error", err)
	}
	h.removeConnections(func(c *sockops.Connection) bool { return h.by[c.Set] != nil && !slices.Contains(stay, c.Set) })
	maps.DeleteFunc(h.by, func(n uint32, _ *set) bool { return !slices.Contains(stay, n) })
	return true
}

// removeConnections removes connections from their sets.
func (h *Host) removeConnections(which func(*sockops.Connection) bool) {
	h.table.RemoveConnections(func(c *sockops.Connection) bool {
		goes := which(c)
		if s := h.by[c.Set]; goes && s != nil {
			s.remove(c.ID)
		}
		return !goes
	})
}
