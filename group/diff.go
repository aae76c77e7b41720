package group

import (
	"fmt"
	"slices"
	"strings"
)

// Change is one difference between two configurations, or between a configuration and the kernel's state.
type Change struct {
	Verb   string `json:"verb"`   // "add", "change" or "remove"
	Object string `json:"object"` // "out group web"
	Detail string `json:"detail,omitempty"`
}

func (c Change) String() string {
	s := fmt.Sprintf("%-6s %s", c.Verb, c.Object)
	if c.Detail != "" {
		s += ": " + c.Detail
	}
	return s
}

// mostRules is the maximum number of a group's rules that a change quotes; otherwise it gives
// the number.
const mostRules = 3

// Diff returns every difference from one configuration of a direction ("out" or "in") to another: limit, spare
// policy, groups, rules and the default group. A direction that is not limited is nil.
func Diff(direction string, was, is *Tree) (out []Change) {
	add := func(verb, object, detail string) {
		out = append(out, Change{verb, direction + " " + object, detail})
	}
	switch {
	case was == nil && is == nil:
		return nil
	case is == nil:
		add("remove", "limit", was.Limit.String())
		is = &Tree{Default: -1}
	case was == nil:
		add("add", "limit", is.Limit.String())
		was = &Tree{Spare: is.Spare, Default: -1}
	case was.Limit != is.Limit:
		add("change", "limit", arrow(was.Limit, is.Limit))
	}
	if was.Spare != is.Spare && len(is.Nodes) > 0 {
		add("change", "spare", arrow(was.Spare, is.Spare))
	}
	for _, n := range was.Nodes {
		if _, ok := is.node(n.Path); !ok {
			add("remove", "group "+n.Path, "")
		}
	}
	for _, n := range is.Nodes {
		old, ok := was.node(n.Path)
		switch detail := nodeDiff(old, n); {
		case !ok:
			add("add", "group "+n.Path, describe(n))
		case detail != "":
			add("change", "group "+n.Path, detail)
		}
	}
	if len(is.Nodes) == 0 {
		return out
	}
	rules := rulesDiff(was, is)
	for _, c := range rules {
		add(c.Verb, c.Object, c.Detail)
	}
	if a, b := was.pathOf(was.Default), is.pathOf(is.Default); a != "" && a != b {
		add("change", "default group", arrow(a, b))
	}
	if order := ruleOwners(is); len(out) == 0 && !slices.Equal(ruleOwners(was), order) {
		add("change", "order of rules", "")
	}
	if len(out) == 0 && !was.Equal(*is) {
		add("change", "order of groups", "")
	}
	return out
}

// DiffSettings returns the differences between the settings of two configurations of a device that belong to
// no direction.
func DiffSettings(was, is Interface) (out []Change) {
	before, after := was.settings(), is.settings()
	for n, s := range after {
		if before[n].text != s.text {
			out = append(out, Change{"change", s.name, arrow(before[n].text, s.text)})
		}
	}
	return out
}

type setting struct{ name, text string }

func (i Interface) settings() []setting {
	text := func(v any, zero bool) string {
		if zero {
			return "default"
		}
		return fmt.Sprint(v)
	}
	return []setting{
		{"perspective", text(i.Perspective, i.Perspective == "")},
		{"engine", text(i.Engine, i.Engine == "")},
		{"overhead", text(fmt.Sprintf("frame %v, minimum %v", i.Overhead.Frame, i.Overhead.Minimum), i.Overhead == (Overhead{}))},
		{"gso", text(i.GSO, i.GSO == "")},
		{"quantum", text(i.Quantum, i.Quantum == 0)},
		{"step", text(i.Step, i.Step.IsZero())},
		{"overdraft", text(i.Overdraft, !i.Overdraft)},
	}
}

func arrow(a, b any) string { return fmt.Sprintf("%v -> %v", a, b) }

func describe(n Node) string {
	s := fmt.Sprintf("guarantee %v, ceiling %v", n.Guarantee, n.Ceiling)
	if n.Priority != 0 {
		s += fmt.Sprintf(", priority %d", n.Priority)
	}
	return s
}

// nodeDiff describes the differences of a group, or returns "".
func nodeDiff(was, is Node) string {
	var parts []string
	part := func(name string, a, b any) {
		if a != b {
			parts = append(parts, name+" "+arrow(a, b))
		}
	}
	part("guarantee", was.Guarantee, is.Guarantee)
	part("ceiling", was.Ceiling, is.Ceiling)
	part("priority", was.Priority, is.Priority)
	if was.Clients != is.Clients {
		parts = append(parts, "clients")
	}
	return strings.Join(parts, ", ")
}

// rulesDiff returns the groups, in the order of is, whose own rules differ.
func rulesDiff(was, is *Tree) (out []Change) {
	before, after := was.rulesByPath(), is.rulesByPath()
	for _, n := range is.Nodes {
		a, b := before[n.Path], after[n.Path]
		if _, ok := was.node(n.Path); !ok || slices.EqualFunc(a, b, Selector.Equal) {
			continue
		}
		out = append(out, Change{"change", "rules of " + n.Path, arrow(rulesText(a), rulesText(b))})
	}
	return out
}

func rulesText(rules []Selector) string {
	switch {
	case len(rules) == 0:
		return "none"
	case len(rules) > mostRules:
		return fmt.Sprintf("%d rules", len(rules))
	}
	var texts []string
	for _, s := range rules {
		texts = append(texts, s.String())
	}
	return strings.Join(texts, "; ")
}

func (t *Tree) rulesByPath() map[string][]Selector {
	out := map[string][]Selector{}
	for _, r := range t.Rules {
		path := t.Nodes[r.Node].Path
		out[path] = append(out[path], r.Selector)
	}
	return out
}

// ruleOwners returns the groups of the rules, in the order in which rules are evaluated.
func ruleOwners(t *Tree) (paths []string) {
	for _, r := range t.Rules {
		paths = append(paths, t.pathOf(r.Node))
	}
	return paths
}

func (t *Tree) node(path string) (Node, bool) {
	if i := slices.IndexFunc(t.Nodes, func(n Node) bool { return n.Path == path }); i >= 0 {
		return t.Nodes[i], true
	}
	return Node{}, false
}

func (t *Tree) pathOf(node int) string {
	if node < 0 || node >= len(t.Nodes) {
		return ""
	}
	return t.Nodes[node].Path
}
