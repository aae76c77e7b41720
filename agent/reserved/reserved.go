package reserved

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/unit"
)

// Reservation is one direction of a reservation, whose packets an interface of this host sends.
type Reservation struct {
	Key string // unique among those of the host
	Dev string // the kernel's name of the interface
	// Traffic are alternatives: a packet belongs to the reservation if one of them matches.
	Traffic []group.Selector
	// Rate is what is reserved; Limit is the highest rate at the moment.
	Rate, Limit unit.Rate
	// Class is 1, the first to be served, to 4.
	Class int
	// Invalid is why the reservation cannot be enforced, nil if it can.
	Invalid error
}

// Desired are the reservations of a host.
type Desired struct {
	Reservations []Reservation
	// Lines are the capacities of the lines behind interfaces, by the kernel's names.
	Lines map[string]unit.Rate
	// Received means that a controller has sent the limits since the agent began. Otherwise they are those that the
	// controllers sent with the list, and may be older than those of the agent's state file.
	Received bool
}

// Devs returns the interfaces that have reservations, sorted.
func (d Desired) Devs() (devs []string) {
	for _, r := range d.Reservations {
		devs = append(devs, r.Dev)
	}
	slices.Sort(devs)
	return slices.Compact(devs)
}

// On returns the reservations of an interface.
func (d Desired) On(dev string) (on []Reservation) {
	for _, r := range d.Reservations {
		if r.Dev == dev {
			on = append(on, r)
		}
	}
	return on
}

// RestPath is the group of all other packets of an interface that has no configuration.
const RestPath = "(unreserved)"

// Path returns the path of the group of a reservation.
func Path(key string) string { return "reservation:" + strings.ReplaceAll(key, "/", ":") }

var keyPattern = regexp.MustCompile(`^[A-Za-z0-9._:/@-]{1,200}$`)

// Join returns the tree of an interface with its reservations, and why others are refused, by key. own is the tree
// that is configured, nil if there is none; it is not changed. line is the capacity of the line, 0 if it is not known. The
// tree is own if no reservation is accepted.
func Join(own *group.Tree, line unit.Rate, list []Reservation) (*group.Tree, map[string]error) {
	refused := map[string]error{}
	if own == nil && line < group.MinRate {
		for _, r := range list {
			refused[r.Key] = fmt.Errorf("the capacity of the line behind %s is not known, and the interface has no configured limit: write the capacity of the link in kind: Network, or a limit for the interface", r.Dev)
		}
		return own, refused
	}
	joined, free := begin(own, line)
	var rules []group.Rule
	paths := map[string]bool{}
	for _, r := range list {
		node, match, err := resolve(r, joined)
		switch {
		case err != nil:
		case paths[node.Path]:
			err = fmt.Errorf("another reservation has the key %s: give each its own", r.Key)
		case r.Rate > free:
			err = fmt.Errorf("%v of %s are reserved, and %v of its limit of %v are free: lower the guarantees of its groups, or cancel a reservation", r.Rate, r.Dev, free, joined.Limit)
		case len(joined.Nodes) == group.MaxGroups:
			err = fmt.Errorf("%s has %d groups, which is the maximum: remove one", r.Dev, group.MaxGroups)
		case len(rules)+len(match)+len(joined.Rules) > group.MaxRules:
			err = fmt.Errorf("%s would have more than %d rules, which is the maximum: remove some", r.Dev, group.MaxRules)
		}
		if err != nil {
			refused[r.Key] = err
			continue
		}
		for _, s := range match {
			rules = append(rules, group.Rule{Selector: s, Node: len(joined.Nodes)})
		}
		joined.Nodes = append(joined.Nodes, node)
		paths[node.Path], free = true, free-r.Rate
	}
	if len(paths) == 0 {
		return own, refused
	}
	joined.Rules = append(rules, joined.Rules...)
	return &joined, refused
}

// begin returns a copy of the tree to which groups can be added, and the rate that its guarantees leave.
func begin(own *group.Tree, line unit.Rate) (joined group.Tree, free unit.Rate) {
	if own == nil {
		rest := group.Node{Path: RestPath, Parent: -1, Depth: 1, Leaf: true, Ceiling: line}
		return group.Tree{Limit: line, Spare: group.Proportional, Nodes: []group.Node{rest}}, line
	}
	joined, free = *own, own.Limit
	if line > 0 {
		free = min(free, line)
	}
	joined.Nodes, joined.Rules = slices.Clone(own.Nodes), slices.Clone(own.Rules)
	for _, n := range own.Nodes {
		if n.Parent < 0 {
			free -= min(free, n.Guarantee)
		}
	}
	return joined, free
}

// resolve returns the group and the rules of a reservation in a tree, or why it can have none.
func resolve(r Reservation, in group.Tree) (n group.Node, match []group.Selector, err error) {
	switch {
	case r.Invalid != nil:
		return n, nil, r.Invalid
	case !keyPattern.MatchString(r.Key):
		return n, nil, fmt.Errorf("%q is not a key: write 1 to 200 letters, digits and . _ : / @ -", r.Key)
	case r.Rate < group.MinRate:
		return n, nil, fmt.Errorf("%v is too small: the minimum is %v", r.Rate, group.MinRate)
	case len(r.Traffic) == 0 || slices.ContainsFunc(r.Traffic, group.Selector.IsZero):
		return n, nil, fmt.Errorf("the reservation would have all packets that %s sends: name addresses, ports, a protocol or a VLAN", r.Dev)
	}
	// The rules are checked as those of a configuration are.
	alone := group.Direction{Limit: unit.MaxRate, Groups: []group.Group{{Name: "reservation", Match: r.Traffic}, {Name: "rest", Default: true}}}
	if _, problems := alone.Resolve("out", false); len(problems) > 0 {
		return n, nil, fmt.Errorf("its traffic cannot be matched: %s", problems[0].Message)
	}
	n = group.Node{Path: Path(r.Key), Parent: -1, Depth: 1, Leaf: true, Guarantee: r.Rate, Ceiling: in.Limit, Adjustable: true}
	if in.Spare == group.Priority {
		n.Priority = min(max(r.Class-1, 0), group.MaxPriority)
	}
	return n, r.Traffic, nil
}
