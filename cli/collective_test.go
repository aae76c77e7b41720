package cli

import (
	"strings"
	"testing"
)

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
