package cli

// pairOf are two servers, by their places in the list.
type pairOf [2]int

// rounds have every pair of n servers once, and in none of them a server twice (the
// circle method: one stays, the others move on by a place each round). There are as
// few as there can be: n-1, or n if that is odd.
func rounds(n int) (out [][]pairOf) {
	seats := n + n%2 // an empty one for who has no partner
	for round := range seats - 1 {
		var pairs []pairOf
		at := func(seat int) int {
			if seat == 0 {
				return 0
			}
			return 1 + (seat-1+round)%(seats-1)
		}
		for seat := range seats / 2 {
			a, b := at(seat), at(seats-1-seat)
			if a < n && b < n {
				pairs = append(pairs, pairOf{min(a, b), max(a, b)})
			}
		}
		out = append(out, pairs)
	}
	return out
}
