package share

import (
	"slices"

	"headgate.dev/headgate/unit"
)

// fixed are limits that do not depend on what is offered.
type fixed struct{ limits []unit.Rate }

// Cycle implements Scheme.
func (s *fixed) Cycle(offered []unit.Rate) []unit.Rate {
	checkOffered(offered, len(s.limits))
	return slices.Clone(s.limits)
}

// set sets the limit of each flow of a network, and returns the limits.
func (s *fixed) set(n ReservedNetwork, limit func(ReservedFlow) unit.Rate) []unit.Rate {
	n.check()
	s.limits = make([]unit.Rate, len(n.Flows))
	for i, f := range n.Flows {
		s.limits[i] = limit(f)
	}
	return slices.Clone(s.limits)
}

// StaticMeters meters each flow at its reservation, best effort too (reservations, section 3.2,
// the static metering scheme). The queues at its links have one class: FIFO.
type StaticMeters struct{ fixed }

// SetNetwork implements Scheme.
func (s *StaticMeters) SetNetwork(n ReservedNetwork) []unit.Rate {
	return s.set(n, func(f ReservedFlow) unit.Rate { return f.Reserved })
}

// DiffServ has no meters: queues at the links divide the bandwidth (reservations, section 2.2).
// QueuesFor has the queues of the thesis.
type DiffServ struct{ fixed }

// SetNetwork implements Scheme.
func (s *DiffServ) SetNetwork(n ReservedNetwork) []unit.Rate {
	return s.set(n, func(ReservedFlow) unit.Rate { return Unlimited })
}

// Hybrid meters QoS flows at their reservations and leaves best effort to a queue (reservations,
// section 3.2, the hybrid scheme).
type Hybrid struct{ fixed }

// SetNetwork implements Scheme.
func (s *Hybrid) SetNetwork(n ReservedNetwork) []unit.Rate {
	return s.set(n, func(f ReservedFlow) unit.Rate {
		if f.Class == BestEffort {
			return Unlimited
		}
		return f.Reserved
	})
}
