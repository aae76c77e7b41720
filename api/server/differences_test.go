package server

import (
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/store"
)

func TestDifferences(t *testing.T) {
	for _, c := range []struct {
		name, before, after string
		want                []store.Difference
	}{
		{"same", `{"a": 1, "b": [1, 2]}`, `{"b": [1, 2], "a": 1}`, nil},
		{"value", `{"out": {"limit": "1Gbit"}}`, `{"out": {"limit": "2Gbit"}}`, []store.Difference{{Field: "out.limit", Before: `"1Gbit"`, After: `"2Gbit"`}}},
		{"created", ``, `{"name": "web1"}`, []store.Difference{{Field: "name", After: `"web1"`}}},
		{"deleted", `{"name": "web1"}`, ``, []store.Difference{{Field: "name", Before: `"web1"`}}},
		{"elements by name", `{"groups": [{"name": "a", "guarantee": "10%"}, {"name": "b"}]}`, `{"groups": [{"name": "c", "default": true}, {"name": "a", "guarantee": "20%"}]}`,
			[]store.Difference{{Field: "groups.a.guarantee", Before: `"10%"`, After: `"20%"`}, {Field: "groups.b", Before: `{}`}, {Field: "groups.c.default", After: `true`}}},
		{"other list", `{"dport": ["80"]}`, `{"dport": ["80", "443"]}`, []store.Difference{{Field: "dport", Before: `["80"]`, After: `["80","443"]`}}},
		{"same name twice", `[{"name": "a"}]`, `[{"name": "a"}, {"name": "a"}]`, []store.Difference{{Field: "", After: `[{"name":"a"},{"name":"a"}]`}, {Field: "a", Before: `{}`}}},
	} {
		if got := differences([]byte(c.before), []byte(c.after)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	long := func(end string) []byte { return []byte(`"` + strings.Repeat("x", 1000) + end + `"`) }
	got := differences(long("a"), long("b"))
	if len(got) != 1 || len(got[0].After) > 200 {
		t.Errorf("long values: %q", got)
	}
}
