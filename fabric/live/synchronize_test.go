package live

import (
	"testing"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/program"
)

// A switch that is brought to a plan while a newer one comes into force that does not concern it is woken, and then has the newest.
func TestBroughtWhileNewer(t *testing.T) {
	s := &attached{id: 1, wake: make(chan struct{}, 1), done: 10}
	n := &Network{switches: map[fabric.DPID]*attached{1: s}, plan: &program.Connectivity{}, version: 10}
	n.handed = handed{plan: n.plan, version: 10}
	n.installCircuits(&program.Connectivity{}, map[fabric.DPID]bool{2: true})
	if !n.current(s) || len(s.wake) != 0 {
		t.Fatalf("a switch that a plan does not concern: version %d of %d, %d wakes", s.done, n.version, len(s.wake))
	}
	n.brought(s, 10, nil) // of a comparison that began before
	if n.current(s) || len(s.wake) != 1 {
		t.Fatalf("after it was brought to the plan before: version %d of %d, %d wakes", s.done, n.version, len(s.wake))
	}
	<-s.wake
	n.brought(s, 11, nil)
	if !n.current(s) || len(s.wake) != 0 {
		t.Errorf("after it was brought to the newest: version %d of %d, %d wakes", s.done, n.version, len(s.wake))
	}
}
