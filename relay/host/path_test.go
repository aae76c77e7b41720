package host

import (
	"testing"
	"time"

	"headgate.dev/headgate/relay"
)

// A path that carries nothing keeps the streams that it begins with, and those that are configured.
func TestWarm(t *testing.T) {
	for _, c := range []struct {
		path  relay.Path
		tuned int
		quiet time.Duration
		want  int
	}{
		{relay.Path{}, 100, 0, 100},
		{relay.Path{}, 100, quietTime - 1, 100},
		{relay.Path{}, 100, quietTime, firstStreams},
		{relay.Path{}, 2, time.Hour, 2},
		{relay.Path{FirstStreams: 10}, 100, quietTime, 10},
		{relay.Path{Streams: 50}, 50, time.Hour, 50},
	} {
		if got := warm(c.path, c.tuned, c.quiet); got != c.want {
			t.Errorf("%+v, %d streams, quiet for %v: %d, want %d", c.path, c.tuned, c.quiet, got, c.want)
		}
	}
}
