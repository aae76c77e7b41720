package unit

// met of a guarantee counts as all of it: the shaper's own tolerance (2 %), and what a second has more
// or less in packets.
const met = 0.97

// Met tells whether a guarantee is met by what was delivered, two rates or what they are over a time.
func Met(delivered, guaranteed float64) bool { return delivered >= met*guaranteed }
