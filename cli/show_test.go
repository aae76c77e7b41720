package cli

import (
	"bytes"
	"testing"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/golden"
	"headgate.dev/headgate/shaper"
)

// TestShowOffloads checks that changed device settings are shown as table and JSON.
func TestShowOffloads(t *testing.T) {
	st := []shaper.State{{Dev: "eth0", Engine: group.HTB, Offloads: []shaper.DeviceSetting{
		{Name: "gso_max_size", Value: 3280, Before: 65536}, {Name: "gro_max_size", Value: 20000, ChangedByOther: true},
	}}}
	var b bytes.Buffer
	a := &app{out: &b}
	for _, f := range []format{"table", "json"} {
		if err := a.showGroups(st, 0, f); err != nil {
			t.Fatal(err)
		}
	}
	golden.Compare(t, "testdata/show_offloads.txt", b.String())
}
