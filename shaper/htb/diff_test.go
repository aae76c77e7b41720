package htb

import (
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// TestDifference: the description of a change names what the configuration changes, and only without that what is
// derived from it.
func TestDifference(t *testing.T) {
	was := nl.HTBClass{Rate: 1, Ceil: 125_000, Quantum: 200_000, Prio: 7, Buffer: 100}
	now := nl.HTBClass{Rate: 1, Ceil: 125_000, Buffer: 200}
	half := nl.HTBClass{Rate: 62_500, Ceil: 125_000, Quantum: 100}
	for _, c := range []struct {
		class     class
		old       nl.HTBClass
		guarantee unit.Rate
		describe  string
		changes   string
		derived   bool
	}{
		{class{htb: now, ceiling: unit.Mbit, minor: rootMinor}, was, 0, "guarantee 0, ceiling 1Mbit", "burst", true},
		{class{htb: now, ceiling: 2 * unit.Mbit, minor: rootMinor}, was, 0, "guarantee 0, ceiling 2Mbit", "1Mbit -> 2Mbit", false},
		{class{htb: now, ceiling: unit.Mbit, leaf: true}, was, 0, "guarantee 0, ceiling 1Mbit", "priority 7 -> 0", false},
		{class{htb: half, leaf: true, guarantee: 505 * unit.Kbit, ceiling: unit.Mbit}, now, 0, "guarantee 505kbit, ceiling 1Mbit", "guarantee 0 -> 505kbit", false},
		{class{htb: half, leaf: true, guarantee: 505 * unit.Kbit, ceiling: unit.Mbit}, nl.HTBClass{Rate: 63_125, Ceil: 125_000, Quantum: 100}, 505 * unit.Kbit, "guarantee 505kbit, ceiling 1Mbit", "HTB rate 505kbit -> 500kbit", true},
		{class{htb: half, leaf: true, minor: controlMinor, guarantee: 33_333_333, ceiling: unit.Mbit}, nl.HTBClass{Rate: 62_501, Ceil: 125_000, Quantum: 99}, 0, "guarantee 33.3Mbit, ceiling 1Mbit", "HTB rate 500.008kbit -> 500kbit, quantum 99B -> 100B", true},
	} {
		if got := describe(c.class); got != c.describe {
			t.Errorf("%+v is described as %q; want %q", c.class.htb, got, c.describe)
		}
		if got, derived := difference(c.old, group.Node{Path: "web", Guarantee: c.guarantee, Ceiling: unit.Mbit}, c.class); got != c.changes || derived != c.derived {
			t.Errorf("from %+v to %+v, leaf %v: %q, %v; want %q", c.old, c.class.htb, c.class.leaf, got, derived, c.changes)
		}
	}
}

// TestChanges: the changes of a device that is shaped name what users configure: no class of Headgate's own, unless
// nothing else changes.
func TestChanges(t *testing.T) {
	r := newUpgradeRig(t)
	direction := func(name string, limit unit.Rate, groups ...string) *group.Tree {
		d := group.Direction{Limit: limit, Groups: []group.Group{{Name: "rest", Default: true}}}
		for n, g := range groups {
			d.Groups = append(d.Groups, group.Group{Name: g, Guarantee: group.Amount{Share: unit.Whole / 4}, Match: []group.Selector{{DSCP: []group.Range{{First: uint16(n), Last: uint16(n)}}}}})
		}
		tree, problems := d.Resolve(name, true)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return &tree
	}
	plan := func(limit unit.Rate, groups ...string) shaper.Plan {
		return shaper.Plan{Dev: shaped, Perspective: group.Host, Out: direction("out", limit, groups...), In: direction("in", limit, groups...)}
	}
	diff := func(p shaper.Plan) (out []string) {
		r.do(func() error {
			changes, err := r.engine.Diff(p)
			for _, c := range changes {
				out = append(out, strings.TrimSpace(c.String()))
			}
			return err
		})
		return out
	}
	first := plan(100*unit.Mbit, "web", "backup")
	r.apply(first)
	for name, c := range map[string]struct {
		plan shaper.Plan
		want []string // of each direction
	}{
		"limit": {plan(700*unit.Mbit, "web", "backup"), []string{
			"change D limit: 100Mbit -> 700Mbit", "change D group rest: ceiling 100Mbit -> 700Mbit",
			"change D group web: guarantee 25Mbit -> 175Mbit, ceiling 100Mbit -> 700Mbit", "change D group backup: guarantee 25Mbit -> 175Mbit, ceiling 100Mbit -> 700Mbit",
		}},
		"removal": {plan(100*unit.Mbit, "web"), []string{"change D rules: 1, and the default", "remove D group backup"}},
		"new":     {plan(100*unit.Mbit, "web", "backup", "voice"), []string{"add    D group voice: guarantee 25Mbit, ceiling 100Mbit", "change D rules: 3, and the default"}},
	} {
		var want []string
		for _, d := range []string{"out", "in"} {
			for _, line := range c.want {
				want = append(want, strings.Replace(line, " D ", " "+d+" ", 1))
			}
		}
		got := slices.DeleteFunc(diff(c.plan), func(line string) bool { return strings.HasPrefix(line, "change device router: g") })
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	labtest.Run(t, r.server, "tc", strings.Fields("class change dev router parent 4847: classid 4847:2 htb rate 1mbit ceil 2mbit")...)
	if got := diff(first); len(got) != 1 || !strings.HasPrefix(got[0], "change out control traffic: HTB rate 1Mbit -> ") {
		t.Errorf("the class of control traffic was changed: %q", got)
	}
	if got := diff(plan(700*unit.Mbit, "web", "backup")); strings.Contains(strings.Join(got, "\n"), "control") {
		t.Errorf("among other changes: %q", got)
	}
}
