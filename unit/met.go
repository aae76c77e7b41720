package unit

// metFraction is the part of a guarantee that counts as all of it. It allows for the shaper's tolerance (2
// %) and for the variation of the number of packets per second.
const metFraction = 0.97

// Met reports whether the delivered amount meets the guarantee. Both are rates, or amounts over the
// same time.
func Met(delivered, guaranteed float64) bool { return delivered >= metFraction*guaranteed }
