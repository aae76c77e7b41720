package groups

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/plot"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

// spareCase is groups of which some are idle, and the expected rates of the others.
type spareCase struct {
	name   string
	limit  unit.Rate
	spare  group.Spare
	groups []group.Group
	// demand is the offered load of leaves, by path; traffic.Unlimited is as much as TCP can send.
	// Other leaves are idle.
	demand map[string]unit.Rate
}

// leaf is a group with a guarantee in per cent; each gets its own port later.
func leaf(name string, percent unit.Share) group.Group {
	return group.Group{Name: name, Guarantee: group.Amount{Share: percent * 10_000}}
}

func ceiling(g group.Group, percent unit.Share) group.Group {
	g.Ceiling.Share = percent * 10_000
	return g
}

func priority(g group.Group, p int) group.Group {
	g.Priority = p
	return g
}

func parent(g group.Group, groups ...group.Group) group.Group {
	g.Groups = groups
	return g
}

const greedy = traffic.Unlimited

func spareCases() []spareCase {
	const limit = 100 * unit.Mbit
	both := map[string]unit.Rate{"a": greedy, "b": greedy}
	return []spareCase{
		// The case of the targets: 10 and 40 % busy, half of the link idle.
		{"10-40-of-100Mbit", limit, group.Proportional, []group.Group{leaf("a", 10), leaf("b", 40), leaf("idle", 50)}, both},
		{"10-40-of-1000Mbit", unit.Gbit, group.Proportional, []group.Group{leaf("a", 10), leaf("b", 40), leaf("idle", 50)}, both},
		{"5-15-30-of-100Mbit", limit, group.Proportional, []group.Group{leaf("a", 5), leaf("b", 15), leaf("c", 30), leaf("idle", 50)},
			map[string]unit.Rate{"a": greedy, "b": greedy, "c": greedy}},
		{"ceiling-binds", limit, group.Proportional, []group.Group{leaf("a", 10), ceiling(leaf("b", 30), 50), leaf("idle", 60)}, both},
		{"one-has-enough", limit, group.Proportional, []group.Group{leaf("a", 10), leaf("b", 30), leaf("c", 20), leaf("idle", 40)},
			map[string]unit.Rate{"a": greedy, "b": greedy, "c": 15 * unit.Mbit}},
		{"nested", limit, group.Proportional, []group.Group{
			parent(leaf("t", 60), leaf("x", 25), leaf("y", 25), leaf("idle", 50)), leaf("b", 20), leaf("idle", 20),
		}, map[string]unit.Rate{"t/x": greedy, "t/y": greedy, "b": greedy}},

		{"10-40-of-100Mbit", limit, group.Equal, []group.Group{leaf("a", 10), leaf("b", 40), leaf("idle", 50)}, both},
		{"10-40-of-1000Mbit", unit.Gbit, group.Equal, []group.Group{leaf("a", 10), leaf("b", 40), leaf("idle", 50)}, both},
		{"ceiling-binds", limit, group.Equal, []group.Group{ceiling(leaf("a", 10), 20), leaf("b", 20), leaf("c", 20), leaf("idle", 50)},
			map[string]unit.Rate{"a": greedy, "b": greedy, "c": greedy}},

		{"10-40-of-100Mbit", limit, group.Priority, []group.Group{leaf("a", 10), priority(leaf("b", 40), 1), leaf("idle", 50)}, both},
		{"10-40-of-1000Mbit", unit.Gbit, group.Priority, []group.Group{leaf("a", 10), priority(leaf("b", 40), 1), leaf("idle", 50)}, both},
		{"ceiling-binds", limit, group.Priority, []group.Group{ceiling(leaf("a", 10), 30), priority(leaf("b", 20), 1), priority(leaf("c", 10), 2), leaf("idle", 60)},
			map[string]unit.Rate{"a": greedy, "b": greedy, "c": greedy}},
	}
}

func (c spareCase) id() string { return fmt.Sprintf("spare/%s/%s", c.spare, c.name) }

// limiters returns the names of the limiters that are measured. A smoke run has the peer in the case
// of the targets.
func (c spareCase) limiters(quick bool) []string {
	if quick && c.name != spareCases()[0].name {
		return []string{bench.Ours}
	}
	return append([]string{bench.Ours}, c.peers()...)
}

// peers: HTB by hand has one spare policy, which is meant to be this one.
func (c spareCase) peers() []string {
	if c.spare == group.Proportional {
		return []string{htbName}
	}
	return nil
}

func (c spareCase) claim() bench.Claim {
	return bench.NewClaim(c.id(), "largest deviation of an active group from the rate that package share computes", spareError, c.peers()...)
}

// spareTiming has the durations of settling and of the measurement.
func spareTiming(quick bool) (settle, measure time.Duration) {
	if quick {
		return 400 * time.Millisecond, 900 * time.Millisecond
	}
	return 2 * time.Second, 8 * time.Second
}

func (c spareCase) direction() group.Direction {
	next := uint16(basePort)
	d := group.Direction{Limit: c.limit, Spare: c.spare, Groups: withPorts(c.groups, &next)}
	first := &d.Groups[0]
	for len(first.Groups) > 0 {
		first = &first.Groups[0]
	}
	first.Default = true
	return d
}

// withPorts gives every leaf a rule.
func withPorts(groups []group.Group, next *uint16) (out []group.Group) {
	for _, g := range groups {
		if len(g.Groups) > 0 {
			g.Groups = withPorts(g.Groups, next)
		} else {
			g.Match = port(*next)
			*next++
		}
		out = append(out, g)
	}
	return out
}

// answer returns the rates that package share computes for the leaves.
func (c spareCase) answer(t *group.Tree) []unit.Rate {
	claims := make([]share.Claim, len(t.Nodes))
	for i, n := range t.Nodes {
		claims[i] = share.Claim{
			Parent: n.Parent, Guarantee: n.Guarantee, Ceiling: n.Ceiling, Weight: uint64(t.Weight(n)), Priority: n.Priority, Demand: c.demand[n.Path],
		}
	}
	return share.Allocate(t.Limit, map[group.Spare]share.Spare{
		group.Proportional: share.Proportional, group.Equal: share.Equal, group.Priority: share.Priority,
	}[t.Spare], claims)
}

func (c spareCase) run(ctx context.Context, r *bench.Run) error {
	p, err := plan(c.direction(), false)
	if err != nil {
		return err
	}
	settle, measure := spareTiming(r.Quick)
	right := c.answer(p.Out)
	from, to := ends(false)
	var flows []traffic.Flow
	for _, rule := range p.Out.Rules {
		n := p.Out.Nodes[rule.Node]
		if d := c.demand[n.Path]; d > 0 {
			flows = append(flows, traffic.Flow{
				Name: n.Path, From: from, To: to, Protocol: traffic.TCP, DstPort: rule.Selector.DPort[0].First, Schedule: traffic.Constant(d),
			})
		}
	}
	expected := plot.BarSet{Name: "package share"}
	pictured := &plot.Bars{}
	for i, n := range p.Out.Nodes {
		if c.demand[n.Path] > 0 {
			pictured.Groups = append(pictured.Groups, n.Path)
			expected.Values = append(expected.Values, float64(right[i])/1e6)
		}
	}
	pictured.Sets = append(pictured.Sets, expected)
	for _, name := range c.limiters(r.Quick) {
		sheet := r.Sheet(name)
		f, err := trial{limiter: name, plan: p, flows: flows, length: settle + measure, sample: 250 * time.Millisecond, bin: 10 * time.Millisecond}.run(ctx)
		if err != nil {
			if err := peerError(sheet, err); err != nil {
				return err
			}
			continue
		}
		worst := 0.0
		set := plot.BarSet{Name: name}
		var rates []string
		for i, n := range p.Out.Nodes {
			if c.demand[n.Path] == 0 {
				continue
			}
			got := f.arrivals[n.Path].Rate(settle, settle+measure)
			worst = max(worst, 100*math.Abs(got/float64(right[i])-1))
			set.Values = append(set.Values, got/1e6)
			rates = append(rates, fmt.Sprintf("%s %s (%s)", n.Path, bench.Number(got/1e6), bench.Number(float64(right[i])/1e6)))
		}
		pictured.Sets = append(pictured.Sets, set)
		sheet.Set(c.id(), worst)
		sheet.Note(c.id(), "measured and expected Mbit/s: %s", strings.Join(rates, ", "))
		sheet.Keep("rates_mbit_per_s", set.Values)
		sheet.Keep("offloads", f.offloads)
		sheet.Keep("right_mbit_per_s", expected.Values)
	}
	r.Plot(plot.Plot{
		File: file(c.id()), Row: "spare", Title: fmt.Sprintf("%s, %s", c.spare, c.name), Y: "layer-2 rate (Mbit/s)",
		Caption: "Rates of the active groups while others are idle.", Bars: pictured,
	})
	return nil
}

// spareBenches have the slow cases first; a smoke run measures those of one spare policy together.
func spareBenches() (out []bench.Case) {
	cases := spareCases()
	slices.SortStableFunc(cases, func(a, b spareCase) int { return cmp.Compare(a.limit, b.limit) })
	for _, c := range cases {
		out = append(out, bench.Case{
			Name: c.id(), Claims: []bench.Claim{c.claim()}, Run: c.run,
			Alongside: func(quick bool) string {
				if quick && c.limit < unit.Gbit {
					return "spare, " + string(c.spare)
				}
				return ""
			},
			Takes: func(quick bool) time.Duration {
				settle, measure := spareTiming(quick)
				return time.Duration(len(c.limiters(quick))) * (settle + measure + overhead)
			},
		})
	}
	return out
}
