package program

import (
	"slices"
	"testing"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
)

// What is not reserved passes the meter of the port by which it leaves, by whichever rule: also what another switch sends in transit, in a
// network with backups, and what took a backup.
func TestUnreservedByEveryRule(t *testing.T) {
	checked := map[Kind]int{}
	for seed := range uint64(200) {
		d := draw(t, seed)
		d.same = map[bool]int{}
		c := d.connectivity(nil)
		for _, s := range c.Topology.Switches() {
			leaving := c.Circuits.leaving(s.ID)
			if len(leaving) == 0 {
				continue
			}
			p, err := c.Program(s.ID)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range p.Flows {
				kind := Kind(f.Cookie >> 40)
				switch kind {
				case KindToward, KindHairpin, KindRerouted, KindDetour, KindRemote:
				default:
					continue // circuits have meters of their own, and broadcast has none
				}
				by := leavesBy(t, p, f)
				if want, got := leaving[by], meterOf(f); got != want {
					t.Errorf("seed %d, switch %v: %v, which leaves by port %v, has meter %d, want %d", seed, s.ID, f.Why, by, got, want)
				} else if want != 0 {
					checked[kind]++
				}
			}
		}
	}
	for _, k := range []Kind{KindToward, KindHairpin, KindRerouted, KindDetour, KindRemote} {
		if checked[k] == 0 {
			t.Errorf("no rule of kind %v was checked", k)
		}
	}
}

// leavesBy returns the port by which a rule sends while all ports are live.
func leavesBy(t *testing.T, p Program, f Flow) fabric.PortNo {
	for _, i := range f.Instructions {
		do, ok := i.(openflow.ApplyActions)
		if !ok {
			continue
		}
		for _, a := range do.Actions {
			if g, ok := a.(openflow.Group); ok {
				at := slices.IndexFunc(p.Groups, func(one Group) bool { return one.ID == g.Group })
				a = p.Groups[at].Buckets[0].Actions[0]
			}
			if out, ok := a.(openflow.Output); ok {
				return fabric.PortNo(out.Port)
			}
		}
	}
	t.Fatalf("%v sends nowhere", f.Why)
	return 0
}

func meterOf(f Flow) openflow.MeterID {
	for _, i := range f.Instructions {
		if m, ok := i.(openflow.Meter); ok {
			return m.Meter
		}
	}
	return 0
}
