package fabric

import (
	"path/filepath"
	"testing"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
)

// Every network of the bench is a valid lab, for every method that gets it.
func TestNetworks(t *testing.T) {
	valid := func(name string, top *lab.Topology) {
		t.Helper()
		if err := top.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, s := range map[string]shape{"connected": connected, "diamond": diamond, "standing": standing, "besieged": besieged} {
		for _, m := range append(otherMethods, ours, withKernel) {
			valid(name+" for "+m.name, s.topology(m, controllerNode))
		}
	}
	valid("the court", courtTopology())
	valid("a controller alone", controllerAlone())
	for file, links := range map[string]int{"reservations.yaml": 5, "relay.yaml": 6} {
		top, err := seedNetwork(filepath.Join("../../examples/lab", file))
		if err != nil {
			t.Fatal(err)
		}
		valid(file, top)
		if e := expectedOf(top); len(e.Switches) != 6 || len(e.Links) != 2*links {
			t.Errorf("%s: %d switches, %d links", file, len(e.Switches), len(e.Links))
		}
	}
}

// All claims belong to a row, and the first words of the bench are what it leaves out.
func TestBench(t *testing.T) {
	b := Bench(bench.NewDraw(1))
	claims, err := b.Declared(nil)
	if err != nil || len(claims) < 70 {
		t.Errorf("%d claims, %v", len(claims), err)
	}
	for _, row := range rows {
		if all, err := b.Declared([]string{row.ID}); err != nil || len(all) == 0 {
			t.Errorf("row %s has %d claims, %v", row.ID, len(all), err)
		}
	}
	if b.LeftOut() == "" {
		t.Error("the bench leaves nothing out")
	}
}
