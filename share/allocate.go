package share

import (
	"fmt"

	"headgate.dev/headgate/unit"
)

// Claim is one node of a tree of claims: a group, a tenant, a reservation.
type Claim struct {
	// Parent is the index of the parent claim, or -1 at the top. Claims may be in any order.
	Parent int
	// Guarantee is the rate that the claim gets, if it has demand, before any claim gets more.
	// The guarantee of a parent limits the guarantees of its children together, and the part
	// that they leave unused is lent among them first.
	Guarantee unit.Rate
	// Ceiling is the rate that the claim never exceeds, even if the guarantee is higher. Zero
	// is a ceiling of zero; unit.MaxRate means no ceiling.
	Ceiling unit.Rate
	// Weight is the claim's weight in the division of spare bandwidth under Proportional, for
	// example its guarantee. A claim of weight zero borrows only when all its siblings are
	// satisfied.
	Weight uint64
	// Priority orders the claims under Priority; the lowest number is served first.
	Priority int
	// Demand is the rate that a leaf would use now without any limit. For a claim with children
	// it is ignored: its demand is the sum of what the children can use.
	Demand unit.Rate
	// Links lists the indices of the links that a top-level claim crosses, for AllocateLinks.
	// Duplicates count once. Allocate ignores Links.
	Links []int
}

// Spare is the policy that divides the bandwidth that guarantees leave over among the child
// claims.
type Spare int

const (
	// Proportional divides in proportion to weights.
	Proportional Spare = iota
	// Equal divides into equal parts.
	Equal
	// Priority serves the lowest Priority first, and divides equally within one priority.
	Priority
)

// String returns the word used in the configuration.
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

// Allocate divides limit among the claims and returns the rate of each claim, in the order of
// claims. The rate of a claim with children is the sum of its children's rates.
//
// The division proceeds level by level: the limit is divided among the top-level claims, then
// the rate of each among its children, and so on. In each division every claim gets the lower
// of its guarantee and the rate that it can use. The rest is lent to the claims that can use
// more: each gets alpha * weight in addition, with a common alpha, until it is satisfied. The
// rate that a claim can use is the demand below it, limited by the ceilings.
//
// If the guarantees of a level exceed their parent's (or the limit), they are scaled down to
// it, in proportion to the lower of guarantee and usable rate, because a guarantee is a part of
// the parent's guarantee.
//
// Amounts are exact to 2^-64 bit/s and rounded once: each rate, also of a claim with children,
// is the exact number rounded down or up. The whole limit, or the whole demand, is allocated to
// the last bit per second. Rounding never raises a rate above a ceiling or lowers it below a
// guarantee. Remainders are assigned in tree order (siblings by index), so the same claims
// always get the same rates. Rates and weights of claims above unit.MaxRate count as
// unit.MaxRate. The time for n claims is O(n log n) per level.
//
// Allocate panics if a parent is not the index of a claim. Claims in a cycle are not connected
// to the root and get nothing.
func Allocate(limit unit.Rate, spare Spare, claims []Claim) []unit.Rate {
	var a allocator
	a.begin(spare, claims)
	a.divide(newAmount(min(uint64(limit), a.usableBelow(-1))), a.children(-1))
	for _, i := range a.order {
		a.divide(a.allocated[i], a.children(i))
	}
	return a.rates()
}
