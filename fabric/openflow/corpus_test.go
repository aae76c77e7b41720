package openflow

import "pgregory.net/rapid"

// corpus is n tame messages of a kind, the same in each run.
func corpus(draw func(g gen) Message, n int, osken bool) []Message {
	messages := rapid.Custom(func(t *rapid.T) Message {
		rapid.Bool().Draw(t, "any") // rapid refuses to draw nothing
		return draw(gen{T: t, tame: true, osken: osken})
	})
	var all []Message
	for i := range n {
		all = append(all, messages.Example(i))
	}
	return all
}
