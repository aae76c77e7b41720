package host

import (
	"errors"
	"fmt"
	"strings"

	"headgate.dev/headgate/collective/sockops"
	"headgate.dev/headgate/internal/ask"
)

// addConnection adds a connection to a set, at the request of a user.
func (h *Host) addConnection(user uint32, r request, fd int) error {
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
		return fmt.Errorf("connection set %q does not exist: use %s", r.Join, strings.Join(names, " or "))
	case !s.allows(user):
		return ask.Denied(fmt.Sprintf("user %d may not join the set %s: add the user to \"join\" in the set's configuration", user, r.Join))
	case fd < 0:
		return errors.New("request has no connection: pass the descriptor of the connection with it (SCM_RIGHTS)")
	case !(r.Weight >= 0 && r.Weight <= 1e6):
		return fmt.Errorf("weight %v is invalid: use a number above 0, such as 8", r.Weight)
	}
	h.look() // another connection may have just joined, with or without a weight
	if weighed, some := s.weighed(); some && weighed && r.Weight == 0 {
		return fmt.Errorf("connections of the set %s have configured weights: set a weight for this one, too", r.Join)
	} else if some && !weighed && r.Weight > 0 {
		return fmt.Errorf("connections of the set %s have no configured weights: remove the weight", r.Join)
	}
	if s.policy.PaperControl && r.Weight > 0 {
		return fmt.Errorf("set %s uses the law seed, which has no weights: remove the weight", r.Join)
	}
	id, number, err := h.table.AddConnection(fd, s.number, r.Weight)
	switch {
	case errors.Is(err, sockops.ErrFull):
		return fmt.Errorf("cannot add the connection to the set %s: %w: start the program with a larger --connections", r.Join, err)
	case err != nil:
		return fmt.Errorf("cannot add the connection to the set %s: %w", r.Join, err)
	case number != s.number && h.by[number] != nil:
		return fmt.Errorf("connection is already in the set %s", h.by[number].policy.Name)
	}
	if m := s.members[id]; m != nil && r.Weight > 0 {
		m.weight = r.Weight
		m.part.control.SetWeight(id, r.Weight)
	}
	return nil
}
