package group

import (
	"fmt"
	"regexp"
	"strings"

	"headgate/unit"
)

// Limits of the model. A class id of HTB has 16 bits; the rest are headroom for
// what a user could mean, so that a slip of the pen is caught.
const (
	// MinRate is the smallest limit: below it one full frame takes over a second.
	MinRate = 8 * unit.Kbit
	// MaxGroups is the most nodes a direction may have, inner ones included.
	MaxGroups = 16000
)

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// Problem is one mistake. Where is the place in the user's own keys, such as
// "out.groups[1].guarantee".
type Problem struct{ Where, Message string }

func (p Problem) Error() string { return p.Where + ": " + p.Message }

// Tree is one direction, resolved: all amounts are rates, all rules one list.
type Tree struct {
	Limit   unit.Rate
	Spare   Spare
	Nodes   []Node // parents before their children, in file order
	Rules   []Rule // the first that matches decides
	Default int    // index in Nodes of the leaf for what no rule matches
}

// Node is a group with its amounts as rates.
type Node struct {
	Path      string // "tenant/vm/web"
	Parent    int    // index in Tree.Nodes, or -1
	Depth     int    // 1 for a group of the direction itself
	Leaf      bool
	Guarantee unit.Rate
	Ceiling   unit.Rate
	Priority  int
}

// Rule sends what its selector matches to a leaf.
type Rule struct {
	Selector Selector
	Node     int // index in Tree.Nodes
}

// Weight is the node's part in lent bandwidth under Proportional: its guarantee,
// or a thousandth of the limit if it has less, so that a group without guarantee
// is not shut out of what nobody else wants.
func (t Tree) Weight(n Node) unit.Rate { return max(n.Guarantee, t.Limit/1000, 1) }

// Find is the index of the leaf that a user calls name: by its path, or by its
// last element if only one leaf has it.
func (t Tree) Find(name string) (int, error) {
	found, also := -1, -1
	for i, n := range t.Nodes {
		if !n.Leaf {
			continue
		}
		if n.Path == name {
			return i, nil
		}
		if strings.HasSuffix(n.Path, "/"+name) {
			found, also = i, found
		}
	}
	switch {
	case found < 0:
		return 0, fmt.Errorf("there is no group %q", name)
	case also >= 0:
		return 0, fmt.Errorf("%q is ambiguous: write %q or %q", name, t.Nodes[also].Path, t.Nodes[found].Path)
	}
	return found, nil
}

// Resolve checks the direction and flattens it. where is its place in the user's
// keys ("out"); allowCgroup tells whether rules may name cgroups there. With
// problems the Tree must not be used.
func (d Direction) Resolve(where string, allowCgroup bool) (Tree, []Problem) {
	r := resolver{
		tree:        Tree{Limit: d.Limit, Spare: d.Spare, Default: -1},
		allowCgroup: allowCgroup,
	}
	switch d.Spare {
	case "":
		r.tree.Spare = Proportional
	case Proportional, Equal, Priority:
	default:
		r.problem(where+".spare", "%q is not a way to lend: write %s, %s or %s", d.Spare, Proportional, Equal, Priority)
	}
	if d.Limit < MinRate {
		r.problem(where+".limit", "%v is too small: the least is %v", d.Limit, MinRate)
	}
	if d.Limit > unit.MaxRate {
		r.problem(where+".limit", "%v is too large: the most is %v", d.Limit, unit.MaxRate)
	}
	if len(d.Groups) == 0 {
		r.problem(where+".groups", "there are no groups: add at least one, with default: true")
		return r.tree, r.problems
	}
	r.groups(d.Groups, scope{where: where, parent: -1, guarantee: d.Limit, ceiling: d.Limit, whole: "the limit"})
	if r.tree.Default < 0 && !r.defaultBroken {
		r.problem(where+".groups", "no group takes what no rule matches: write default: true in one of them")
	}
	if len(r.tree.Nodes) > MaxGroups {
		r.problem(where+".groups", "%d groups are too many: the most is %d a direction", len(r.tree.Nodes), MaxGroups)
	}
	return r.tree, r.problems
}

type resolver struct {
	tree          Tree
	problems      []Problem
	allowCgroup   bool
	defaultBroken bool // a default exists but is misplaced: one message is enough
	defaultWhere  string
}

// scope is what the groups of one level have in common.
type scope struct {
	where              string
	path               string
	parent             int
	depth              int
	guarantee, ceiling unit.Rate
	whole              string     // what percentages are of, in words
	match              []Selector // what an enclosing group lets through; nil is everything
	nested             bool       // inside a group with match
}

func (r *resolver) problem(where, format string, args ...any) {
	r.problems = append(r.problems, Problem{where, fmt.Sprintf(format, args...)})
}

func (r *resolver) groups(groups []Group, s scope) {
	if s.depth >= MaxDepth {
		r.problem(s.where+".groups", "groups may be nested %d deep (tenant, VM, group), not deeper", MaxDepth)
		return
	}
	var total unit.Rate
	seen := map[string]string{}
	fallback := -1
	for i, g := range groups {
		where := fmt.Sprintf("%s.groups[%d]", s.where, i)
		if !namePattern.MatchString(g.Name) {
			r.problem(where+".name", "%q is not a name: write 1 to 63 letters, digits, dots, dashes or underscores, a letter or digit first", g.Name)
		} else if first, dup := seen[g.Name]; dup {
			r.problem(where+".name", "%q is already the name of %s: names are unique among the groups of one parent", g.Name, first)
		}
		seen[g.Name] = where
		n := r.node(g, where, s)
		total += n.Guarantee
		index := len(r.tree.Nodes)
		r.tree.Nodes = append(r.tree.Nodes, n)
		match := r.match(g.Match, where, s.match)
		if !n.Leaf {
			if g.Default {
				r.defaultBroken = true
				r.problem(where+".default", "a group that has groups cannot be the default: write default: true in one of its groups")
			}
			r.groups(g.Groups, scope{
				where: where, path: n.Path, parent: index, depth: n.Depth, guarantee: n.Guarantee, ceiling: n.Ceiling,
				whole: fmt.Sprintf("group %q", n.Path), match: match, nested: s.nested || len(g.Match) > 0,
			})
			continue
		}
		if len(g.Match) > 0 {
			for _, sel := range match {
				r.tree.Rules = append(r.tree.Rules, Rule{sel, index})
			}
		}
		switch {
		case !g.Default:
		case s.nested && fallback >= 0:
			r.problem(where+".default", "%q is already the default of %s", r.tree.Nodes[fallback].Path, s.whole)
		case s.nested:
			fallback = index
		case r.tree.Default >= 0:
			r.problem(where+".default", "%s is already the default: only one group can be", r.defaultWhere)
		default:
			r.tree.Default, r.defaultWhere = index, fmt.Sprintf("%q", n.Path)
		}
	}
	if fallback >= 0 {
		// After the siblings' rules: what reaches the parent and none of them.
		for _, sel := range s.match {
			r.tree.Rules = append(r.tree.Rules, Rule{sel, fallback})
		}
	}
	if total > s.guarantee {
		r.problem(s.where+".groups", "guarantees total %v of %s, which has %v: lower them to %v or less", total, s.whole, s.guarantee, s.guarantee)
	}
}

func (r *resolver) node(g Group, where string, s scope) Node {
	n := Node{
		Path: strings.TrimPrefix(s.path+"/"+g.Name, "/"), Parent: s.parent, Depth: s.depth + 1, Leaf: len(g.Groups) == 0,
		Guarantee: g.Guarantee.Of(s.guarantee), Ceiling: g.Ceiling.Of(s.ceiling), Priority: g.Priority,
	}
	if g.Ceiling.IsZero() {
		n.Ceiling = s.ceiling
	}
	if n.Ceiling > s.ceiling {
		r.problem(where+".ceiling", "%v is more than %s allows: %v", g.Ceiling, s.whole, s.ceiling)
	}
	if n.Guarantee > n.Ceiling {
		r.problem(where+".guarantee", "%v is more than the group's ceiling of %v", n.Guarantee, n.Ceiling)
	}
	if n.Ceiling < MinRate && s.ceiling >= MinRate {
		r.problem(where+".ceiling", "%v is too small: the least is %v", n.Ceiling, MinRate)
	}
	switch {
	case g.Priority == 0:
	case r.tree.Spare != Priority:
		r.problem(where+".priority", "priorities order lending, which is %s here: write spare: %s, or leave it out", r.tree.Spare, Priority)
	case g.Priority < 0 || g.Priority > MaxPriority:
		r.problem(where+".priority", "%d is not a priority: write 0 (served first) to %d", g.Priority, MaxPriority)
	}
	return n
}

// match checks the selectors and bounds them by those of the enclosing groups.
func (r *resolver) match(list []Selector, where string, outer []Selector) []Selector {
	if len(list) == 0 {
		return outer
	}
	var out []Selector
	for i, sel := range list {
		place := fmt.Sprintf("%s.match[%d]", where, i)
		r.check(sel, place)
		if outer == nil {
			out = append(out, sel)
			continue
		}
		reachable := false
		for _, o := range outer {
			if both, ok := intersect(o, sel); ok {
				out, reachable = append(out, both), true
			}
		}
		if !reachable {
			r.problem(place, "%v can never match: the enclosing group takes only other packets", sel)
		}
	}
	return out
}

func (r *resolver) check(s Selector, where string) {
	if s.IsZero() {
		r.problem(where, "the rule is empty and would match every packet: write default: true in the group instead")
	}
	if s.Cgroup != "" {
		switch {
		case !r.allowCgroup:
			r.problem(where+".cgroup", "cgroups are known only for this host's own sockets as they send: use it under out, with perspective host")
		case !strings.HasPrefix(s.Cgroup, "/") || strings.Contains(s.Cgroup, "/../") || strings.HasSuffix(s.Cgroup, "/.."):
			r.problem(where+".cgroup", "%q is not a cgroup: write its path below the cgroup2 mount, for example /system.slice/nginx.service", s.Cgroup)
		}
	}
	if len(s.SPort)+len(s.DPort) > 0 {
		for _, p := range s.Proto {
			if p != TCP && p != UDP && p != SCTP {
				r.problem(where+".proto", "%s has no ports: leave out sport and dport, or write tcp, udp or sctp", ProtoName(p))
			}
		}
	}
	if len(s.Src) > 0 && len(s.Dst) > 0 && !shareFamily(s.Src, s.Dst) {
		r.problem(where+".dst", "no packet goes between IPv4 and IPv6: src and dst have no version in common")
	}
	for _, v := range s.DSCP {
		if v > 63 {
			r.problem(where+".dscp", "%d is not a DSCP: write 0 to 63", v)
		}
	}
	for _, v := range s.VLAN {
		if v < 1 || v > 4094 {
			r.problem(where+".vlan", "%d is not a VLAN id: write 1 to 4094", v)
		}
	}
}

// Resolved is an interface with both its directions resolved.
type Resolved struct {
	Interface
	OutTree, InTree *Tree
}

// Resolve checks the whole interface. All problems are found in one go.
func (i Interface) Resolve() (Resolved, []Problem) {
	res := Resolved{Interface: i}
	var problems []Problem
	add := func(where, format string, args ...any) {
		problems = append(problems, Problem{where, fmt.Sprintf(format, args...)})
	}
	if i.Dev == "" {
		add("dev", "there is no device: write its name, or a pattern such as \"veth*\"")
	} else if err := checkPattern(i.Dev); err != nil {
		add("dev", "%q is not a device or pattern: %v", i.Dev, err)
	}
	switch i.Perspective {
	case "":
		res.Perspective = Host
	case Host, Guest:
	default:
		add("perspective", "%q is not a perspective: write %s, or %s for a VM's tap or a container's veth", i.Perspective, Host, Guest)
	}
	switch i.Engine {
	case "":
		res.Engine = HTB
	case HTB, Quantum:
	default:
		add("engine", "%q is not an engine: write %s or %s", i.Engine, HTB, Quantum)
	}
	if i.Overhead.Frame > 256 {
		add("overhead.frame", "%v is more than any link adds to a packet: write 256 bytes or less", i.Overhead.Frame)
	}
	if i.Overhead.Minimum > 1500 {
		add("overhead.minimum", "%v is more than any link's smallest frame: write 1500 bytes or less", i.Overhead.Minimum)
	}
	if i.Out == nil && i.In == nil {
		add("out", "neither out nor in is given: there is nothing to divide")
	}
	if i.Out != nil {
		tree, p := i.Out.Resolve("out", res.Perspective == Host)
		res.OutTree, problems = &tree, append(problems, p...)
	}
	if i.In != nil {
		tree, p := i.In.Resolve("in", false)
		res.InTree, problems = &tree, append(problems, p...)
	}
	return res, problems
}
