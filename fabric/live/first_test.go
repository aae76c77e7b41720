package live

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/fabric/openflow"
)

// Hosts of switches without rules reach each other as soon as it is known what is at each port, and need not ask again.
func TestFirst(t *testing.T) {
	for _, c := range []struct {
		name       string
		configured bool
		connected  int // long before the others
	}{
		{"all at once", false, 0},
		{"a configuration is there before the switches", true, 0},
		{"one has a plan when the others connect", false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newSwitches(t, 4, ring)
				connect := w.lead(1)
				if c.configured {
					w.live.Configure(anySwitch)
				}
				connect(w.sw[:c.connected]...)
				time.Sleep(2 * time.Second)
				connect(w.sw[c.connected:]...)
				time.Sleep(settle + 2*tick)
				synctest.Wait()
				if plan := w.live.Plan(); plan == nil || len(plan.Topology.Links()) != 2*len(ring) {
					t.Fatalf("there is no plan with all links: %v", plan)
				}
				if missing, _ := w.ping(50 * time.Millisecond); len(missing) > 0 {
					t.Errorf("no answer: %v", missing)
				}
			})
		})
	}
}

// A controller that follows another one changes nothing at switches that connect when it has a plan without them already.
func TestFollowedLate(t *testing.T) {
	for _, c := range []struct {
		after  time.Duration
		silent bool // a cable passes nothing for a second
	}{{0, false}, {settle, false}, {firstPlan, false}, {firstPlan + 2*tick, false}, {2 * time.Second, false}, {2 * time.Second, true}} {
		t.Run(fmt.Sprintf("%v %v", c.after, c.silent), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 7, append(slices.Clone(ring), [][2]int{{4, 5}, {5, 6}, {6, 4}}...)) // two networks
				w.settle(time.Second)
				w.ping(time.Second)
				w.settle(markAfter + time.Second)
				w.stop()
				connect := w.lead(2)
				w.live.Configure(anySwitch)
				time.Sleep(time.Second)
				connect(w.sw[4:]...)
				time.Sleep(c.after)
				w.cables[0].Lose(c.silent, c.silent)
				connect(w.sw[:4]...)
				time.Sleep(settle - tick/2)
				w.live.mu.Lock()
				w.live.paused = time.Now().Add(firstPlan) // the last plan, which has no use for ports of hosts, took so long
				w.live.mu.Unlock()
				time.Sleep(time.Second - settle)
				w.cables[0].Lose(false, false)
				w.settle(4 * time.Second)
				for n, changes := range w.sent(openflow.TypeFlowMod) {
					if changes != 0 && (!c.silent || n < 2) { // the others go round the cable meanwhile
						t.Errorf("switch %d got %d changes", n+1, changes)
					}
				}
			})
		})
	}
}

// A cable that begins to pass frames when its ports are up for a while is found soon.
func TestLateCable(t *testing.T) {
	for late, within := range map[time.Duration]time.Duration{200 * time.Millisecond: 200 * time.Millisecond, time.Second: 800 * time.Millisecond, 5 * time.Second: 5 * time.Second} {
		t.Run(late.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newSwitches(t, 2, [][2]int{{0, 1}})
				w.cables[0].Lose(true, true)
				w.start(1)
				time.Sleep(late)
				w.cables[0].Lose(false, false)
				w.settle(within + 2*tick)
				if links := len(w.live.Plan().Topology.Links()); links != 2 {
					t.Errorf("%d links %v later, want 2", links, within)
				}
			})
		})
	}
}
