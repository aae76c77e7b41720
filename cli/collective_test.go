package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/collective/host"
)

// A line has the caps of its connection, and "-" for caps that are not set.
func TestCollectiveLines(t *testing.T) {
	var out bytes.Buffer
	a := &app{out: &out}
	err := a.collectiveLines([]host.State{{Set: "db", Controlling: true, Connections: []host.ConnectionState{
		{Local: "10.0.0.1:5432", Remote: "10.0.1.1:40000", Needs: 4_800_000, Rate: 4_000_000, RTT: 24 * time.Millisecond, Pace: 4_100_000, Window: 30_000},
		{Local: "10.0.0.1:5432", Remote: "10.0.1.2:40000", RTT: 24 * time.Millisecond},
		{Local: "10.0.0.1:5432", Remote: "10.0.1.3:40000", Needs: 4_800_000, Weight: 4, RTT: 24 * time.Millisecond},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range []string{
		"db controlled 10.0.0.1:5432 10.0.1.1:40000 learned 4.80Mbit rate 4.00Mbit 24ms pace 4.10Mbit window 30.0 kB",
		"db controlled 10.0.0.1:5432 10.0.1.2:40000 learned - rate 0 24ms pace - window -",
		"db controlled 10.0.0.1:5432 10.0.1.3:40000 weight 4 rate 0 24ms pace - window -",
	} {
		if _, got, _ := strings.Cut(strings.Join(strings.Fields(lines[i]), " "), " "); got != want {
			t.Errorf("line %d: %q, want %q", i+1, got, want)
		}
	}
}

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
