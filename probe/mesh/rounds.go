package mesh

// serverPair is two servers, by their indices in the list.
type serverPair [2]int

// rounds returns a round-robin schedule of n servers: every pair is in one round, and no
// server is twice in a round (the circle method: one server stays, the others rotate by one
// place per round). The number of rounds is minimal: n-1, or n if n is odd.
func rounds(n int) (out [][]serverPair) {
	seats := n + n%2 // with an odd n, one seat is empty
	for round := range seats - 1 {
		var pairs []serverPair
		at := func(seat int) int {
			if seat == 0 {
				return 0
			}
			return 1 + (seat-1+round)%(seats-1)
		}
		for seat := range seats / 2 {
			a, b := at(seat), at(seats-1-seat)
			if a < n && b < n {
				pairs = append(pairs, serverPair{min(a, b), max(a, b)})
			}
		}
		out = append(out, pairs)
	}
	return out
}
