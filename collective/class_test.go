package collective_test

import (
	"math"
	"testing"
	"time"

	"headgate.dev/headgate/collective"
)

// Classes carry in proportion of their weights, whatever their connections need and however many they are; inside a class connections have their own proportion. What a class
// does not use the others have.
func TestClasses(t *testing.T) {
	b := &bottleneck{rate: 10e6, base: 20 * time.Millisecond, room: 1e6, of: map[collective.ID]*source{1: {offered: 1e6}, 2: {offered: 0.5e6}, 3: {offered: 4e6}}}
	b.control.SetClass(1, "db", 3)
	b.control.SetClass(2, "db", 3)
	b.control.SetClass(3, "backup", 1)
	b.run(20 * time.Second)
	b.greedy()
	b.rivalQueueFactor = 4e6
	b.run(10 * time.Second)
	got := b.rates(20 * time.Second)
	if r := (got[1] + got[2]) / got[3]; math.Abs(r/3-1) > 0.05 {
		t.Errorf("db to backup is %.2f to 1, want 3: %v", r, got)
	}
	if r := got[1] / got[2]; math.Abs(r/2-1) > 0.05 {
		t.Errorf("in db it is %.2f to 1, want 2: %v", r, got)
	}
	// The first connection of db has nothing to send: the second has all of its class.
	b.of[1].offered, b.of[1].backlog = 0, 0
	b.run(10 * time.Second)
	got = b.rates(20 * time.Second)
	if r := got[2] / got[3]; math.Abs(r/3-1) > 0.07 {
		t.Errorf("db to backup with one connection each is %.2f to 1, want 3: %v", r, got)
	}
}
