package group

import "fmt"

// Describe describes the direction as a whole, for people: its limit, what, and its spare policy.
func (t Tree) Describe(e Engine, what string) string {
	of, how := "", lending[t.Spare]
	if e == Quantum {
		of, how = " of payload", "first come, first served"
	}
	return fmt.Sprintf("limit %v%s, %s; idle groups lend %s", t.Limit, of, what, how)
}

var lending = map[Spare]string{
	Proportional: "in proportion to the guarantees",
	Equal:        "equally",
	Priority:     "to the lowest priority first",
}
