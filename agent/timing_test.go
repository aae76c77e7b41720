package agent

import (
	"testing"
	"time"
)

// A firewall that changes its chains all the time brings about a look a second, and the first change
// one at once.
func TestHooksAreNoStorm(t *testing.T) {
	var tm timing
	now := time.Now()
	tm.fine(now)
	tm.hooks(now)
	if first := tm.due; first.After(now.Add(settle)) {
		t.Errorf("the first look comes after %v", first.Sub(now))
	}
	looks := 0
	for at := now; at.Before(now.Add(10 * time.Second)); at = at.Add(10 * time.Millisecond) {
		tm.hooks(at)
		if !at.Before(tm.due) {
			looks++
			tm.fine(at)
		}
	}
	if looks > 11 || looks < 9 {
		t.Errorf("%d looks in 10 s of changes", looks)
	}
}
