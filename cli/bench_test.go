package cli

import (
	"encoding/json"
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
	if len(claims) != 12 || claims[0].ID != "scale/apply" || claims[0].Target.String() != "<= 1.5" || claims[0].Ours != nil {
		t.Errorf("%+v", claims)
	}
	if r := w.must("bench", "groups", "--list"); !strings.Contains(r.out, "with --quick") {
		t.Errorf("the list ends in %q", r.out[len(r.out)-80:])
	}
}
