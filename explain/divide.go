package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
	"headgate.dev/headgate/usage"
)

// Demand is the rate that a group would have without any limit.
type Demand unit.Rate

// Unbounded is the demand of a group that uses whatever it gets.
const Unbounded = Demand(unit.MaxRate)

// ParseDemand parses a rate, or "max" for Unbounded.
func ParseDemand(s string) (Demand, error) {
	if s == Unbounded.String() {
		return Unbounded, nil
	}
	r, err := unit.ParseRate(s)
	if err != nil {
		return 0, fmt.Errorf("%w; or write %v for as much as the group can get", err, Unbounded)
	}
	return Demand(r), nil
}

func (d Demand) String() string {
	if d >= Unbounded {
		return "max"
	}
	return unit.Rate(d).String()
}

// MarshalText formats the demand with String.
func (d Demand) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Demands are the demands of leaf groups by path, in each direction that has the group. The other leaf
// groups have the demand Others.
type Demands struct {
	Groups map[string]Demand
	Others Demand
}

// ParseDemands parses demands such as "web=40Mbit" and "tenant/backup=max" of groups of a plan.
func ParseDemands(p shaper.Plan, texts []string, others Demand) (Demands, error) {
	d := Demands{Groups: map[string]Demand{}, Others: others}
	for _, text := range texts {
		name, rate, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return d, fmt.Errorf("%q is not a demand: write GROUP=RATE, such as web=40Mbit, or GROUP=max", text)
		}
		path, err := leafOf(p, name)
		if err != nil {
			return d, err
		}
		if _, twice := d.Groups[path]; twice {
			return d, fmt.Errorf("group %s has two demands: remove one", path)
		}
		if d.Groups[path], err = ParseDemand(rate); err != nil {
			return d, fmt.Errorf("%s: %w", text, err)
		}
	}
	return d, nil
}

// leafOf returns the path of the leaf group with this path, or with this last path element if only one leaf
// group has it. The error names the leaf groups that can be meant.
func leafOf(p shaper.Plan, name string) (string, error) {
	var all, below []string
	for _, t := range []*group.Tree{p.Out, p.In} {
		if t == nil {
			continue
		}
		for _, n := range t.Nodes {
			switch {
			case !n.Leaf || slices.Contains(all, n.Path):
			case strings.HasPrefix(n.Path, name+"/"):
				below = append(below, n.Path)
				fallthrough
			default:
				all = append(all, n.Path)
			}
		}
	}
	if slices.Contains(all, name) { // also if another group ends in it
		return name, nil
	}
	path, err := p.Leaf(name)
	switch {
	case err == nil:
		return path, nil
	case len(below) > 0:
		return "", fmt.Errorf("%s is a parent group, whose demand is that of its child groups: write %s", name, strings.Join(below, ", "))
	}
	return "", fmt.Errorf("%s: %w; it has %s", p.Dev, err, strings.Join(all, ", "))
}

// Division is how a device divides its limits for given demands.
type Division struct {
	Dev        string              `json:"dev"`
	Directions []DirectionDivision `json:"directions"`
}

// DirectionDivision is the division of one direction.
type DirectionDivision struct {
	Direction string      `json:"direction"`
	Limit     unit.Rate   `json:"limit"`
	Spare     group.Spare `json:"spare"`
	// Unused is the part of the limit that no group uses.
	Unused uint64      `json:"unused_bps"`
	Groups []GroupRate `json:"groups"` // parents before their children
}

// GroupRate is the expected rate of one group.
type GroupRate struct {
	Path      string    `json:"path"`
	Guarantee unit.Rate `json:"guarantee"`
	Ceiling   unit.Rate `json:"ceiling"`
	Demand    Demand    `json:"demand"` // of a parent group: of all leaf groups in it
	Rate      uint64    `json:"rate_bps"`
	Borrowed  uint64    `json:"borrowed_bps"`
	Lent      uint64    `json:"lent_bps"`
	// LimitedBy is what keeps the rate from being higher.
	LimitedBy Bound `json:"limited_by"`
	// CeilingOf is the parent group whose ceiling it is, if it is not the group's own.
	CeilingOf string `json:"ceiling_of,omitempty"`
}

// Bound is what keeps a rate from being higher.
type Bound string

const (
	ByDemand  Bound = "demand"  // the group has all that it has demand for
	ByCeiling Bound = "ceiling" // of the group, or of a parent group
	ByLink    Bound = "link"    // the direction's limit, which other groups use as well
)

// Divide computes the rates that the groups of a plan get for given demands. The two directions are two
// links, and their groups are the claims on them. A direction that is not limited is left out.
func Divide(p shaper.Plan, d Demands) Division {
	out := Division{Dev: p.Dev, Directions: []DirectionDivision{}}
	var trees []*group.Tree
	for _, side := range []struct {
		name string
		tree *group.Tree
	}{{"out", p.Out}, {"in", p.In}} {
		if t := side.tree; t != nil {
			trees = append(trees, t)
			out.Directions = append(out.Directions, DirectionDivision{Direction: side.name, Limit: t.Limit, Spare: t.Spare})
		}
	}
	for n, rates := range allocate(trees, d) {
		out.Directions[n].fill(*trees[n], d, rates)
	}
	return out
}

var policies = map[group.Spare]share.Spare{group.Proportional: share.Proportional, group.Equal: share.Equal, group.Priority: share.Priority}

// allocate returns the rates of the nodes of each tree. One call of share.AllocateLinks has one spare
// policy, so trees with different policies take one call each.
func allocate(trees []*group.Tree, d Demands) [][]unit.Rate {
	out, limits := make([][]unit.Rate, len(trees)), make([]unit.Rate, len(trees))
	for link, t := range trees {
		limits[link] = t.Limit
	}
	for name, policy := range policies {
		var claims []share.Claim
		first := map[int]int{} // index of each tree's first claim
		for link, t := range trees {
			if t.Spare != name {
				continue
			}
			first[link] = len(claims)
			for _, n := range t.Nodes {
				c := share.Claim{
					Parent: n.Parent, Guarantee: n.Guarantee, Ceiling: n.Ceiling, Weight: uint64(t.Weight(n)), Priority: n.Priority,
					Demand: unit.Rate(d.of(n)), Links: []int{link},
				}
				if n.Parent >= 0 {
					c.Parent += first[link]
				}
				claims = append(claims, c)
			}
		}
		if len(claims) == 0 {
			continue
		}
		rates := share.AllocateLinks(limits, policy, claims)
		for link, at := range first {
			out[link] = rates[at:][:len(trees[link].Nodes)]
		}
	}
	return out
}

// of returns the demand of a leaf group.
func (d Demands) of(n group.Node) Demand {
	if demand, ok := d.Groups[n.Path]; ok {
		return demand
	}
	return d.Others
}

// accounted is the interval of the account: in eight seconds, a rate has as many bytes as bits per second.
const accounted = 8 * time.Second

// fill sets the groups. Borrowed and lent bandwidth follow from the rates as from counters.
func (x *DirectionDivision) fill(t group.Tree, d Demands, rates []unit.Rate) {
	began := time.Unix(0, 0)
	before := map[string]usage.Counters{}
	now := usage.Direction{Name: x.Direction, Limit: t.Limit}
	for i, n := range t.Nodes {
		x.Groups = append(x.Groups, GroupRate{Path: n.Path, Guarantee: n.Guarantee, Ceiling: n.Ceiling, Rate: uint64(rates[i])})
		before[n.Path] = usage.Counters{At: began}
		now.Groups = append(now.Groups, usage.Group{
			Path: n.Path, Parent: n.Parent, Leaf: n.Leaf, Guarantee: n.Guarantee,
			Counters: usage.Counters{Bytes: uint64(rates[i]), At: began.Add(accounted)},
		})
	}
	x.Unused = uint64(t.Limit)
	for i, u := range usage.Account(before, now) {
		x.Groups[i].Borrowed, x.Groups[i].Lent = u.Borrowed, u.Lent
		if t.Nodes[i].Parent < 0 {
			x.Unused -= min(x.Unused, uint64(rates[i]))
		}
	}
	x.setDemands(t, d)
}

// setDemands sets the demand of each group and what limits its rate.
func (x *DirectionDivision) setDemands(t group.Tree, d Demands) {
	usable := make([]uint64, len(t.Nodes)) // of a parent group before its own ceiling
	for i, n := range slices.Backward(t.Nodes) {
		g := &x.Groups[i]
		if n.Leaf {
			g.Demand = d.of(n)
			usable[i] = uint64(g.Demand)
		}
		if n.Parent >= 0 {
			parent := &x.Groups[n.Parent]
			parent.Demand = min(parent.Demand+g.Demand, Unbounded)
			usable[n.Parent] += min(usable[i], uint64(ownCeiling(t, n)))
		}
	}
	for i, n := range t.Nodes {
		g := &x.Groups[i]
		switch {
		case g.Rate >= usable[i]:
			g.LimitedBy = ByDemand
		case g.Rate >= uint64(ownCeiling(t, n)):
			g.LimitedBy = ByCeiling
		case n.Parent < 0:
			g.LimitedBy = ByLink
		default:
			parent := x.Groups[n.Parent]
			g.LimitedBy, g.CeilingOf = parent.LimitedBy, parent.CeilingOf
			if parent.LimitedBy == ByCeiling && g.CeilingOf == "" {
				g.CeilingOf = parent.Path
			}
		}
	}
}

// ownCeiling returns the ceiling of a group, or unit.MaxRate if it is that of its parent, or the limit: a
// group has such a ceiling also if none is configured.
func ownCeiling(t group.Tree, n group.Node) unit.Rate {
	outer := t.Limit
	if n.Parent >= 0 {
		outer = t.Nodes[n.Parent].Ceiling
	}
	if n.Ceiling < outer {
		return n.Ceiling
	}
	return unit.MaxRate
}
