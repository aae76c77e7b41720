package share

import (
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
	// has is what a claim has so far. Before anyone above it lends, that is its
	// own: for a leaf the lesser of guarantee and want, for any other that too,
	// all of it lent to those below; and less where the guarantees of a level do
	// not fit. What comes from above is added to leaves only.
	has []amount

	borrowers []borrower // leaves that want more than their own, by turn
	at        []int      // where a leaf is in borrowers, if it is
	waiting   []int      // in borrowers: those below who could have more from above
	count     []int      // how many of the waiting are below a claim
	unmet     []int      // scratch
}

// borrower is a leaf that has its own and wants more.
type borrower struct {
	claim  int
	turn   int
	weight uint64 // never zero
	// room is how much more it can have: what it wants, or what the ceilings
	// above it let through if everyone below them gets as much as they can have.
	room amount
	part amount // what fill gives it
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

// entitle gives the claims of one level their own, of what their parent has.
func (a *allocator) entitle(parent amount, level []int) {
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
}

func (a *allocator) entitled(i int) uint64 { return min(a.want[i], uint64(a.claims[i].Guarantee)) }

// queue lists the borrowers by turn, and those of the same turn in the order of
// the tree.
func (a *allocator) queue() {
	a.borrowers = make([]borrower, 0, len(a.claims))
	for _, i := range slices.Backward(a.order) {
		if room := exactly(a.want[i]).minus(a.has[i]); len(a.children(i)) == 0 && room != (amount{}) {
			turn, weight := a.turn(i)
			a.borrowers = append(a.borrowers, borrower{claim: i, turn: turn, weight: weight, room: room})
		}
	}
	a.borrowers = byTurn(a.borrowers)
	for n, b := range a.borrowers {
		a.at[b.claim] = n
		a.count[b.claim] = 1
	}
	a.waiting = make([]int, 0, len(a.borrowers))
}

// byTurn is a stable counting sort: turns are few.
func byTurn(list []borrower) []borrower {
	turns := make([]int, len(list))
	for n := range list {
		turns[n] = list[n].turn
	}
	if slices.IsSorted(turns) {
		return list
	}
	slices.Sort(turns)
	kinds := slices.Compact(slices.Clone(turns))
	next := make([]int, len(kinds))
	for k, turn := range kinds {
		next[k], _ = slices.BinarySearch(turns, turn)
	}
	sorted := make([]borrower, len(list))
	for n := range list {
		k, _ := slices.BinarySearch(kinds, list[n].turn)
		sorted[next[k]] = list[n]
		next[k]++
	}
	return sorted
}

// turn says when a leaf gets spare, and with what weight among those of the same
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

// climb lends at every claim that has children, the lowest first, and then at the
// root, which has whole. Whoever still waits stands at the end of waiting, for the
// next claim above.
func (a *allocator) climb(whole amount) {
	for _, i := range slices.Backward(a.order) {
		kids := a.children(i)
		if len(kids) == 0 {
			if a.count[i] > 0 {
				a.waiting = append(a.waiting, a.at[i])
			}
			continue
		}
		n := 0
		for _, k := range kids {
			n += a.count[k]
		}
		before := len(a.waiting) - n
		below := a.waiting[before:]
		a.lend(a.left(a.has[i], kids), below)
		if a.wantedBelow(i) > a.want[i] {
			a.narrow(exactly(a.want[i]).minus(a.has[i]), below)
		}
		a.waiting = a.waiting[:before]
		for _, n := range below {
			if a.borrowers[n].room != (amount{}) {
				a.waiting = append(a.waiting, n)
			}
		}
		a.count[i] = len(a.waiting) - before
	}
	a.lend(a.left(whole, a.children(-1)), a.waiting)
}

// left is what the children leave of what their parent has.
func (a *allocator) left(has amount, kids []int) amount {
	for _, k := range kids {
		has = has.minus(a.has[k])
	}
	return has
}

// lend gives spare to the waiting, after putting them in their order.
func (a *allocator) lend(spare amount, waiting []int) {
	slices.Sort(waiting)
	if spare == (amount{}) {
		return
	}
	a.fill(spare, waiting)
	for _, n := range waiting {
		b := &a.borrowers[n]
		a.has[b.claim] = a.has[b.claim].plus(b.part)
		b.room = b.room.minus(b.part)
	}
}

// narrow lets all who wait below a ceiling have no more than room together. They
// rise at the speed of their weights, and stop together, whoever lends above: so
// where each of them stops is known here.
func (a *allocator) narrow(room amount, waiting []int) {
	a.fill(room, waiting)
	for _, n := range waiting {
		a.borrowers[n].room = a.borrowers[n].part
	}
}

// fill sets the part that each of the waiting gets of spare, one turn after the
// other.
func (a *allocator) fill(spare amount, waiting []int) {
	for len(waiting) > 0 {
		n := 1
		for n < len(waiting) && a.borrowers[waiting[n]].turn == a.borrowers[waiting[0]].turn {
			n++
		}
		spare = a.fillTurn(spare, waiting[:n])
		waiting = waiting[n:]
	}
}

// fillTurn is water filling within one turn, and returns what is left. Whoever has
// enough at the level that all could reach is taken out, which raises the level
// for the others, until it is enough for nobody. Each time either the weights or
// the water that is set free are at most half of the last time's, so it takes less
// than a hundred times for any numbers of ours, and seldom ten.
func (a *allocator) fillTurn(spare amount, turn []int) amount {
	var rooms amount
	var weights uint64
	for _, n := range turn {
		rooms = rooms.plus(a.borrowers[n].room)
		weights += a.borrowers[n].weight
	}
	if !spare.less(rooms) {
		for _, n := range turn {
			a.borrowers[n].part = a.borrowers[n].room
		}
		return spare.minus(rooms)
	}
	a.unmet = append(a.unmet[:0], turn...)
	unmet := a.unmet
	for before := 0; before != len(unmet); {
		before = len(unmet)
		all := unmet
		unmet = all[:0]
		for _, n := range all {
			b := &a.borrowers[n]
			if !within(b.room, b.weight, spare, weights) {
				unmet = append(unmet, n)
				continue
			}
			b.part = b.room
			spare = spare.minus(b.room)
			weights -= b.weight
		}
	}
	split := splitter{total: spare, sum: weights}
	for _, n := range unmet {
		a.borrowers[n].part = split.next(a.borrowers[n].weight)
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
