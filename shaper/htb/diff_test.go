package htb

import (
	"testing"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/unit"
)

// TestDifference: the description of a change names the parameters that change.
func TestDifference(t *testing.T) {
	was := nl.HTBClass{Rate: 1, Ceil: 125_000, Quantum: 200_000, Prio: 7, Buffer: 100}
	now := nl.HTBClass{Rate: 1, Ceil: 125_000, Buffer: 200}
	for _, c := range []struct {
		class     class
		old       nl.HTBClass
		guarantee unit.Rate
		describe  string
		changes   string
	}{
		{class{htb: now, ceiling: unit.Mbit, minor: rootMinor}, was, 0, "guarantee 0bit, ceiling 1Mbit", "burst"},
		{class{htb: now, ceiling: unit.Mbit, leaf: true}, was, 0, "guarantee 0bit, ceiling 1Mbit", "quantum " + unit.Bytes(200_000).String() + " -> 0B, priority 7 -> 0"},
		{class{htb: nl.HTBClass{Rate: 62_500, Ceil: 125_000}, leaf: true, guarantee: 505 * unit.Kbit, ceiling: unit.Mbit}, now, 0, "guarantee 505kbit, ceiling 1Mbit", "guarantee 0bit -> 505kbit"},
		{class{htb: nl.HTBClass{Rate: 62_500, Ceil: 125_000}, leaf: true, guarantee: 505 * unit.Kbit, ceiling: unit.Mbit}, nl.HTBClass{Rate: 63_125, Ceil: 125_000}, 505 * unit.Kbit, "guarantee 505kbit, ceiling 1Mbit", "HTB rate 505kbit -> 500kbit"},
	} {
		if got := describe(c.class); got != c.describe {
			t.Errorf("%+v is described as %q; want %q", c.class.htb, got, c.describe)
		}
		if got := difference(c.old, group.Node{Guarantee: c.guarantee, Ceiling: unit.Mbit}, c.class); got != c.changes {
			t.Errorf("from %+v to %+v, leaf %v: %q; want %q", c.old, c.class.htb, c.class.leaf, got, c.changes)
		}
	}
}
