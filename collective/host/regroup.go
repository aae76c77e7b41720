package host

import (
	"fmt"

	"headgate.dev/headgate/collective"
)

// agreedTicks is the number of slow ticks after which connections that are found to share a bottleneck are controlled together, chosen by Headgate.
const agreedTicks = 3

// regroup controls those connections together that share a bottleneck. Without congestion nothing is found, and connections stay where they were found last.
func (s *set) regroup() {
	if !s.policy.PerBottleneck {
		return
	}
	agreed := map[string]int{}
	for _, group := range s.found.Groups() {
		key := fmt.Sprint(group)
		if agreed[key] = s.agreed[key] + 1; agreed[key] < agreedTicks {
			continue
		}
		for _, id := range group {
			if m := s.members[id]; m != nil {
				s.move(m, partKey{bottleneck: group[0]})
			}
		}
	}
	s.agreed = agreed
}

// move moves a connection to another part, with what is known of it.
func (s *set) move(m *member, to partKey) {
	from := m.part
	if from.partKey == to {
		return
	}
	need := from.need(m.ID)
	from.leave(m, m.Seen)
	s.removeEmpty(from)
	p := s.part(to)
	m.part, m.cap, p.members[m.ID] = p, collective.Cap{}, m
	m.count(m.Seen)
	if m.weight > 0 {
		p.control.SetWeight(m.ID, m.weight)
	}
	p.learns.Inherit(m.ID, need)
}
