package live

import (
	"testing"
	"time"

	"headgate.dev/headgate/fabric"
)

// Discovery frames of a switch leave in its turn, within an interval, and go on when the clock of the controller is set.
func TestTogetherAfter(t *testing.T) {
	for id := range fabric.DPID(7) {
		for after := time.Duration(0); after < 2*linkInterval; after += tick / 3 {
			now := time.Now().Add(after)
			at := togetherAfter(now, id)
			if wait := at.Sub(now); wait <= 0 || wait > linkInterval {
				t.Errorf("switch %v: after %v", id, wait)
			}
			if turn := time.Duration(at.UnixNano()) % linkInterval; turn != time.Duration(id%5)*tick {
				t.Errorf("switch %v: in the turn of %v", id, turn)
			}
			if at == at.Round(0) {
				t.Errorf("switch %v: without a monotonic clock reading", id)
			}
		}
	}
}
