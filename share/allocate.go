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
	// Weight is a leaf's part of what is lent under Proportional: pass the
	// guarantee, or anything else. A leaf of weight zero gets of what one lender
	// has only when all others have enough. Not read of a claim with children.
	Weight uint64
	// Priority is a leaf's turn under Priority; the lowest number comes first. Not
	// read of a claim with children.
	Priority int
	// Demand is what a leaf would use now. A claim with children demands what
	// they can take together, and its own Demand is not read.
	Demand unit.Rate
}

// Spare says to which leaves a lender lends what the guarantees leave over.
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
// First every leaf gets its guarantee, or its demand if that is less. Then the
// claims with children lend, the deepest first and the limit itself last: each
// lends what those below it leave of its guarantee, to the leaves below it that
// still want more, however deep they are. These get alpha * weight more, with one
// alpha, until they have their demand or until they, or a claim between them and
// the lender, are at the ceiling. Without nesting a rate is guarantee + alpha *
// weight. Equal and Priority too say who comes first with one lender: a leaf that
// can borrow from a nearer one has that before.
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
	a := allocator{
		spare: spare, claims: claims, want: make([]uint64, n), has: make([]amount, n),
		at: make([]int, n), count: make([]int, n),
	}
	a.link()
	for _, i := range slices.Backward(a.order) {
		a.want[i] = a.wanted(i)
	}
	whole := exactly(min(uint64(limit), a.wantedBelow(-1)))
	a.entitle(whole, a.children(-1))
	for _, i := range a.order {
		a.entitle(a.has[i], a.children(i))
	}
	a.queue()
	a.climb(whole)
	return a.rates()
}
