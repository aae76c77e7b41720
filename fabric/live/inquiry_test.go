package live

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/fabric"
)

// Discovery frames that are late, because a switch or this program has much else to do, are not taken for those of a link that passes
// nothing: no link is down meanwhile. A link that passes nothing is found when the switches answer again.
func TestLate(t *testing.T) {
	for _, c := range []struct {
		name string
		late [2]time.Duration // to the switches, and from them
	}{
		// The switches send on, so that their channels are not silent.
		{"switches", [2]time.Duration{1200 * time.Millisecond, 0}},
		{"controller", [2]time.Duration{0, 350 * time.Millisecond}},
		{"both", [2]time.Duration{700 * time.Millisecond, 250 * time.Millisecond}},
	} {
		for _, which := range [][]int{{1}, {1, 2}, {0, 1, 2, 3}} {
			t.Run(fmt.Sprintf("%s/%d", c.name, len(which)), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, 4, ring)
					w.settle(3 * time.Second)
					set := func(late [2]time.Duration) {
						for _, n := range which {
							for i, d := range late {
								w.late[n][i].Store(int64(d))
							}
						}
					}
					set(c.late)
					time.Sleep(5 * time.Second)
					if w.has(fabric.LinkRemoved, "") {
						t.Fatalf("a link is down while the channels of %v are late", which)
					}
					w.cables[0].Lose(true, true) // of switches 0 and 1
					set([2]time.Duration{})
					time.Sleep(3 * time.Second)
					if got := len(w.live.Plan().Topology.Links()); got != 2*len(ring)-2 {
						t.Errorf("%d links, want %d: one passes nothing", got, 2*len(ring)-2)
					}
				})
			})
		}
	}
}

// A loop that could do nothing for a time, as when its process was stopped, takes no link for one that passes nothing.
func TestStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, ring)
		w.settle(3 * time.Second)
		for _, d := range []time.Duration{800, 1200, 2500, 4000} {
			d *= time.Millisecond
			w.live.mu.Lock()
			w.live.ticker.Reset(d)
			w.live.mu.Unlock()
			for n := range w.stalled {
				w.stalled[n].Store(time.Now().Add(d).UnixNano())
			}
			w.settle(d + 3*time.Second)
			if w.has(fabric.LinkRemoved, "") {
				t.Fatalf("a link is down after the loop was stopped for %v", d)
			}
		}
	})
}
