package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate.dev/headgate/bench"
)

func TestBenchRefuses(t *testing.T) {
	w := newWorld(t)
	for args, say := range map[string]string{
		"bench":                              "bench --help",
		"bench grups":                        `unknown benchmark "grups": choose groups`,
		"bench groups --only frobnicate":     "--list",
		"bench groups --runs 0":              "set 1 or more",
		"bench groups --list -o xml":         "table, json or yaml",
		"bench groups --only spare/unheard/": "--list",
	} {
		r := w.run(strings.Fields(args)...)
		if r.code != exitUsage || !strings.Contains(r.err, say) {
			t.Errorf("%q: exit %d, %q; want %d, %q", args, r.code, r.err, exitUsage, say)
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
		t.Errorf("end of the list: %q", r.out[len(r.out)-80:])
	}
}

// --seed repeats the drawn cases; without --seed each run draws new ones.
func TestBenchSeeds(t *testing.T) {
	w := newWorld(t)
	list := func(args ...string) string {
		return w.must(append([]string{"bench", "groups", "--list", "--only", "ramp-out/drawn-1"}, args...)...).out
	}
	first, again := list("--seed", "42"), list("--seed", "42")
	if first != again || !strings.Contains(first, "--seed 42 repeats") {
		t.Errorf("two lists with --seed 42: %q and %q", first, again)
	}
	if a, b := list(), list(); a == b || !strings.Contains(a, "drawn at random: limit ") {
		t.Errorf("two lists without a seed are equal: %q", a)
	}
}

// A smoke run does not overwrite the report of a full run: it is rejected before it measures.
func TestBenchKeepsRecords(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "groups.json"), []byte(`{"bench": "groups", "smoke": false}`), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newWorld(t).run("bench", "groups", "--quick", "--report", dir)
	if r.code != exitUsage || !strings.Contains(r.err, "another folder") {
		t.Errorf("exit %d, %q", r.code, r.err)
	}
}
