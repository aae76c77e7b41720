package cli

import (
	"strings"
	"testing"
)

// Refusals that an earlier program counted are not reported, nor is every further one.
func TestRefusals(t *testing.T) {
	r := refusedConnections{before: 10}
	for _, c := range []struct {
		all, n uint64
		news   bool
	}{{10, 0, false}, {11, 1, true}, {11, 1, false}, {13, 3, true}, {15, 5, false}, {16, 6, true}, {21, 11, false}, {22, 12, true}} {
		if n, news := r.count(c.all); n != c.n || news != c.news {
			t.Errorf("count(%d): %d, %v; want %d, %v", c.all, n, news, c.n, c.news)
		}
	}
}

// Check warns of cgroups, units and users that do not exist on this machine, unless with --offline.
func TestCheckWarnsOfSets(t *testing.T) {
	w := newWorld(t)
	file := w.write("sets.yaml", `kind: Collective
name: db
cgroup: /headgate-no-such
join: [root, headgate-no-such]
---
kind: Collective
name: web
unit: headgate-no-such.service
`)
	r := w.must("check", "-f", file)
	for _, want := range []string{
		"cgroup: warning: /headgate-no-such does not exist: the set db would wait for it",
		"join: warning: no user headgate-no-such on this machine",
		"unit: warning: headgate-no-such.service is not running",
	} {
		if !strings.Contains(r.err, want) {
			t.Errorf("check lacks %q:\n%s", want, r.err)
		}
	}
	if r := w.must("check", "--offline", "-f", file); r.err != "" {
		t.Errorf("check --offline: %s", r.err)
	}
}

// A misspelled subcommand and an invalid weight are usage errors.
func TestCollectiveUnknown(t *testing.T) {
	w := newWorld(t)
	for _, line := range []string{"collective chow", "token creat", "collective join db --pid 1 --fd 1 --weight inf"} {
		if r := w.run(strings.Fields(line)...); r.code != exitUsage {
			t.Errorf("%s: exit %d, %s", line, r.code, r.err)
		}
	}
}
