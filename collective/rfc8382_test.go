package collective

import (
	"cmp"
	"slices"
)

// Differences that divide groups (RFC 8382, section 2.2): p_f, p_mad, p_s, and p_d.
const sbdFrequency, sbdVariation, sbdSkewApart, sbdLossApart = 0.1, 0.1, 0.15, 0.1

// GroupsRFC8382 returns the groups of section 3.3 alone: connections that are alike in frequency, variation, skewness and loss.
func (b *Bottlenecks) GroupsRFC8382() (out [][]ID) {
	type flow struct {
		id ID
		sbdSummary
	}
	var some []flow
	for id, f := range b.flows {
		if len(f.past) >= minShared && f.bottleneck {
			some = append(some, flow{id, f.summary()})
		}
	}
	groups := [][]flow{some}
	divide := func(value func(flow) float64, apart func(low, high float64) bool) {
		var finer [][]flow
		for _, g := range groups {
			slices.SortFunc(g, func(a, b flow) int { return cmp.Or(cmp.Compare(value(a), value(b)), cmp.Compare(a.id, b.id)) })
			begin := 0
			for i := 1; i <= len(g); i++ {
				if i == len(g) || apart(value(g[i-1]), value(g[i])) {
					finer = append(finer, g[begin:i])
					begin = i
				}
			}
		}
		groups = finer
	}
	divide(func(f flow) float64 { return f.frequency }, func(low, high float64) bool { return high-low > sbdFrequency })
	divide(func(f flow) float64 { return f.variation }, func(low, high float64) bool { return high-low > sbdVariation*high })
	divide(func(f flow) float64 { return f.skew }, func(low, high float64) bool { return high-low > sbdSkewApart })
	divide(func(f flow) float64 { return f.loss }, func(low, high float64) bool { return high > sbdLoss && high-low > sbdLossApart*high })
	for _, g := range groups {
		if len(g) > 1 {
			var ids []ID
			for _, f := range g {
				ids = append(ids, f.id)
			}
			slices.Sort(ids)
			out = append(out, ids)
		}
	}
	return out
}
