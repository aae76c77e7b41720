package config

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"headgate.dev/headgate/collective"
)

func TestCollective(t *testing.T) {
	const file = "testdata/collective.yaml"
	set, err := Load([]string{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []Collective{
		{collective.Policy{Name: "db", Cgroup: "/system.slice/db.service"}, file, 1},
		{collective.Policy{Name: "replicas", Cgroup: "/", PaperControl: true, Rules: []collective.Rule{
			{Local: netip.MustParsePrefix("192.0.2.1/32"), LocalPort: collective.Ports{From: 5000, To: 5009}},
		}}, file, 5},
		{collective.Policy{Name: "weighed", Cgroup: "/", Rules: []collective.Rule{
			{Remote: netip.MustParsePrefix("10.0.0.0/8"), RemotePort: collective.Ports{From: 5432, To: 5432}, Weight: 4},
			{Remote: netip.MustParsePrefix("fd00::/8"), Weight: 0.5},
		}}, file, 12},
		{collective.Policy{Name: "service", Unit: "postgresql@15-main.service", PerDestination: true, Join: []string{"postgres", "1001"}}, file, 18},
		{collective.Policy{Name: "asked", Join: []string{"backup"}, PerBottleneck: true}, file, 24},
		{collective.Policy{Name: "all", Cgroup: "/", Bottleneck: "uplink", SetWeight: 2.5}, file, 29},
	}
	if !reflect.DeepEqual(set.Collectives, want) || len(set.Interfaces) > 0 {
		t.Errorf("%+v", set)
	}
	for _, c := range want {
		text := FormatCollective(c.Policy)
		if again, err := Parse("again", text); err != nil || len(again.Collectives) != 1 || !reflect.DeepEqual(again.Collectives[0].Policy, c.Policy) {
			t.Errorf("formatted as\n%s\nwhich parses as %+v, %v", text, again, err)
		}
	}
}

// TestCollectiveMistakes: invalid rules, laws and weights, and too many rules are reported with
// their keys.
func TestCollectiveMistakes(t *testing.T) {
	many := "kind: Collective\nname: a\ncgroup: /\nmatch:\n" + strings.Repeat("  - {sport: 1}\n", collective.MaxRules+1)
	for text, want := range map[string]string{
		"kind: Collective\nname: a\ncgroup: /\nmatch: [{weight: 0}]\n":                                "match[0].weight: \"0\" is not a weight",
		"kind: Collective\nname: a\ncgroup: /\nmatch: [{sport: 70000}]\n":                             "match[0].sport",
		"kind: Collective\nname: a\ncgroup: /\nmatch: [{dst: 10.0.0.1/8}]\n":                          "match[0].dst: \"10.0.0.1/8\" has host bits set",
		"kind: Collective\nname: a\ncgroup: /\nlaw: fair\n":                                           "law: \"fair\" is not a law",
		"kind: Collective\nname: a\ncgroup: /\nmatch: [{sport: 0}]\n":                                 "match[0].sport: \"0\" begins with 0",
		"kind: Collective\nname: a\ncgroup: /\nmatch: [{sport: 1, weight: 2}, {sport: 2}]\n":          "match: 1 of 2 rules have a weight",
		"kind: Collective\nname: a\ncgroup: /\nlaw: seed\nmatch: [{weight: 2}]\n":                     "match: the law seed does not support weights",
		"kind: Collective\nname: a\n":                                                                 "the set has no connections",
		"kind: Collective\nname: a\ncgroup: /\nunit: a.service\n":                                     "unit: cgroup and unit are mutually exclusive",
		"kind: Collective\nname: a\nunit: postgres\n":                                                 "unit: \"postgres\" is not a systemd unit",
		"kind: Collective\nname: a\ncgroup: /\nper: port\n":                                           "per: \"port\" is not a valid value",
		"kind: Collective\nname: a\ncgroup: /\nbottleneck: uplink\n":                                  "bottleneck: the set has no weight",
		"kind: Collective\nname: a\ncgroup: /\nweight: 2\n":                                           "weight: the weight of a set needs",
		"kind: Collective\nname: a\ncgroup: /\nbottleneck: b\nweight: 0\n":                            "weight: \"0\" is not a weight",
		"kind: Collective\nname: a\ncgroup: /\nbottleneck: b\nweight: 1\nlaw: seed\n":                 "law: the law seed does not support bottlenecks",
		"kind: Collective\nname: a\ncgroup: /\nper: bottleneck\nlaw: seed\n":                          "law: the law seed does not find bottlenecks",
		"kind: Collective\nname: a\ncgroup: /\nper: bottleneck\nbottleneck: b\nweight: 1\n":           "per: the bottleneck of the set is named already",
		"kind: Collective\nname: a\ncgroup: /a/\n":                                                    "cgroup: \"/a/\" is not the shortest path of the cgroup: write /a",
		"kind: Collective\nname: a\ncgroup: /\nmatch: [{sport: 5745-5741}]\n":                         "match[0].sport: \"5745-5741\" ends before it begins: write 5741-5745",
		"kind: Collective\nname: a\njoin: [a b]\n":                                                    "join[0]: \"a b\" is not a user",
		"kind: Collective\nname: a\ncgroup: /\n---\nkind: Collective\nname: b\nmatch: [{sport: 1}]\n": "cgroup: all connections of \"/\" are already in the set at -:1",
		many: "match: 17 rules are too many: the maximum is 16",
	} {
		_, err := Load([]string{"-"}, strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
