package lab

import (
	"testing"

	"headgate.dev/headgate/lab/traffic"
)

// Pings without an answer do not count as short delays.
func TestAnswered(t *testing.T) {
	for _, c := range []struct {
		sent, lost uint64
		ok         bool
	}{{0, 0, false}, {300, 300, false}, {300, 3, false}, {300, 2, true}, {300, 0, true}} {
		if err := answered(&traffic.ProbeResult{Sent: c.sent, Lost: c.lost}); (err == nil) != c.ok {
			t.Errorf("%d of %d lost: %v", c.lost, c.sent, err)
		}
	}
}
