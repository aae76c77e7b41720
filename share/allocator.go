package share

import (
	"cmp"
	"fmt"
	"slices"

	"headgate.dev/headgate/unit"
)

// roundingSlack, in units of 2^-64 bit/s, exceeds the total rounding error of all divisions of one call
// (the error at most doubles per level, so a million leaves at twelve levels reach it) and
// is far below one bit. With it, a whole number that was summed up from thirds rounds to
// itself.
const roundingSlack = 1 << 32

// allocator holds the tree of one Allocate call, linked from the top down. The parent of the
// top-level claims is -1, the root.
type allocator struct {
	spare  Spare
	claims []Claim
	first  []int // the children of claim p start at kids[first[p+1]]
	kids   []int // claim indices grouped by parent, in input order
	// order has the claims that are connected to the root, parents before children. In reverse,
	// every claim directly follows all claims below it, and leaves are in tree order.
	order     []int
	usable    []uint64
	allocated []amount

	slab        []borrower // scratch of divide; borrowers sorts it by turn
	borrowers   []*borrower
	unsatisfied []*borrower // scratch of fillTurn
	result      []unit.Rate // scratch of rates
}

// begin takes the claims, and computes what each can use.
func (a *allocator) begin(spare Spare, claims []Claim) {
	a.spare, a.claims = spare, claims
	a.usable, a.allocated = sized(a.usable, len(claims)), sized(a.allocated, len(claims))
	a.link()
	for _, i := range slices.Backward(a.order) {
		a.usable[i] = a.usableBy(i)
	}
}

// borrower is a claim that has its guarantee and demands more.
type borrower struct {
	claim    int
	turn     int
	weight   uint64 // never zero
	headroom amount // the additional rate that it can use
	part     amount // the additional rate that fill allocates
	// stopped is set when part is final (AllocateLinks).
	stopped bool
}

func (a *allocator) children(p int) []int { return a.kids[a.first[p+1]:a.first[p+2]] }

// link groups the claims by parent (a counting sort) and computes the depth-first order.
func (a *allocator) link() {
	n := len(a.claims)
	a.first = sized(a.first, n+3)
	for i := range a.claims {
		p := a.claims[i].Parent
		if p < -1 || p >= n {
			panic(fmt.Sprintf("share: claim %d of %d has parent %d", i, n, p))
		}
		a.first[p+3]++
	}
	for s := 1; s < len(a.first); s++ {
		a.first[s] += a.first[s-1]
	}
	a.kids = sized(a.kids, n)
	for i := range a.claims {
		slot := a.claims[i].Parent + 2 // one slot later, so that the increments end at the start of the slot
		a.kids[a.first[slot]] = i
		a.first[slot]++
	}
	a.order = slices.Grow(a.order[:0], n)
	for next := slices.Clone(a.children(-1)); len(next) > 0; {
		i := next[len(next)-1]
		a.order = append(a.order, i)
		next = append(next[:len(next)-1], a.children(i)...)
	}
}

// usableBy returns the maximum that a claim can use: for a leaf its demand, for a parent the sum
// of what its children can use, capped by the ceiling.
func (a *allocator) usableBy(i int) uint64 {
	c := &a.claims[i]
	most := capped(uint64(c.Ceiling))
	if len(a.children(i)) == 0 {
		return min(uint64(c.Demand), most)
	}
	return min(a.usableBelow(i), most)
}

func (a *allocator) usableBelow(p int) (sum uint64) {
	for _, k := range a.children(p) {
		sum += a.usable[k]
	}
	return sum
}

// divide allocates the parent's rate to the claims of one level: first their guarantees, then
// the spare bandwidth.
func (a *allocator) divide(parent amount, level []int) {
	spare := parent.minus(a.allocateGuarantees(parent, level))
	if spare == (amount{}) {
		return
	}
	a.lend(level, func(turn []*borrower) { spare = a.fillTurn(spare, turn) })
}

// allocateGuarantees allocates the guarantees of the claims of one level, out of the parent's rate, and
// returns their total.
func (a *allocator) allocateGuarantees(parent amount, level []int) amount {
	var all uint64
	for _, i := range level {
		all += a.usedGuarantee(i)
	}
	split := splitter{total: newAmount(all), sum: all}
	if parent.less(split.total) {
		split.total = parent
	}
	for _, i := range level {
		a.allocated[i] = split.next(a.usedGuarantee(i))
	}
	return split.total
}

func (a *allocator) usedGuarantee(i int) uint64 {
	return min(a.usable[i], uint64(a.claims[i].Guarantee))
}

// rank returns the position of a claim in the order in which spare bandwidth is divided, and
// its weight among the claims with the same position.
func (a *allocator) rank(i int) (turn int, weight uint64) {
	c := &a.claims[i]
	switch {
	case a.spare == Priority:
		return c.Priority, 1
	case a.spare == Equal:
		return 0, 1
	case c.Weight == 0:
		return 1, 1
	}
	return 0, capped(c.Weight)
}

// lend lets fill set the parts of the claims of one level that can use more, one turn after the other, and
// allocates the parts.
func (a *allocator) lend(level []int, fill func(turn []*borrower)) {
	a.slab, a.borrowers = slices.Grow(a.slab[:0], len(level)), a.borrowers[:0]
	for _, i := range level {
		if room := newAmount(a.usable[i]).minus(a.allocated[i]); room != (amount{}) {
			turn, weight := a.rank(i)
			a.slab = append(a.slab, borrower{claim: i, turn: turn, weight: weight, headroom: room})
			a.borrowers = append(a.borrowers, &a.slab[len(a.slab)-1])
		}
	}
	slices.SortStableFunc(a.borrowers, func(x, y *borrower) int { return cmp.Compare(x.turn, y.turn) })
	for rest := a.borrowers; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].turn == rest[0].turn {
			n++
		}
		fill(rest[:n])
		rest = rest[n:]
	}
	for _, b := range a.borrowers {
		a.allocated[b.claim] = a.allocated[b.claim].plus(b.part)
	}
}

// fillTurn is water filling within one turn, and returns the remainder. A borrower that is
// satisfied at the common level is removed, which raises the level for the others. This repeats
// until no borrower is satisfied. In each iteration either the remaining weights or the
// released bandwidth is at most half of the previous iteration's, so the loop takes fewer than
// a hundred iterations for any valid numbers, and seldom ten.
func (a *allocator) fillTurn(spare amount, turn []*borrower) amount {
	var rooms amount
	var weights uint64
	for _, b := range turn {
		rooms = rooms.plus(b.headroom)
		weights += b.weight
	}
	if !spare.less(rooms) {
		for _, b := range turn {
			b.part = b.headroom
		}
		return spare.minus(rooms)
	}
	a.unsatisfied = append(a.unsatisfied[:0], turn...)
	unmet := a.unsatisfied
	for before := 0; before != len(unmet); {
		before = len(unmet)
		all := unmet
		unmet = all[:0]
		for _, b := range all {
			if !ratioLessEqual(b.headroom, b.weight, spare, weights) {
				unmet = append(unmet, b)
				continue
			}
			b.part = b.headroom
			spare = spare.minus(b.headroom)
			weights -= b.weight
		}
	}
	split := splitter{total: spare, sum: weights}
	for _, b := range unmet {
		b.part = split.next(b.weight)
	}
	return amount{}
}

// rates rounds the allocated amounts. Every rate is the difference of two running totals
// rounded down. The leaves below a claim are adjacent in the order, so the sum over them is
// such a difference too. Each rate is therefore the exact amount rounded down or up, and whole
// numbers do not change.
func (a *allocator) rates() []unit.Rate {
	rates := sized(a.result, len(a.claims))
	a.result = rates
	upTo := amount{part: roundingSlack}
	for _, i := range slices.Backward(a.order) {
		if len(a.children(i)) == 0 {
			before := upTo.whole
			upTo = upTo.plus(a.allocated[i])
			rates[i] = unit.Rate(upTo.whole - before)
		}
		if p := a.claims[i].Parent; p >= 0 {
			rates[p] += rates[i]
		}
	}
	return rates
}

// capped limits a value so that sums fit in 64 bits for up to a million claims.
func capped(v uint64) uint64 { return min(v, uint64(unit.MaxRate)) }
