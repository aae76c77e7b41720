package stripe

import (
	"testing"
	"time"
)

func TestPick(t *testing.T) {
	const size, ms = 64 << 10, time.Millisecond
	fast := Estimate{RTT: 20 * ms, Rate: 37.5e6}
	slow := Estimate{RTT: 400 * ms, Rate: 37.5e6}
	full := fast
	full.Unsent = 256 << 10
	for _, c := range []struct {
		name          string
		all           []candidate
		backlog, room int
		want          int
	}{
		{"none can send", []candidate{{fast, false}, {slow, false}}, 1e9, 1e9, -1},
		{"the first to arrive", []candidate{{slow, true}, {fast, true}}, 1e9, 1e9, 1},
		{"a long queue uses both", []candidate{{slow, true}, {full, false}}, 20e6, 100e6, 0},
		{"the end of a transfer waits for the fast stream", []candidate{{slow, true}, {full, false}}, size, 100e6, -1},
		{"the receiver has no room for what overtakes", []candidate{{slow, true}, {full, false}}, 20e6, 1e6, -1},
		{"a full stream that is faster nevertheless", []candidate{{full, true}, {slow, true}}, size, 1e6, 0},
		{"without an estimate", []candidate{{Estimate{}, true}}, size, 0, 0},
	} {
		if got, _ := pick(c.all, size, c.backlog, c.room); got != c.want {
			t.Errorf("%s: stream %d, want %d", c.name, got, c.want)
		}
	}
}
