package htb

import (
	"testing"

	"headgate/internal/nl"
	"headgate/unit"
)

// TestDifference: what plan says of a class is what will be otherwise.
func TestDifference(t *testing.T) {
	was := nl.HTBClass{Rate: 1, Ceil: 125_000, Quantum: 200_000, Prio: 7, Buffer: 100}
	now := nl.HTBClass{Rate: 1, Ceil: 125_000, Buffer: 200}
	for _, c := range []struct {
		class    class
		old      nl.HTBClass
		describe string
		changes  string
	}{
		{class{htb: now}, was, "nothing guaranteed, up to 1Mbit", "burst"},
		{class{htb: now, leaf: true}, was, "nothing guaranteed, up to 1Mbit", "turn " + unit.Bytes(200_000).String() + " -> 0B, priority 7 -> 0"},
		{class{htb: nl.HTBClass{Rate: 62_500, Ceil: 125_000}, leaf: true}, now, "500kbit guaranteed, up to 1Mbit", "guaranteed nothing -> 500kbit"},
	} {
		if got := describe(c.class.htb); got != c.describe {
			t.Errorf("%+v is described as %q; want %q", c.class.htb, got, c.describe)
		}
		if got := difference(c.old, c.class); got != c.changes {
			t.Errorf("from %+v to %+v, leaf %v: %q; want %q", c.old, c.class.htb, c.class.leaf, got, c.changes)
		}
	}
}
