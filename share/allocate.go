package share

import (
	"fmt"
	"slices"

	"headgate/unit"
)

// Claim is one node of a tree of claims: a group, a tenant, a reservation.
type Claim struct {
	// Parent is the index of the claim that this one is part of, -1 at the top.
	// Claims may come in any order.
	Parent int
	// Guarantee is what the claim gets, if it wants it, before anyone gets more.
	Guarantee unit.Rate
	// Ceiling is the most it ever gets, also if the guarantee is higher. Zero is a
	// ceiling of zero; unit.MaxRate is none.
	Ceiling unit.Rate
	// Weight is its part of the spare under Proportional: pass the guarantee, or
	// anything else. A claim of weight zero gets spare only when all others at its
	// level have enough.
	Weight uint64
	// Priority is its turn under Priority; the lowest number comes first.
	Priority int
	// Demand is what a leaf would use now. A claim with children demands what
	// they can take together, and its own Demand is not read.
	Demand unit.Rate
}

// Spare says who gets what the guarantees leave over.
type Spare int

const (
	// Proportional shares it by weight.
	Proportional Spare = iota
	// Equal shares it in equal parts.
	Equal
	// Priority gives it to the lowest Priority first, in equal parts among those
	// who have the same.
	Priority
)

// String is the word that the configuration uses.
func (s Spare) String() string {
	switch s {
	case Proportional:
		return "proportional"
	case Equal:
		return "equal"
	case Priority:
		return "priority"
	}
	return fmt.Sprintf("Spare(%d)", int(s))
}

// Allocate divides limit among the claims and returns the rate of each, in the
// order of the claims; that of a claim with children is the sum of theirs.
//
// Each level divides what its parent got. First everyone gets the guarantee, or
// the demand if that is less. What remains goes to those who want more, until
// they have their demand or their ceiling: at any moment all who still want are
// at guarantee + alpha * weight, with one alpha. If the guarantees alone are
// more than the level got, everyone is scaled down in proportion to the lesser
// of guarantee and demand.
//
// The arithmetic is exact. A level hands out all it got, or all that is wanted,
// to the last bit per second, and each rate is less than one bit/s per level of
// depth from the real number. Within a level the remainders fall in a fixed order
// (what a claim wants for its weight, then its index), so the same claims always
// give the same rates. Rates and weights above unit.MaxRate count as
// unit.MaxRate. The time is O(n log n).
//
// A parent that is not the index of a claim panics. Claims in a circle belong to
// no top, and get nothing.
func Allocate(limit unit.Rate, spare Spare, claims []Claim) []unit.Rate {
	a := allocator{spare: spare, claims: claims}
	a.link()
	a.want = make([]uint64, len(claims))
	for _, parent := range slices.Backward(a.order) {
		a.want[parent] = a.wanted(parent)
	}
	a.given = make([]unit.Rate, len(claims))
	a.divide(uint64(limit), a.tops())
	for _, parent := range a.order {
		a.divide(uint64(a.given[parent]), a.children(parent))
	}
	return a.given
}
