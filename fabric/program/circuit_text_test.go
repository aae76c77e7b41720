package program

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
)

// testdata/circuits.txt has what the switches of a circuit get, as ovs-ofctl prints it.
func TestCircuitText(t *testing.T) {
	var b strings.Builder
	for _, form := range []struct {
		name string
		kind model
	}{{"seven tables", whole}, {"one table", oneFull}, {"no groups and no meters", bare}} {
		synctest.Test(t, func(t *testing.T) {
			w, c := ring(t, form.kind)
			c.Name, c.Paths, c.Spare, c.DSCP = "data/night", []fabric.Path{w.path(0, 1, 3), w.path(0, 2, 3)}, w.path(0, 4, 3), 46
			c.Flows, c.Unresponsive = append(c.Flows, Traffic{Protocol: 6, Destination: Ports{5000, 5003}}), false
			w.setCircuits(c)
			for n := range w.sw {
				p, err := w.c.Program(fabric.DPID(n + 1))
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&b, "# a switch with %s: s%d\n", form.name, n+1)
				for _, m := range p.Meters {
					if IsCircuitMeter(m.ID) {
						fmt.Fprintf(&b, "%s: %v\n", m.Why, &openflow.MeterMod{Flags: m.Flags, Meter: m.ID, Bands: m.Bands})
					}
				}
				for _, g := range p.Groups {
					if isCircuitGroup(g.ID) {
						fmt.Fprintf(&b, "%s: %v\n", g.Why, &openflow.GroupMod{Kind: g.Kind, Group: g.ID, Buckets: g.Buckets})
					}
				}
				for _, f := range p.Flows {
					if isCircuitFlow(f.Cookie) {
						fmt.Fprintf(&b, "%s: %v\n", f.Why, f.Mod())
					}
				}
			}
		})
	}
	const file = "testdata/circuits.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != b.String() {
		t.Errorf("the flows of a circuit are not those of %s (go test ./fabric/program -update):\n%s", file, b.String())
	}
}
