package path

import (
	"cmp"
	"time"

	"headgate/unit"
)

// Budget is what one direction spends at the most unless it is told otherwise.
const Budget unit.Bytes = 10_000_000

// shares are what each part's own trains take of it at the most.
type shares struct {
	capacity, tokenRate, limiter, available unit.Bytes
	// capacityTime bounds the capacity's trains.
	capacityTime time.Duration
}

// shares of what is wanted. What is wanted for the sake of others alone is measured
// roughly: a token rate only asks whether it is the link's, and the available
// bandwidth whether there is a shaper.
func (m Method) shares() shares {
	switch m.Wanted {
	case Wanted{Capacity: true}:
		return shares{capacity: 2_000_000, capacityTime: time.Second}
	case Wanted{TokenRate: true}:
		return shares{capacity: 400_000, capacityTime: 300 * time.Millisecond, tokenRate: 4_600_000}
	case Wanted{Limiter: true}:
		return shares{capacity: 1_000_000, capacityTime: 500 * time.Millisecond, limiter: 5_000_000}
	case Wanted{Available: true}:
		return shares{capacity: 1_000_000, capacityTime: 500 * time.Millisecond, tokenRate: 1_500_000, available: 2_500_000}
	}
	return shares{capacity: 1_200_000, capacityTime: 600 * time.Millisecond, tokenRate: 3_500_000, limiter: 2_500_000, available: 4_000_000}
}

func (m Method) budget() unit.Bytes { return cmp.Or(m.Budget, Budget) }
