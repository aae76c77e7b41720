package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate/bench"
)

func TestBenchRefuses(t *testing.T) {
	w := newWorld(t)
	for args, say := range map[string]string{
		"bench":                              "bench --help",
		"bench grups":                        `no bench "grups": write groups`,
		"bench groups --only frobnicate":     "--list",
		"bench groups --runs 0":              "write 1 or more",
		"bench groups --list -o xml":         "table, json or yaml",
		"bench groups --only spare/unheard/": "--list",
	} {
		r := w.run(strings.Fields(args)...)
		if r.code != wrong || !strings.Contains(r.err, say) {
			t.Errorf("%q exits with %d and says %q; want %d and %q", args, r.code, r.err, wrong, say)
		}
	}
}

func TestBenchLists(t *testing.T) {
	w := newWorld(t)
	r := w.must("bench", "groups", "--list", "--only", "scale", "-o", "json")
	var claims []bench.Claim
	if err := json.Unmarshal([]byte(r.out), &claims); err != nil {
		t.Fatal(err)
	}
	if len(claims) < 12 || claims[0].ID != "scale/apply" || claims[0].Target.String() != "<= 1.5" || claims[0].Ours != nil {
		t.Errorf("%+v", claims)
	}
	if r := w.must("bench", "groups", "--list"); !strings.Contains(r.out, "with --quick") {
		t.Errorf("the list ends in %q", r.out[len(r.out)-80:])
	}
}

// A seed repeats what was drawn; without one it is new each time, and said.
func TestBenchSeeds(t *testing.T) {
	w := newWorld(t)
	list := func(args ...string) string {
		return w.must(append([]string{"bench", "groups", "--list", "--only", "ramp-out/drawn-1"}, args...)...).out
	}
	first, again := list("--seed", "42"), list("--seed", "42")
	if first != again || !strings.Contains(first, "--seed 42 repeats") {
		t.Errorf("--seed 42 gives %q and %q", first, again)
	}
	if a, b := list(), list(); a == b || !strings.Contains(a, "drawn: limit ") {
		t.Errorf("without a seed the list is the same twice: %q", a)
	}
}

// A smoke run does not take the place of a record, and is refused before it runs.
func TestBenchKeepsRecords(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "groups.json"), []byte(`{"bench": "groups", "smoke": false}`), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newWorld(t).run("bench", "groups", "--quick", "--report", dir)
	if r.code != wrong || !strings.Contains(r.err, "another folder") {
		t.Errorf("exits with %d and says %q", r.code, r.err)
	}
}
