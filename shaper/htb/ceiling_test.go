package htb_test

import (
	"testing"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/htb"
	"headgate.dev/headgate/unit"
)

// TestCeilingChangesLeaves: a ceiling that crosses the threshold for splitting, in both
// directions, changes the kinds of leaves.
func TestCeilingChangesLeaves(t *testing.T) {
	node := labtest.Rig(t, lab.RigOptions{}).Node("server")
	e := htb.New()
	for _, limit := range []unit.Rate{unit.Gbit, 8 * unit.Gbit, unit.Gbit, 100 * unit.Mbit, 2 * unit.Gbit} {
		tree, problems := group.Direction{Limit: limit, Groups: []group.Group{{Name: "a", Default: true}, {Name: "b"}}}.Resolve("out", true)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		p := shaper.Plan{Dev: "router", Out: &tree, In: &tree}
		err := node.Do(func() error {
			if _, err := e.Apply(p); err != nil {
				return err
			}
			st, err := e.Observe("router")
			if len(st.Drift) > 0 {
				t.Errorf("limit %v: drift %v", limit, st.Drift)
			}
			return err
		})
		if err != nil {
			t.Fatalf("limit %v: %v", limit, err)
		}
	}
}
