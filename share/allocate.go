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
	// A claim with children has it for all below it: it is what they can be
	// promised together, and what they leave of it is lent among them first.
	Guarantee unit.Rate
	// Ceiling is the most it ever gets, also if the guarantee is higher. Zero is a
	// ceiling of zero; unit.MaxRate is none.
	Ceiling unit.Rate
	// Weight is the claim's part of what is lent under Proportional: pass the
	// guarantee, or anything else. A claim of weight zero gets of what its parent
	// lends only when all others have enough.
	Weight uint64
	// Priority is the claim's turn under Priority; the lowest number comes first.
	Priority int
	// Demand is what a leaf would use now. A claim with children demands what
	// they can take together, and its own Demand is not read.
	Demand unit.Rate
}

// Spare says to which of its children a claim lends what their guarantees leave over.
type Spare int

const (
	// Proportional lends by weight.
	Proportional Spare = iota
	// Equal lends in equal parts.
	Equal
	// Priority lends to the lowest Priority first, in equal parts among those who
	// have the same.
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
// It is done level by level: the limit is divided among the claims at the top, then
// what each of them gets among its children, and so on. In each division every claim
// gets its guarantee, or what it can use if that is less. What is left is lent to those
// that can use more: they get alpha * weight more, with one alpha, until they have
// enough. A claim can use what is demanded below it, as far as the ceilings let
// through.
//
// If the guarantees of a level are more than their parent's (or the limit), they
// are scaled down to it, in proportion to the lesser of guarantee and what the
// claim can use: a guarantee is a part of the parent's.
//
// Amounts are exact to 2^-64 bit/s and rounded once: each rate, also of a claim
// with children, is the real number rounded down or up. All of the limit, or all
// that is wanted, is handed out to the last bit per second; no rate is above a
// ceiling or below a guarantee by rounding. Remainders fall in the order of the
// tree (siblings by index), so the same claims always give the same rates. Rates
// and weights of claims above unit.MaxRate count as unit.MaxRate. The time for n
// claims is O(n log n) for each level of depth.
//
// A parent that is not the index of a claim panics. Claims in a circle belong to
// no top, and get nothing.
func Allocate(limit unit.Rate, spare Spare, claims []Claim) []unit.Rate {
	n := len(claims)
	a := allocator{spare: spare, claims: claims, want: make([]uint64, n), has: make([]amount, n)}
	a.link()
	for _, i := range slices.Backward(a.order) {
		a.want[i] = a.wanted(i)
	}
	a.divide(exactly(min(uint64(limit), a.wantedBelow(-1))), a.children(-1))
	for _, i := range a.order {
		a.divide(a.has[i], a.children(i))
	}
	return a.rates()
}
