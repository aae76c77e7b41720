package host

import (
	"errors"
	"fmt"
	"strings"

	"headgate/collective/sockops"
	"headgate/internal/ask"
)

// adopt takes a connection into a set, for a user who asks.
func (h *Host) adopt(user uint32, r request, fd int) error {
	var s *set
	var names []string
	for _, each := range h.sets {
		names = append(names, each.policy.Name)
		if each.policy.Name == r.Join {
			s = each
		}
	}
	switch {
	case s == nil:
		return fmt.Errorf("there is no set %q: write %s", r.Join, strings.Join(names, " or "))
	case !s.allows(user):
		return ask.Denied(fmt.Sprintf("the user %d may not join the set %s: name it under \"join\" in its configuration", user, r.Join))
	case fd < 0:
		return errors.New("no connection came with the request: pass its descriptor beside it (SCM_RIGHTS)")
	case !(r.Weight >= 0 && r.Weight <= 1e6):
		return fmt.Errorf("%v is not a weight: write a number above 0, such as 8", r.Weight)
	}
	h.look() // another may have joined just now, with or without a weight
	if weighed, some := s.weighed(); some && weighed && r.Weight == 0 {
		return fmt.Errorf("the connections of the set %s have weights by hand: give this one a weight, too", r.Join)
	} else if some && !weighed && r.Weight > 0 {
		return fmt.Errorf("the connections of the set %s have no weights by hand: leave out this one's, too", r.Join)
	}
	if s.policy.Seed && r.Weight > 0 {
		return fmt.Errorf("the set %s has the law seed, which knows no weights: leave it out", r.Join)
	}
	id, number, err := h.table.Adopt(fd, s.number, r.Weight)
	switch {
	case errors.Is(err, sockops.ErrFull):
		return fmt.Errorf("the connection cannot join the set %s: %w; start the program with more --connections", r.Join, err)
	case err != nil:
		return fmt.Errorf("the connection cannot join the set %s: %w", r.Join, err)
	case number != s.number && h.by[number] != nil:
		return fmt.Errorf("the connection is in the set %s already", h.by[number].policy.Name)
	}
	if m := s.members[id]; m != nil && r.Weight > 0 {
		m.weight = r.Weight
		m.part.control.Weigh(id, r.Weight)
	}
	return nil
}
