package config

import (
	"fmt"
	"path"
	"strconv"

	"headgate/collective"
	"headgate/group"
)

// Collective is one "kind: Collective" document: a set of connections that
// "headgate collective run" keeps in proportion.
type Collective struct {
	collective.Policy
	File string
	Line int
}

func collectiveDocument(s *source, n *node) Collective {
	d := newDecoder(s)
	out := Collective{File: s.file, Line: n.line}
	d.fields(n, "", "a set of connections", []field{
		{"kind", func(*node, string) {}},
		{"name", one(d, &out.Name, serverName)},
		{"cgroup", one(d, &out.Cgroup, cgroupPath)},
		{"match", d.connections(&out.Rules)},
		{"law", one(d, &out.Seed, lawOf)},
	})
	d.sameWeights(n, out.Policy)
	d.needs(n, "", "name", "the set has no %s: write for example %[1]s: db")
	d.needs(n, "", "cgroup", "the set has no %s: write for example %[1]s: /system.slice/postgresql.service")
	return out
}

// connections are rules about what this host's end of a connection sends.
func (d *decoder) connections(out *[]collective.Rule) func(*node, string) {
	return func(n *node, key string) {
		d.each(n, key, "a rule", func(n *node, key string) {
			var r collective.Rule
			d.fields(n, key, "a rule", []field{
				{"src", one(d, &r.Local, prefix)},
				{"dst", one(d, &r.Remote, prefix)},
				{"sport", one(d, &r.LocalPort, ports)},
				{"dport", one(d, &r.RemotePort, ports)},
				{"weight", one(d, &r.Weight, weight)},
			})
			*out = append(*out, r)
		})
		if len(*out) > collective.MaxRules {
			d.wrong(n, key, "%d rules are more than %d: join some, or make another set", len(*out), collective.MaxRules)
		}
	}
}

// sameWeights complains of weights in some rules beside what others need, and of those that
// the seed's law does not know.
func (d *decoder) sameWeights(n *node, p collective.Policy) {
	weighed := 0
	for _, r := range p.Rules {
		if r.Weight > 0 {
			weighed++
		}
	}
	switch {
	case weighed > 0 && p.Seed:
		d.wrong(n, "match", "the law seed knows no weights: leave them out, or the law")
	case weighed > 0 && weighed < len(p.Rules):
		d.wrong(n, "match", "%d of %d rules have a weight, which says nothing beside what the others need: give all one, or none", weighed, len(p.Rules))
	}
}

func ports(s string) (collective.Ports, error) {
	r, err := group.ParsePortRange(s)
	if err == nil && r.First == 0 {
		return collective.Ports{}, fmt.Errorf("%q begins with 0, which is no port: leave it out for all", s)
	}
	return collective.Ports{From: r.First, To: r.Last}, err
}

func weight(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v > 0 && v <= 1e6) {
		return 0, fmt.Errorf("%q is not a weight: write a number above 0, such as 8", s)
	}
	return v, nil
}

// lawOf tells whether it is the seed's.
func lawOf(s string) (seed bool, err error) {
	switch s {
	case "headgate", "seed":
		return s == "seed", nil
	}
	return false, fmt.Errorf("%q is not a law: write headgate, or seed for the paper's", s)
}

func cgroupPath(s string) (string, error) {
	if !path.IsAbs(s) || path.Clean(s) != s {
		return "", fmt.Errorf("%q is not a cgroup: write its path below the cgroup2 mount, for example /system.slice/nginx.service", s)
	}
	return s, nil
}

// sameSet finds sets of one name, or of all connections of one cgroup.
func (l *loader) sameSet() {
	names, cgroups := map[string]Collective{}, map[string]Collective{}
	tell := func(seen map[string]Collective, c Collective, key, value string) {
		first, dup := seen[value]
		if value == "" {
			return
		}
		if dup {
			l.mistakes = append(l.mistakes, Mistake{File: c.File, Line: c.Line, Key: key, Message: fmt.Sprintf("%q is the %s of the set at %s:%d, too: give each its own", value, key, first.File, first.Line)})
			return
		}
		seen[value] = c
	}
	for _, c := range l.set.Collectives {
		tell(names, c, "name", c.Name)
		if len(c.Rules) == 0 {
			tell(cgroups, c, "cgroup", c.Cgroup)
		}
	}
}
