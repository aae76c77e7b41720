package config

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

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
		{"unit", one(d, &out.Unit, unitName)},
		{"match", d.connections(&out.Rules)},
		{"join", oneOrMore(d, &out.Join, users)},
		{"per", one(d, &out.PerDestination, per)},
		{"law", one(d, &out.Seed, lawOf)},
	})
	d.sameWeights(n, out.Policy)
	d.needs(n, "", "name", "the set has no %s: write for example %[1]s: db")
	given := func(key string) bool {
		_, at := d.places[key]
		return at || d.broken[key]
	}
	switch {
	case given("cgroup") && given("unit"):
		d.wrong(n, "unit", "the set has a cgroup, too: leave out one of them")
	case given("cgroup") || given("unit"):
	case given("match"):
		out.Cgroup = "/"
	case !given("join"):
		d.wrong(n, "", "the set has no connections: write for example unit: postgresql.service, or cgroup, match or join")
	}
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

// per tells whether the set has a part for each destination.
func per(s string) (destination bool, err error) {
	if s != "destination" {
		return false, fmt.Errorf("%q is nothing to have sets for: write destination", s)
	}
	return true, nil
}

var unitPattern = regexp.MustCompile(`^[A-Za-z0-9:_.@\\-]+\.(service|scope|slice|socket|mount|swap)$`)

func unitName(s string) (string, error) {
	if !unitPattern.MatchString(s) {
		return "", fmt.Errorf("%q is no unit that has processes: write for example postgresql.service", s)
	}
	return s, nil
}

func users(s string) ([]string, error) { return []string{s}, group.CheckUser(s) }

func cgroupPath(s string) (string, error) {
	if !path.IsAbs(s) || path.Clean(s) != s {
		return "", fmt.Errorf("%q is not a cgroup: write its path below the cgroup2 mount, for example /system.slice/nginx.service", s)
	}
	if below, is := strings.CutPrefix(s, "/sys/fs/cgroup"); is {
		return "", fmt.Errorf("%q is the folder of a cgroup: write its path below the cgroup2 mount, such as %s", s, path.Join("/", strings.TrimPrefix(below, "/unified")))
	}
	return s, nil
}

// sameSet finds sets of one name, and those for which an earlier one leaves no connection.
func (l *loader) sameSet() {
	names, whole := map[string]Collective{}, map[string]Collective{}
	wrong := func(c Collective, key, format string, args ...any) {
		l.mistakes = append(l.mistakes, Mistake{File: c.File, Line: c.Line, Key: key, Message: fmt.Sprintf(format, args...)})
	}
	for _, c := range l.set.Collectives {
		if first, dup := names[c.Name]; dup && c.Name != "" {
			wrong(c, "name", "%q is the name of the set at %s:%d, too: give each its own", c.Name, first.File, first.Line)
		} else {
			names[c.Name] = c
		}
		key, of := "cgroup", c.Cgroup
		if c.Unit != "" {
			key, of = "unit", c.Unit
		}
		first, taken := whole[of]
		switch {
		case of == "":
		case taken:
			wrong(c, key, "all connections of %q are in the set at %s:%d already: put this one before it, and give it rules (match)", of, first.File, first.Line)
		case len(c.Rules) == 0:
			whole[of] = c
		}
	}
}
