package live

import (
	"testing"
	"testing/synctest"
	"time"
)

// Hosts of switches without rules reach each other as soon as it is known what is at each port, and need not ask again.
func TestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, ring)
		time.Sleep(settle + 2*tick)
		synctest.Wait()
		if plan := w.live.Plan(); plan == nil || len(plan.Topology.Links()) != 2*len(ring) {
			t.Fatalf("there is no plan with all links: %v", plan)
		}
		if missing, _ := w.ping(50 * time.Millisecond); len(missing) > 0 {
			t.Errorf("no answer: %v", missing)
		}
	})
}
