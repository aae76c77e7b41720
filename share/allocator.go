package share

import (
	"cmp"
	"fmt"
	"slices"

	"headgate/unit"
)

// nudge, in 2^-64 bit/s, is more than all divisions of a call can be off together
// (at most doubled by each level, so a million leaves at twelve levels reach it),
// and far less than a bit: what is whole, and was put together from thirds, comes
// out whole.
const nudge = 1 << 32

// allocator holds the tree of one Allocate call, linked from the top down. The
// parent of the tops is -1, the root.
type allocator struct {
	spare  Spare
	claims []Claim
	first  []int // the children of p begin here in kids, at p+1
	kids   []int // claims by parent, in their order
	// order has the claims that reach the top, parents before children. Backwards,
	// every claim stands right behind all that is below it, and leaves are in the
	// order of the tree.
	order []int
	want  []uint64
	has   []amount

	slab      []borrower // scratch of divide, whose order is by turn in borrowers,
	borrowers []*borrower
	unmet     []*borrower // and of fillTurn
}

// borrower is a claim that has its own and wants more.
type borrower struct {
	claim  int
	turn   int
	weight uint64 // never zero
	room   amount // how much more it can use
	part   amount // what fill gives it
}

func (a *allocator) children(p int) []int { return a.kids[a.first[p+1]:a.first[p+2]] }

// link sorts the claims by parent (a counting sort) and orders them depth first.
func (a *allocator) link() {
	n := len(a.claims)
	a.first = make([]int, n+3)
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
	a.kids = make([]int, n)
	for i := range a.claims {
		slot := a.claims[i].Parent + 2 // one late, so that it ends up as the slot's begin
		a.kids[a.first[slot]] = i
		a.first[slot]++
	}
	a.order = make([]int, 0, n)
	for next := slices.Clone(a.children(-1)); len(next) > 0; {
		i := next[len(next)-1]
		a.order = append(a.order, i)
		next = append(next[:len(next)-1], a.children(i)...)
	}
}

// wanted is the most that a claim can use: for a leaf its demand, for any other
// what its children can use, and never more than the ceiling.
func (a *allocator) wanted(i int) uint64 {
	c := &a.claims[i]
	most := capped(uint64(c.Ceiling))
	if len(a.children(i)) == 0 {
		return min(uint64(c.Demand), most)
	}
	return min(a.wantedBelow(i), most)
}

func (a *allocator) wantedBelow(p int) (sum uint64) {
	for _, k := range a.children(p) {
		sum += a.want[k]
	}
	return sum
}

// divide gives the claims of one level what their parent has: first their own, then
// of what is left.
func (a *allocator) divide(parent amount, level []int) {
	spare := parent.minus(a.entitle(parent, level))
	if spare == (amount{}) {
		return
	}
	a.slab, a.borrowers = slices.Grow(a.slab[:0], len(level)), a.borrowers[:0]
	for _, i := range level {
		if room := exactly(a.want[i]).minus(a.has[i]); room != (amount{}) {
			turn, weight := a.turn(i)
			a.slab = append(a.slab, borrower{claim: i, turn: turn, weight: weight, room: room})
			a.borrowers = append(a.borrowers, &a.slab[len(a.slab)-1])
		}
	}
	slices.SortStableFunc(a.borrowers, func(x, y *borrower) int { return cmp.Compare(x.turn, y.turn) })
	a.fill(spare, a.borrowers)
	for _, b := range a.borrowers {
		a.has[b.claim] = a.has[b.claim].plus(b.part)
	}
}

// entitle gives the claims of one level their own, of what their parent has, and tells
// what they have together.
func (a *allocator) entitle(parent amount, level []int) amount {
	var all uint64
	for _, i := range level {
		all += a.entitled(i)
	}
	split := splitter{total: exactly(all), sum: all}
	if parent.less(split.total) {
		split.total = parent
	}
	for _, i := range level {
		a.has[i] = split.next(a.entitled(i))
	}
	return split.total
}

func (a *allocator) entitled(i int) uint64 { return min(a.want[i], uint64(a.claims[i].Guarantee)) }

// turn says when a claim gets spare, and with what weight among those of the same
// turn.
func (a *allocator) turn(i int) (turn int, weight uint64) {
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

// fill sets the part that each borrower gets of spare, one turn after the other.
func (a *allocator) fill(spare amount, borrowers []*borrower) {
	for len(borrowers) > 0 {
		n := 1
		for n < len(borrowers) && borrowers[n].turn == borrowers[0].turn {
			n++
		}
		spare = a.fillTurn(spare, borrowers[:n])
		borrowers = borrowers[n:]
	}
}

// fillTurn is water filling within one turn, and returns what is left. Whoever has
// enough at the level that all could reach is taken out, which raises the level
// for the others, until it is enough for nobody. Each time either the weights or
// the water that is set free are at most half of the last time's, so it takes less
// than a hundred times for any numbers of ours, and seldom ten.
func (a *allocator) fillTurn(spare amount, turn []*borrower) amount {
	var rooms amount
	var weights uint64
	for _, b := range turn {
		rooms = rooms.plus(b.room)
		weights += b.weight
	}
	if !spare.less(rooms) {
		for _, b := range turn {
			b.part = b.room
		}
		return spare.minus(rooms)
	}
	a.unmet = append(a.unmet[:0], turn...)
	unmet := a.unmet
	for before := 0; before != len(unmet); {
		before = len(unmet)
		all := unmet
		unmet = all[:0]
		for _, b := range all {
			if !within(b.room, b.weight, spare, weights) {
				unmet = append(unmet, b)
				continue
			}
			b.part = b.room
			spare = spare.minus(b.room)
			weights -= b.weight
		}
	}
	split := splitter{total: spare, sum: weights}
	for _, b := range unmet {
		b.part = split.next(b.weight)
	}
	return amount{}
}

// rates rounds. Every rate is the difference of two running totals rounded down,
// and so is every sum over a claim's leaves, which stand together: each is its
// number rounded down or up, and whole numbers stay as they are.
func (a *allocator) rates() []unit.Rate {
	rates := make([]unit.Rate, len(a.claims))
	upTo := amount{part: nudge}
	for _, i := range slices.Backward(a.order) {
		if len(a.children(i)) == 0 {
			before := upTo.whole
			upTo = upTo.plus(a.has[i])
			rates[i] = unit.Rate(upTo.whole - before)
		}
		if p := a.claims[i].Parent; p >= 0 {
			rates[p] += rates[i]
		}
	}
	return rates
}

// capped keeps sums within 64 bits for up to a million claims.
func capped(v uint64) uint64 { return min(v, uint64(unit.MaxRate)) }
