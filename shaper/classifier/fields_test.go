package classifier

import (
	"testing"

	"headgate.dev/headgate/group"
)

// TestFields: each selector has a place in the lookup key, for rules and for exclusions, and
// group.Selector estimates its cost (docs/adding-a-selector.md).
func TestFields(t *testing.T) {
	for _, f := range group.Fields {
		var one group.Selector
		if err := f.Parse(&one, f.Example); err != nil {
			t.Errorf("%s: the example is not accepted: %v", f.Name, err)
			continue
		}
		for what, s := range map[string]group.Selector{"a rule": one, "an exclusion": {Not: []group.Selector{one}}} {
			table, err := Compile(group.Tree{Rules: []group.Rule{{Selector: s}}},
				func(int) uint16 { return 1 }, func(string) (uint64, error) { return 7, nil })
			if err != nil {
				t.Errorf("%s of %s: %v", what, f.Name, err)
				continue
			}
			masked := false
			for _, shape := range table.Shapes {
				masked = masked || shape.Mask != FlowKey{}
			}
			if !masked {
				t.Errorf("%s of %s matches every packet", what, f.Name)
			}
			if got, most := len(table.Entries), s.Entries(); got > most {
				t.Errorf("%s of %s needs %d entries, but group.Selector.Entries returns %d", what, f.Name, got, most)
			}
		}
	}
}
