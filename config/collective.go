package config

import (
	"fmt"
	"path"

	"headgate/collective"
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
	})
	d.needs(n, "", "name", "the set has no %s: write for example %[1]s: db")
	d.needs(n, "", "cgroup", "the set has no %s: write for example %[1]s: /system.slice/postgresql.service")
	return out
}

func cgroupPath(s string) (string, error) {
	if !path.IsAbs(s) || path.Clean(s) != s {
		return "", fmt.Errorf("%q is not a cgroup: write its path below the cgroup2 mount, for example /system.slice/nginx.service", s)
	}
	return s, nil
}

// sameSet finds sets of one name, or of one cgroup.
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
		tell(cgroups, c, "cgroup", c.Cgroup)
	}
}
