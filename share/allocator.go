package share

import (
	"cmp"
	"fmt"
	"slices"

	"headgate/unit"
)

// allocator holds the tree of one Allocate call, linked from the top down.
type allocator struct {
	spare  Spare
	claims []Claim
	first  []int // slot s of kids begins here; the tops are slot 0, the children of p slot p+1
	kids   []int // claims by slot, in their order
	order  []int // claims that reach the top, parents before children
	want   []uint64
	given  []unit.Rate
	hungry []hungry
}

// hungry is a claim that has its guarantee and wants more.
type hungry struct {
	claim        int
	turn         int
	room, weight uint64 // weight is never zero
}

func (a *allocator) tops() []int          { return a.kids[a.first[0]:a.first[1]] }
func (a *allocator) children(p int) []int { return a.kids[a.first[p+1]:a.first[p+2]] }

// link sorts the claims by parent (a counting sort) and orders them breadth first.
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
	a.order = append(make([]int, 0, n), a.tops()...)
	for at := 0; at < len(a.order); at++ {
		a.order = append(a.order, a.children(a.order[at])...)
	}
}

// wanted is the most that a claim can use: for a leaf its demand, for any other
// what its children can use, and never more than the ceiling.
func (a *allocator) wanted(i int) uint64 {
	c := &a.claims[i]
	most := capped(uint64(c.Ceiling))
	kids := a.children(i)
	if len(kids) == 0 {
		return min(uint64(c.Demand), most)
	}
	var sum uint64
	for _, k := range kids {
		sum += a.want[k]
	}
	return min(sum, most)
}

// divide hands given to the claims of one level.
func (a *allocator) divide(given uint64, level []int) {
	var first, all uint64
	for _, i := range level {
		first += a.entitled(i)
		all += a.want[i]
	}
	switch {
	case all <= given:
		for _, i := range level {
			a.given[i] = unit.Rate(a.want[i])
		}
	case first >= given:
		split := splitter{total: given, sum: first}
		for _, i := range level {
			a.given[i] = unit.Rate(split.next(a.entitled(i)))
		}
	default:
		a.hungry = a.hungry[:0]
		for _, i := range level {
			has := a.entitled(i)
			a.given[i] = unit.Rate(has)
			if room := a.want[i] - has; room > 0 {
				turn, weight := a.turn(i)
				a.hungry = append(a.hungry, hungry{claim: i, turn: turn, room: room, weight: weight})
			}
		}
		a.lend(given - first)
	}
}

// entitled is what a claim gets before anyone gets more.
func (a *allocator) entitled(i int) uint64 { return min(a.want[i], uint64(a.claims[i].Guarantee)) }

// turn says when a claim gets spare, and with what weight among those of the
// same turn.
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

// lend shares spare among the hungry, one turn after the other. Within a turn
// those who need least for their weight stand first, because they are the first
// to have enough.
func (a *allocator) lend(spare uint64) {
	slices.SortFunc(a.hungry, func(x, y hungry) int {
		if x.turn != y.turn {
			return cmp.Compare(x.turn, y.turn)
		}
		if c := cmpProducts(x.room, y.weight, y.room, x.weight); c != 0 {
			return c
		}
		return cmp.Compare(x.claim, y.claim)
	})
	for rest := a.hungry; len(rest) > 0 && spare > 0; {
		n := 1
		for n < len(rest) && rest[n].turn == rest[0].turn {
			n++
		}
		spare = a.fill(rest[:n], spare)
		rest = rest[n:]
	}
}

// fill is water filling among claims of one turn, and returns what they leave.
func (a *allocator) fill(turn []hungry, spare uint64) uint64 {
	var weights uint64
	for _, h := range turn {
		weights += h.weight
	}
	for n, h := range turn {
		if cmpProducts(h.room, weights, spare, h.weight) > 0 {
			// This one gets less than its room, and so does everyone after it.
			// Its exact part is below a whole number, so that rounding up cannot
			// pass the room.
			split := splitter{total: spare, sum: weights}
			for _, h := range turn[n:] {
				a.given[h.claim] += unit.Rate(split.next(h.weight))
			}
			return 0
		}
		a.given[h.claim] += unit.Rate(h.room)
		spare -= h.room
		weights -= h.weight
	}
	return spare
}

// capped keeps sums within 64 bits for up to a million claims.
func capped(v uint64) uint64 { return min(v, uint64(unit.MaxRate)) }
