package summary

import (
	"encoding/json"
	"strings"
	"testing"

	"headgate.dev/headgate/config"
)

// A description has which connections a set has.
func TestSets(t *testing.T) {
	set, err := config.Parse("sets.yaml", []byte(`kind: Collective
name: db
cgroup: /system.slice/db.service
match: [{sport: 5432}, {sport: 5433}]
---
kind: Collective
name: service
unit: postgresql.service
join: [postgres, 1001]
per: destination
---
kind: Collective
name: asked
join: backup
---
kind: Collective
name: all
cgroup: /
`))
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := Of(set).Write(&table); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(Of(set))
	if err != nil {
		t.Fatal(err)
	}
	for got, wants := range map[string][]string{
		table.String(): {
			"set db: the connections of cgroup /system.slice/db.service, by 2 rules (sets.yaml:1)",
			"set service: the connections of unit postgresql.service, and those that programs of postgres or 1001 join; each destination separately (sets.yaml:6)",
			"set asked: the connections that programs of backup join (",
			"set all: the connections of cgroup / (",
		},
		string(text): {`"unit":"postgresql.service"`, `"per_destination":true`, `"join":["backup"]`},
	} {
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("the description lacks %q:\n%s", want, got)
			}
		}
	}
}

// Clients of a group are described, and noted if not all can have their guarantee at once.
func TestClients(t *testing.T) {
	set, err := config.Parse("eth0.yaml", []byte(`kind: Interface
dev: eth0
out:
  limit: 400Mbit
  groups:
    - name: tenant
      guarantee: 50%
      groups:
        - {name: users, guarantee: 1Mbit, ceiling: 20Mbit, each: [src/24, src/64], clients: 500, default: true}
    - {name: voice, guarantee: 50%, match: [{dscp: ef}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := Of(set).Write(&b); err != nil || !strings.Contains(b.String(), "default; each src/24,src/64: 1Mbit to 20Mbit, 500 clients") {
		t.Errorf("%v\n%s", err, b.String())
	}
	want := "eth0.yaml:9: out.groups[0].groups[0]: note: of 500 clients, 200 at once can have their guarantee of 1Mbit: the clients together are guaranteed 200Mbit"
	if notes := Notes(set); len(notes) != 1 || !strings.HasPrefix(notes[0].String(), want) {
		t.Errorf("%v\nwant %s", notes, want)
	}
}
