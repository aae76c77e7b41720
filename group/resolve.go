package group

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"headgate.dev/headgate/unit"
)

// Limits of the model. An HTB class ID has 16 bits. The other limits are far above any
// realistic configuration and catch typing errors.
const (
	// MinRate is the minimum limit: at a lower rate, one full frame takes more than a second.
	MinRate = 8 * unit.Kbit
	// MaxGroups is the maximum number of groups of a direction, parent groups included.
	MaxGroups = 16000
	// MaxRules is the maximum number of rules of a direction. Rules of nested groups multiply:
	// ten in a tenant and ten in each of its groups are a hundred in each group.
	MaxRules = 16384
	// MaxValues is the maximum number of values of one field of one rule.
	MaxValues = 1024
	// intersectBudget limits the work, per top-level group of a direction, of intersecting rules
	// with the rules of parent groups: the limit corresponds to a tenth of a second. A value
	// that both rules have costs intersectValueCost, because a million such values exceed what a
	// classifier holds.
	intersectBudget, intersectValueCost = 1 << 24, 16
)

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// Messages that package config recognizes, because a value that cannot be parsed causes the
// same problems.
const (
	NoDefault       = "no default group: write default: true in one of the groups"
	NothingExcluded = "not is empty: write fields under it, or remove it"
	EmptyRule       = "the rule is empty and would match every packet: write default: true in the group instead"
)

// Problem is one configuration error. Where is its place as a path of the user's keys, such as
// "out.groups[1].guarantee".
type Problem struct {
	Where, Message string
	// Limit is the key of the limit that a percentage in the message refers to; "" if there is
	// none.
	Limit string
}

func (p Problem) Error() string { return p.Where + ": " + p.Message }

// Tree is one resolved direction: all amounts are rates, and all rules are in one list.
type Tree struct {
	Limit   unit.Rate `json:"limit"`
	Spare   Spare     `json:"spare"`
	Nodes   []Node    `json:"nodes"`   // parents before their children, in file order
	Rules   []Rule    `json:"rules"`   // the first rule that matches decides
	Default int       `json:"default"` // index in Nodes of the default leaf group
}

// Node is a group with its amounts as rates.
type Node struct {
	Path      string    `json:"path"`   // "tenant/vm/web"
	Parent    int       `json:"parent"` // index in Tree.Nodes, or -1
	Depth     int       `json:"depth"`  // 1 for a top-level group
	Leaf      bool      `json:"leaf"`
	Guarantee unit.Rate `json:"guarantee"`
	Ceiling   unit.Rate `json:"ceiling"`
	Priority  int       `json:"priority"`
	// Adjustable means that the limit of the group changes while it carries packets, within Ceiling: it is
	// state of the engine and not part of the tree (shaper.Adjuster). Until it is set, it is Guarantee. The
	// group's queue depends on Guarantee and on the limit of the tree alone, so that a change keeps it. No
	// configuration creates such groups, and they are leaves at the top.
	Adjustable bool `json:"adjustable,omitempty"`
	// Clients describes the clients of a leaf group with Each.
	Clients Clients `json:"clients,omitzero"`
}

// SteadyCeiling returns the part of Ceiling that does not depend on limits that change: Guarantee for an
// Adjustable node.
func (n Node) SteadyCeiling() unit.Rate {
	if n.Adjustable {
		return n.Guarantee
	}
	return n.Ceiling
}

// Rule assigns the packets that its selector matches to a leaf group.
type Rule struct {
	Selector Selector `json:"selector"`
	Node     int      `json:"node"` // index in Tree.Nodes
}

// Weight is the node's weight in the division of spare bandwidth under Proportional: its
// guarantee, or a thousandth of the limit if the guarantee is lower. The minimum lets a group
// without guarantee use bandwidth that no other group uses.
func (t Tree) Weight(n Node) unit.Rate { return max(n.Guarantee, t.Limit/1000, 1) }

// Find returns the index of the leaf group with this path, or with this last path element if
// only one leaf group has it.
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

// Resolve validates the direction and flattens it into a Tree. where is the direction's place
// in the user's keys ("out"); allowCgroup reports whether rules may match cgroups. If there are
// problems, the Tree must not be used.
func (d Direction) Resolve(where string, allowCgroup bool) (Tree, []Problem) {
	tree, _, problems := d.resolve(where, allowCgroup)
	return tree, problems
}

// resolve is Resolve, and also returns the place where each rule of the tree was written.
func (d Direction) resolve(where string, allowCgroup bool) (Tree, []string, []Problem) {
	r := resolver{
		tree:        Tree{Limit: d.Limit, Spare: d.Spare, Default: -1},
		limit:       where + ".limit",
		allowCgroup: allowCgroup,
	}
	switch d.Spare {
	case "":
		r.tree.Spare = Proportional
	case Proportional, Equal, Priority:
	default:
		r.problem(where+".spare", "%q is not a spare policy: write %s, %s or %s", d.Spare, Proportional, Equal, Priority)
		r.tree.Spare = Priority // do not report the priorities of the groups, which may be correct
	}
	if d.Limit < MinRate {
		r.problem(where+".limit", "%v is too small: the minimum is %v", d.Limit, MinRate)
	}
	if d.Limit > unit.MaxRate {
		r.problem(where+".limit", "%v is too large: the maximum is %v", d.Limit, unit.MaxRate)
	}
	if len(d.Groups) == 0 {
		r.problem(where+".groups", "there are no groups: add at least one, with default: true")
		return r.tree, nil, r.problems
	}
	top := fallback{node: -1}
	r.groups(d.Groups, scope{where: where, parent: -1, guarantee: d.Limit, ceiling: d.Limit, whole: "the limit", fallback: &top})
	r.tree.Default = top.node
	if top.node < 0 && !r.defaultBroken {
		r.problem(where+".groups", NoDefault)
	}
	if len(r.tree.Nodes) > MaxGroups {
		r.problem(where+".groups", "%d groups are too many: the maximum is %d per direction", len(r.tree.Nodes), MaxGroups)
	}
	if r.busy > MaxClients {
		r.problem(where+".groups", "%d clients in total are too many: the maximum that may be active at the same time is %d per direction", r.busy, MaxClients)
	}
	if r.tooMany {
		r.problem(where+".groups", "too many rules: the maximum is %d per direction, and the rules of nested groups multiply", MaxRules)
	}
	return r.tree, r.origins, r.problems
}

type resolver struct {
	tree          Tree
	origins       []string // where each rule was written
	problems      []Problem
	limit         string // key of the limit
	allowCgroup   bool
	defaultBroken bool // a default exists but is misplaced: do not report a missing default too
	tooMany       bool // more than MaxRules rules
	left          int  // remaining budget of intersectBudget in this top-level group
	busy          int  // total of Clients of all groups with Each
}

// scope is the context that the groups of one level share.
type scope struct {
	where              string
	path               string
	parent             int
	depth              int
	guarantee, ceiling unit.Rate
	whole              string    // what percentages refer to, for messages
	match              []matcher // the rules of the parent groups; nil matches everything
	fallback           *fallback
	each               eachShare
}

// matcher is a selector and the place where it was written.
type matcher struct {
	Selector
	where string
}

// fallback is the default leaf group of a direction, or of a group that has Match.
type fallback struct {
	node  int // -1 while there is none
	where string
	of    string // "" for the direction
}

func (r *resolver) problem(where, format string, args ...any) {
	r.problems = append(r.problems, Problem{Where: where, Message: fmt.Sprintf(format, args...)})
}

func (r *resolver) rules(match []matcher, node int, where string) {
	for _, m := range match {
		if len(r.tree.Rules) == MaxRules {
			r.tooMany = true
			return
		}
		r.tree.Rules = append(r.tree.Rules, Rule{m.Selector, node})
		if where != "" {
			m.where = where
		}
		r.origins = append(r.origins, m.where)
	}
}

func (r *resolver) groups(groups []Group, s scope) {
	if s.depth >= MaxDepth {
		r.problem(s.where+".groups", "groups are nested too deep: the maximum is %d levels (tenant, VM, group)", MaxDepth)
		return
	}
	seen := map[string]string{}
	s.each = eachShareOf(groups, s)
	for i, g := range groups {
		if s.depth == 0 {
			r.left = intersectBudget
		}
		where := fmt.Sprintf("%s.groups[%d]", s.where, i)
		if !namePattern.MatchString(g.Name) {
			r.problem(where+".name", "%q is not a name: write 1 to 63 letters, digits, dots, dashes or underscores, a letter or digit first", g.Name)
		} else if first, dup := seen[g.Name]; dup {
			r.problem(where+".name", "%q is already the name of %s: names are unique among the groups of one parent", g.Name, first)
		} else {
			seen[g.Name] = where
		}
		n := r.node(g, where, s)
		r.clients(&n, g, where, s)
		r.join(g.Join, where+".join")
		index := len(r.tree.Nodes)
		r.tree.Nodes = append(r.tree.Nodes, n)
		match := r.match(g.Match, where, s.match)
		switch {
		case n.Leaf:
			if len(g.Match) > 0 {
				r.rules(match, index, "")
			}
			if g.Default {
				r.setDefault(s.fallback, index, where+".default")
			}
			continue
		case g.Default:
			r.defaultBroken = true
			r.problem(where+".default", "a parent group cannot be the default: write default: true in one of its groups")
		}
		inner := scope{
			where: where, path: n.Path, parent: index, depth: n.Depth, guarantee: n.Guarantee, ceiling: n.Ceiling,
			whole: fmt.Sprintf("group %q", n.Path), match: match, fallback: s.fallback,
		}
		if len(g.Match) == 0 {
			r.groups(g.Groups, inner)
			continue
		}
		own := fallback{node: -1, of: inner.whole}
		inner.fallback = &own
		r.groups(g.Groups, inner)
		if own.node >= 0 {
			// The remainder of this group's packets, after the rules of all groups inside it.
			r.rules(match, own.node, own.where)
		}
	}
	r.total(groups, s)
}

func (r *resolver) join(users []string, where string) {
	for i, u := range users {
		if err := CheckUser(u); err != nil {
			r.problem(fmt.Sprintf("%s[%d]", where, i), "%v", err)
		}
	}
	if len(users) > MaxValues {
		r.problem(where, "%d users are too many for one group: the maximum is %d", len(users), MaxValues)
	}
}

func (r *resolver) setDefault(f *fallback, node int, where string) {
	switch {
	case f.node < 0:
		f.node, f.where = node, where
	case f.of != "":
		r.problem(where, "%q is already the default of %s: only one group can be the default", r.tree.Nodes[f.node].Path, f.of)
	default:
		r.problem(where, "%q is already the default: only one group can be the default", r.tree.Nodes[f.node].Path)
	}
}

// total checks that the guarantees do not exceed the parent's guarantee. Shares are summed as
// shares: rounded to rates, three times 33.3334% would pass.
func (r *resolver) total(groups []Group, s scope) {
	var rates unit.Rate
	var shares uint64
	onlyShares := true
	for _, g := range groups {
		rates += g.Guarantee.Of(s.guarantee)
		shares += uint64(g.Guarantee.Share)
		onlyShares = onlyShares && g.Guarantee.Rate == 0
	}
	switch {
	case onlyShares && shares > uint64(unit.Whole):
		r.problem(s.where+".groups", "guarantees total %s of %s: lower them to 100%% or less", percent(shares), s.whole)
	case !onlyShares && rates > s.guarantee:
		r.problem(s.where+".groups", "guarantees total %v of %s, which has %v: lower them to %v or less", rates, s.whole, s.guarantee, s.guarantee)
	}
}

func percent(millionths uint64) string {
	return strconv.FormatFloat(float64(millionths)/float64(unit.Whole/100), 'f', -1, 64) + "%"
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
		r.problem(where+".ceiling", "%v exceeds %s: write %v or less", g.Ceiling, s.whole, s.ceiling)
	}
	if n.Guarantee > n.Ceiling {
		r.problem(where+".guarantee", "%v is more than the group's ceiling of %v: lower the guarantee, or raise the ceiling", n.Guarantee, n.Ceiling)
		if g.Guarantee.Share > 0 {
			r.problems[len(r.problems)-1].Limit = r.limit
		}
	}
	if n.Ceiling < MinRate && s.ceiling >= MinRate {
		r.problem(where+".ceiling", "%v is too small: the minimum is %v", n.Ceiling, MinRate)
	}
	switch {
	case g.Priority == 0:
	case r.tree.Spare != Priority:
		r.problem(where+".priority", "priority has no effect with spare: %s: write spare: %s, or remove priority", r.tree.Spare, Priority)
	case g.Priority < 0 || g.Priority > MaxPriority:
		r.problem(where+".priority", "%d is not a priority: write 0 (served first) to %d", g.Priority, MaxPriority)
	}
	return n
}

// match validates the selectors and intersects them with those of the parent groups.
func (r *resolver) match(list []Selector, where string, outer []matcher) []matcher {
	if len(list) == 0 || r.left < 0 {
		return outer
	}
	out := []matcher{}
	for i, sel := range list {
		place := fmt.Sprintf("%s.match[%d]", where, i)
		if fits := r.check(sel, place); outer == nil || !fits {
			out = append(out, matcher{sel, place})
			continue
		}
		reachable := false
		for _, o := range outer {
			if both, ok := intersect(o.Selector, sel, &r.left); ok {
				out, reachable = append(out, matcher{both, place}), true
			}
			if r.left < 0 {
				r.problem(place, "too many combinations with the rules of the parent groups: the values of nested rules multiply: write fewer of them, or prefixes and ranges")
				return out
			}
		}
		if !reachable {
			r.problem(place, "%v can never match: the match of the parent group excludes it: remove the rule, or widen the match of the parent group", sel)
		}
		if len(out) > MaxRules {
			r.tooMany = true
			break
		}
	}
	return out
}

// check validates one selector by itself. fits reports whether its lists are short enough for
// further checks.
func (r *resolver) check(s Selector, where string) (fits bool) {
	if s.IsZero() {
		r.problem(where, EmptyRule)
	}
	fits = r.checkFields(s, where)
	if len(s.SPort)+len(s.DPort) > 0 {
		for _, p := range s.Proto {
			if p != TCP && p != UDP && p != SCTP {
				r.problem(where+".proto", "%s has no ports: leave out sport and dport, or write tcp, udp or sctp", ProtoName(p))
			}
		}
	}
	if len(s.Src) > 0 && len(s.Dst) > 0 && !shareFamily(s.Src, s.Dst) {
		r.problem(where+".dst", "src and dst are of different IP versions: write both as IPv4, or both as IPv6")
	}
	for _, n := range s.Not {
		fits = r.checkFields(n, where+".not") && fits
		if n.IsZero() {
			r.problem(where+".not", NothingExcluded)
		}
		if len(n.Not) > 0 {
			r.problem(where+".not.not", "\"not\" inside \"not\" is not supported: write the fields to match outside of it")
		}
	}
	if fits && s.excluded(&r.left) {
		r.problem(where+".not", "the rule can never match: not excludes all of its values: remove values from not, or remove the rule")
	}
	return fits
}

// checkFields validates the values of a selector.
func (r *resolver) checkFields(s Selector, where string) (fits bool) {
	fits = true
	if s.Cgroup != "" {
		switch {
		case !r.allowCgroup:
			r.problem(where+".cgroup", "cgroup matches only packets that this host's own sockets send: use it under out, with perspective host")
		case s.Cgroup != path.Clean("/"+s.Cgroup):
			r.problem(where+".cgroup", "%q is not a cgroup: write its path below the cgroup2 mount, for example /system.slice/nginx.service", s.Cgroup)
		case s.Cgroup == "/":
			r.problem(where+".cgroup", "every socket is in the cgroup /: leave cgroup out, or write a path below it")
		}
	}
	for _, f := range []struct {
		key    string
		values int
	}{
		{"proto", len(s.Proto)}, {"src", len(s.Src)}, {"dst", len(s.Dst)}, {"sport", len(s.SPort)}, {"dport", len(s.DPort)},
		{"dscp", len(s.DSCP)}, {"vlan", len(s.VLAN)}, {"pcp", len(s.PCP)}, {"mark", len(s.Mark)}, {"smac", len(s.SMAC)},
	} {
		if f.values > MaxValues {
			fits = false
			r.problem(where+"."+f.key, "%d values are too many in one rule: the maximum is %d: split the rule in two", f.values, MaxValues)
		}
	}
	for _, f := range []struct {
		key, what   string
		ranges      []Range
		least, most uint16
	}{{"dscp", "a DSCP", s.DSCP, 0, 63}, {"vlan", "a VLAN id", s.VLAN, 1, 4094}, {"pcp", "an 802.1p priority", s.PCP, 0, 7}} {
		for _, v := range f.ranges {
			if v.First < f.least || v.Last > f.most || v.First > v.Last {
				r.problem(where+"."+f.key, "%v is not %s: write %d to %d", v, f.what, f.least, f.most)
			}
		}
	}
	return fits
}

// Resolved is an Interface with its resolved directions.
type Resolved struct {
	Interface
	OutTree, InTree *Tree
	// OutRules and InRules are the places where the rules of the trees were written, as paths
	// of the user's keys: "out.groups[1].match[0]".
	OutRules, InRules []string
}

// Resolve validates the whole interface. All problems are reported at once.
func (i Interface) Resolve() (Resolved, []Problem) {
	res := Resolved{Interface: i}
	var problems []Problem
	add := func(where, format string, args ...any) {
		problems = append(problems, Problem{Where: where, Message: fmt.Sprintf(format, args...)})
	}
	if i.Dev == "" {
		add("dev", "dev is missing: write a device name, or a pattern such as \"veth*\"")
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
	if i.GSO != "" && i.GSO != ScaledGSO && i.GSO != KeepGSO {
		add("gso", "%q is not a GSO mode: write sized, or keep to leave the device's gso_max_size and gro_max_size unchanged", string(i.GSO))
	}
	i.QuantumOptions.check(i.Engine, add)
	if i.Engine == Quantum {
		i.eachDirection(func(where string, d *Direction) {
			eachGroup(d.Groups, where, "", func(where, _ string, g Group) {
				if !g.Each.IsZero() {
					add(where+".each", "the engine quantum does not support each: write engine: htb, or remove each")
				}
			})
		})
	}
	if i.Overhead.Frame > 256 {
		add("overhead.frame", "%v is more than any link adds to a packet: write 256 bytes or less", i.Overhead.Frame)
	}
	if i.Overhead.Minimum > 1500 {
		add("overhead.minimum", "%v is more than any link's smallest frame: write 1500 bytes or less", i.Overhead.Minimum)
	}
	if i.Out == nil && i.In == nil {
		add("out", "neither out nor in is given: write at least one of them, with limit and groups")
	}
	if i.Out != nil {
		tree, rules, p := i.Out.resolve("out", res.Perspective == Host)
		res.OutTree, res.OutRules, problems = &tree, rules, append(problems, p...)
	}
	if i.In != nil {
		tree, rules, p := i.In.resolve("in", false)
		res.InTree, res.InRules, problems = &tree, rules, append(problems, p...)
	}
	return res, problems
}

// eachDirection calls do for each direction that is configured.
func (i Interface) eachDirection(do func(where string, d *Direction)) {
	if i.Out != nil {
		do("out", i.Out)
	}
	if i.In != nil {
		do("in", i.In)
	}
}

// eachGroup calls do for the groups and all groups nested in them, with where each was written and its path.
func eachGroup(groups []Group, where, parent string, do func(where, path string, g Group)) {
	for i, g := range groups {
		at, path := fmt.Sprintf("%s.groups[%d]", where, i), strings.TrimPrefix(parent+"/"+g.Name, "/")
		do(at, path, g)
		eachGroup(g.Groups, at, path, do)
	}
}

// Locate returns which group the place of a problem belongs to: the direction and path of the group, and the
// place within it. path is "" for a place outside of groups, direction also for one outside of directions.
func (i Interface) Locate(where string) (direction, path, rest string) {
	rest = where
	within := func(at string) bool { return where == at || strings.HasPrefix(where, at+".") }
	i.eachDirection(func(at string, d *Direction) {
		if !within(at) {
			return
		}
		direction, rest = at, strings.TrimPrefix(where[len(at):], ".")
		eachGroup(d.Groups, at, "", func(at, of string, _ Group) { // a nested group comes after its parent
			if within(at) {
				path, rest = of, strings.TrimPrefix(where[len(at):], ".")
			}
		})
	})
	return direction, path, rest
}
