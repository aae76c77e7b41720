package agent

import (
	"testing"
	"time"
)

// A firewall that changes its chains all the time causes one check per second; the first change
// causes one at once.
func TestHookChangesAreRateLimited(t *testing.T) {
	var tm schedule
	now := time.Now()
	tm.fine(now)
	tm.hooks(now)
	if first := tm.due; first.After(now.Add(settleDelay)) {
		t.Errorf("the first check comes after %v", first.Sub(now))
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
		t.Errorf("%d checks in 10 s of changes, want 10", looks)
	}
}
