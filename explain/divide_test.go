package explain

import (
	"fmt"
	"strings"
	"testing"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

// divided has nested groups with a ceiling at out, and another spare policy at in.
const divided = `kind: Interface
dev: eth0
out:
  limit: 100Mbit
  spare: SPARE
  groups:
    - name: tenant
      guarantee: 40Mbit
      ceiling: 60Mbit
      match: [{src: 10.0.0.0/8}]
      groups:
        - {name: web, guarantee: 30Mbit, match: [{sport: 80}]}
        - {name: db, guarantee: 10Mbit, ceiling: 20Mbit, match: [{sport: 3306}]}
    - {name: backup, guarantee: 10Mbit, match: [{dscp: cs1}] LATER}
    - {name: rest, guarantee: 30Mbit, default: true}
in:
  limit: 50Mbit
  spare: equal
  groups:
    - {name: backup, guarantee: 10Mbit, match: [{dscp: cs1}]}
    - {name: rest, guarantee: 20Mbit, default: true}
`

// planOf returns the plan of the configuration with a spare policy at out.
func planOf(t *testing.T, spare group.Spare) shaper.Plan {
	t.Helper()
	later := ""
	if spare == group.Priority {
		later = ", priority: 1"
	}
	set, err := config.Parse("eth0.yaml", []byte(strings.NewReplacer("SPARE", string(spare), " LATER", later).Replace(divided)))
	if err != nil {
		t.Fatal(err)
	}
	return shaper.NewPlan("eth0", set.Interfaces[0].Resolved)
}

func TestDivide(t *testing.T) {
	for _, c := range []struct {
		name    string
		spare   group.Spare
		demands []string
		others  Demand
		// want has rate, borrowed and lent in Mbit/s, and what limits the rate.
		want map[string]string
	}{
		{"all busy", group.Proportional, nil, Unbounded, map[string]string{
			"out/tenant": "50 10 0 link", "out/tenant/web": "37.5 7.5 0 link", "out/tenant/db": "12.5 2.5 0 link", "out/backup": "12.5 2.5 0 link", "out/rest": "37.5 7.5 0 link",
			"in/backup": "20 10 0 link", "in/rest": "30 10 0 link",
		}},
		{"all busy", group.Equal, nil, Unbounded, map[string]string{
			"out/tenant": "46.7 6.67 0 link", "out/tenant/web": "33.3 3.33 0 link", "out/tenant/db": "13.3 3.33 0 link", "out/backup": "16.7 6.67 0 link", "out/rest": "36.7 6.67 0 link",
			"in/backup": "20 10 0 link", "in/rest": "30 10 0 link",
		}},
		{"all busy", group.Priority, nil, Unbounded, map[string]string{
			"out/tenant": "50 10 0 link", "out/tenant/web": "35 5 0 link", "out/tenant/db": "15 5 0 link", "out/backup": "10 0 0 link", "out/rest": "40 10 0 link",
			"in/backup": "20 10 0 link", "in/rest": "30 10 0 link",
		}},
		{"a tenant at its ceiling", group.Proportional, []string{"web=max", "backup=5Mbit"}, 0, map[string]string{
			"out/tenant": "60 20 0 ceiling", "out/tenant/web": "60 30 0 ceiling of tenant", "out/tenant/db": "0 0 10 demand", "out/backup": "5 0 1.82 demand", "out/rest": "0 0 10.9 demand",
			"in/backup": "5 0 0 demand", "in/rest": "0 0 0 demand",
		}},
		{"a group at its own ceiling", group.Equal, []string{"tenant/db=max"}, 0, map[string]string{
			"out/tenant": "20 0 0 demand", "out/tenant/web": "0 0 10 demand", "out/tenant/db": "20 10 0 ceiling", "out/backup": "0 0 0 demand", "out/rest": "0 0 0 demand",
			"in/backup": "0 0 0 demand", "in/rest": "0 0 0 demand",
		}},
		{"one group idle", group.Priority, []string{"rest=0bit"}, Unbounded, map[string]string{
			"out/tenant": "60 20 0 ceiling", "out/tenant/web": "40 10 0 ceiling of tenant", "out/tenant/db": "20 10 0 ceiling", "out/backup": "40 30 0 link", "out/rest": "0 0 30 demand",
			"in/backup": "50 40 0 link", "in/rest": "0 0 20 demand",
		}},
	} {
		p := planOf(t, c.spare)
		d, err := ParseDemands(p, c.demands, c.others)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, x := range Divide(p, d).Directions {
			for _, g := range x.Groups {
				mbit := func(v uint64) string { return fmt.Sprintf("%.3g", float64(v)/1e6) }
				got[x.Direction+"/"+g.Path] = fmt.Sprintf("%s %s %s %s", mbit(g.Rate), mbit(g.Borrowed), mbit(g.Lent), g.LimitedBy)
				if g.CeilingOf != "" {
					got[x.Direction+"/"+g.Path] += " of " + g.CeilingOf
				}
			}
		}
		for path, want := range c.want {
			if got[path] != want {
				t.Errorf("%s, %s: %s has %s, want %s", c.name, c.spare, path, got[path], want)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s, %s: %v", c.name, c.spare, got)
		}
	}
}

// The rates are those of share.Allocate for each direction alone, but for rounding.
func TestDivideAgreesWithAllocate(t *testing.T) {
	for _, spare := range []group.Spare{group.Proportional, group.Equal, group.Priority} {
		p := planOf(t, spare)
		for _, d := range []Demands{{Others: Unbounded}, {Others: Demand(7 * unit.Mbit)}, {Groups: map[string]Demand{"rest": 0, "tenant/db": Demand(11 * unit.Mbit)}, Others: Unbounded}} {
			for n, tree := range []*group.Tree{p.Out, p.In} {
				var claims []share.Claim
				for _, n := range tree.Nodes {
					claims = append(claims, share.Claim{Parent: n.Parent, Guarantee: n.Guarantee, Ceiling: n.Ceiling, Weight: uint64(tree.Weight(n)), Priority: n.Priority, Demand: unit.Rate(d.of(n))})
				}
				want := share.Allocate(tree.Limit, policies[tree.Spare], claims)
				unused := uint64(tree.Limit)
				x := Divide(p, d).Directions[n]
				for i, g := range x.Groups {
					if diff := int64(g.Rate) - int64(want[i]); diff < -1 || diff > 1 {
						t.Errorf("%s, %v: %s/%s gets %d, share.Allocate gives %d", spare, d, x.Direction, g.Path, g.Rate, want[i])
					}
					if tree.Nodes[i].Parent < 0 {
						unused -= g.Rate
					}
				}
				if unused != x.Unused {
					t.Errorf("%s, %v: %d bit/s of %s are unused, want %d", spare, d, x.Unused, x.Direction, unused)
				}
			}
		}
	}
}

// A direction that is not limited is left out.
func TestDivideOneDirection(t *testing.T) {
	p := planOf(t, group.Equal)
	p.Out = nil
	if got := Divide(p, Demands{Others: Unbounded}); len(got.Directions) != 1 || got.Directions[0].Direction != "in" || got.Directions[0].Unused != 0 {
		t.Errorf("%+v", got)
	}
}

func TestParseDemands(t *testing.T) {
	p := planOf(t, group.Equal)
	for text, want := range map[string]string{
		"web":                       `"web" is not a demand: write GROUP=RATE`,
		"=1Mbit":                    `"=1Mbit" is not a demand`,
		"wbe=1Mbit":                 `eth0: there is no group "wbe"; it has tenant/web, tenant/db, backup, rest`,
		"tenant=1Mbit":              "tenant is a parent group, whose demand is that of its child groups: write tenant/web, tenant/db",
		"web=40":                    `web=40: "40"`,
		"web=5MB/s":                 "web=5MB/s: ",
		"web=40%":                   "or write max for as much as the group can get",
		"web=1Mbit tenant/web=2bit": "group tenant/web has two demands",
	} {
		if _, err := ParseDemands(p, strings.Fields(text), 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
