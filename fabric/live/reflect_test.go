package live

import (
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/program"
)

// One frame passes both directions of a cable and comes back, instead of one frame for each. A switch that does not send frames back is
// sent others, and its links stay.
func TestReflectedDiscovery(t *testing.T) {
	const lasts = 10 * time.Second
	for _, c := range []struct {
		name    string
		returns bool
		frames  int // for the cables
		first   int // of them at least, by the first switch
	}{
		{"all send back", true, 5*20 + 10*2, 0},
		// One of the first switch's three cables has frames that come back sent by its other end: both ends send others, too.
		{"one sends nothing back", false, 4*20 + 8*2 + 20 + 20 + 20, 2*20 + 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newKnown(t, ring)
				if !c.returns { // a flow of somebody else takes what would be sent back
					w.foreign(0, program.TablePort, 0xffff, openflow.Match{openflow.EthDst(program.Reflection)})
				}
				w.settle(2 * time.Second)
				before := w.sent(openflow.TypePacketOut)
				w.settle(lasts)
				sum, first := 0, 0
				for n, sent := range w.sent(openflow.TypePacketOut) {
					sum += int(sent - before[n])
					if n == 0 {
						first = int(sent - before[n])
					}
				}
				// Each of four hosts' ports and each cable may have one more or less, as the time begins.
				if more := sum - c.frames; more < -10 || more > 10+4 || first < c.first {
					t.Errorf("%d frames in %v, %d of them by the first switch, want %d and at least %d", sum, lasts, first, c.frames, c.first)
				}
				if links := w.live.Plan().Topology.Links(); len(links) != 10 || w.has(fabric.LinkRemoved, "") {
					t.Errorf("%d links, want 10, and none that was down", len(links))
				}
			})
		})
	}
}
