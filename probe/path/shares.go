package path

import (
	"cmp"
	"time"

	"headgate.dev/headgate/unit"
)

// Budget is the default maximum of layer 2 bytes in one direction.
const Budget unit.Bytes = 10_000_000

// budgets are the maximum bytes of each part's own trains.
type budgets struct {
	capacity, tokenRate, limiter, confirm, available, pass unit.Bytes
	// capacityTime bounds the duration of the capacity's trains.
	capacityTime time.Duration
}

// shares returns the shares for the wanted parts. A part that only another part needs is
// measured roughly: the token rate method only needs to know whether its rate is that of
// the link, and the available bandwidth method whether there is a shaper.
func (m Method) shares() budgets {
	switch m.Parts {
	case Parts{Capacity: true}, Parts{Credits: true}:
		return budgets{capacity: 2_000_000, capacityTime: time.Second}
	case Parts{TokenRate: true}:
		return budgets{capacity: 400_000, capacityTime: 300 * time.Millisecond, tokenRate: 3_000_000, confirm: 1_600_000}
	case Parts{Limiter: true}:
		return budgets{capacity: 1_000_000, capacityTime: 500 * time.Millisecond, tokenRate: 400_000, limiter: 3_000_000, confirm: 1_000_000}
	case Parts{Available: true}:
		return budgets{capacity: 1_000_000, capacityTime: 500 * time.Millisecond, tokenRate: 1_500_000, confirm: 600_000, available: 1_900_000}
	}
	return budgets{capacity: 1_200_000, capacityTime: 600 * time.Millisecond, tokenRate: 3_500_000, limiter: 2_000_000, confirm: 2_500_000, available: 4_000_000, pass: 1_000_000}
}

func (m Method) budget() unit.Bytes { return cmp.Or(m.Budget, Budget) }

// Without returns the method with less budget by the bytes of trains that are in no sample, because they were sent again. ok is false if nothing is left.
func (m Method) Without(bytes unit.Bytes) (_ Method, ok bool) {
	ok = bytes < m.budget()
	m.Budget = m.budget() - min(bytes, m.budget())
	return m, ok
}
