package config

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/group"
)

// Collective is one "kind: Collective" document: a connection set that "headgate collective
// run" controls.
type Collective struct {
	collective.Policy
	File string
	Line int
}

func collectiveDocument(s *source, n *node) Collective {
	d := newDecoder(s)
	out := Collective{File: s.file, Line: n.line}
	var per string
	d.fields(n, "", "a set of connections", []field{
		{"kind", func(*node, string) {}},
		{"name", one(d, &out.Name, serverName)},
		{"cgroup", one(d, &out.Cgroup, cgroupPath)},
		{"unit", one(d, &out.Unit, unitName)},
		{"match", d.connections(&out.Rules)},
		{"join", oneOrMore(d, &out.Join, users)},
		{"per", one(d, &per, parsePer)},
		{"bottleneck", one(d, &out.Bottleneck, serverName)},
		{"weight", one(d, &out.SetWeight, weight)},
		{"law", one(d, &out.PaperControl, parseLaw)},
	})
	out.PerDestination, out.PerBottleneck = per == perDestination, per == perBottleneck
	d.checkWeights(n, out.Policy)
	d.needs(n, "", "name", "the set has no %s: write for example %[1]s: db")
	given := func(key string) bool {
		_, at := d.places[key]
		return at || d.broken[key]
	}
	switch {
	case given("bottleneck") && !given("weight"):
		d.invalid(n, "bottleneck", "the set has no weight: write the weight that it has beside the other sets with this bottleneck, for example weight: 2")
	case given("weight") && !given("bottleneck"):
		d.invalid(n, "weight", "the weight of a set needs the name of the link that sets have in common: write for example bottleneck: uplink, in each of them")
	case given("bottleneck") && out.PerBottleneck:
		d.invalid(n, "per", "the bottleneck of the set is named already: remove per, or bottleneck and weight")
	case out.PerBottleneck && out.PaperControl:
		d.invalid(n, "law", "the law seed does not find bottlenecks: write per: destination, or remove the law")
	case given("bottleneck") && out.PaperControl:
		d.invalid(n, "law", "the law seed does not support bottlenecks: remove bottleneck and weight, or the law")
	}
	switch {
	case given("cgroup") && given("unit"):
		d.invalid(n, "unit", "cgroup and unit are mutually exclusive: remove one of them")
	case given("cgroup") || given("unit"):
	case given("match"):
		out.Cgroup = "/"
	case !given("join"):
		d.invalid(n, "", "the set has no connections: write for example unit: postgresql.service, or cgroup, match or join")
	}
	return out
}

// connections parses rules that match connections from this host's point of view: src and sport
// are the local end.
func (d *decoder) connections(out *[]collective.Rule) func(*node, string) {
	return func(n *node, key string) {
		d.each(n, key, "a rule", func(n *node, key string) {
			var r collective.Rule
			d.fields(n, key, "a rule", []field{
				{"src", one(d, &r.Local, group.ParsePrefix)},
				{"dst", one(d, &r.Remote, group.ParsePrefix)},
				{"sport", one(d, &r.LocalPort, ports)},
				{"dport", one(d, &r.RemotePort, ports)},
				{"weight", one(d, &r.Weight, weight)},
			})
			if i := slices.IndexFunc(*out, func(earlier collective.Rule) bool { return earlier.Covers(r) && earlier.Weight != r.Weight }); i >= 0 {
				d.invalid(n, key, "the rule has no effect: rule %d of the set, with weight %v, already matches all its connections: write the narrower rule first", i+1, (*out)[i].Weight)
			}
			*out = append(*out, r)
		})
		if len(*out) > collective.MaxRules {
			d.invalid(n, key, "%d rules are too many: the maximum is %d: merge rules, or add another set", len(*out), collective.MaxRules)
		}
	}
}

// checkWeights reports weights that only some rules have, and weights under the seed's law,
// which does not support them.
func (d *decoder) checkWeights(n *node, p collective.Policy) {
	weighed := 0
	for _, r := range p.Rules {
		if r.Weight > 0 {
			weighed++
		}
	}
	switch {
	case weighed > 0 && p.PaperControl:
		d.invalid(n, "match", "the law seed does not support weights: remove the weights, or the law")
	case weighed > 0 && weighed < len(p.Rules):
		d.invalid(n, "match", "%d of %d rules have a weight, and weights cannot be combined with learned proportions: give every rule a weight, or none", weighed, len(p.Rules))
	}
}

func ports(s string) (collective.Ports, error) {
	r, err := group.ParsePortRange(s)
	if err == nil && r.First == 0 {
		return collective.Ports{}, fmt.Errorf("%q begins with 0, which is not a port: remove the key to match all ports", s)
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

// parseLaw parses the name of a law, and reports whether it is the seed's.
func parseLaw(s string) (seed bool, err error) {
	switch s {
	case "headgate", "seed":
		return s == "seed", nil
	}
	return false, fmt.Errorf("%q is not a law: write headgate, or seed for the paper's", s)
}

// The values of per.
const perDestination, perBottleneck = "destination", "bottleneck"

func parsePer(s string) (string, error) {
	if s != perDestination && s != perBottleneck {
		return "", fmt.Errorf("%q is not a valid value: write destination, or bottleneck", s)
	}
	return s, nil
}

var unitPattern = regexp.MustCompile(`^[A-Za-z0-9:_.@\\-]+\.(service|scope|slice|socket|mount|swap)$`)

func unitName(s string) (string, error) {
	if !unitPattern.MatchString(s) {
		return "", fmt.Errorf("%q is not a systemd unit with processes: write for example postgresql.service", s)
	}
	return s, nil
}

func users(s string) ([]string, error) { return []string{s}, group.CheckUser(s) }

func cgroupPath(s string) (string, error) {
	if clean := path.Clean(s); path.IsAbs(s) && clean != s {
		return "", fmt.Errorf("%q is not the shortest path of the cgroup: write %s", s, clean)
	}
	if !path.IsAbs(s) {
		return "", fmt.Errorf("%q is not a cgroup: write its path below the cgroup2 mount, for example /system.slice/nginx.service", s)
	}
	if below, is := strings.CutPrefix(s, "/sys/fs/cgroup"); is {
		return "", fmt.Errorf("%q is a file system path: write the path below the cgroup2 mount, such as %s", s, path.Join("/", strings.TrimPrefix(below, "/unified")))
	}
	return s, nil
}

// checkDuplicateSets reports sets with the same name, and sets for which an earlier set leaves no
// connections.
func (l *loader) checkDuplicateSets() {
	names, whole := map[string]Collective{}, map[string]Collective{}
	wrong := func(c Collective, key, format string, args ...any) {
		l.mistakes = append(l.mistakes, Error{File: c.File, Line: c.Line, Key: key, Message: fmt.Sprintf(format, args...)})
	}
	for _, c := range l.set.Collectives {
		if first, dup := names[c.Name]; dup && c.Name != "" {
			wrong(c, "name", "%q is already the name of the set at %s:%d: names must be unique", c.Name, first.File, first.Line)
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
			wrong(c, key, "all connections of %q are already in the set at %s:%d: put this set before it, and give it rules (match)", of, first.File, first.Line)
		case len(c.Rules) == 0:
			whole[of] = c
		}
	}
}
