package collective_test

import (
	"fmt"
	"testing"
	"time"

	"headgate.dev/headgate/collective"
)

// The cost of a controlled set of many connections. Each second has 50 readings per
// connection, with round trips of 20 ms, and 100 looks.
func BenchmarkMembers(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			const tick = 10 * time.Millisecond
			var c collective.Control
			var now time.Duration
			var acked uint64
			look := func(events collective.Event) {
				for id := range n {
					if r := (collective.Reading{At: now, RTT: 20 * time.Millisecond, Newest: 20 * time.Millisecond, Acked: acked, Events: events}); id%2 == int(now/tick)%2 {
						if events != 0 {
							r.Backlog, r.Newest = 1e5, 40*time.Millisecond
						}
						c.Observe(collective.ID(id+1), r)
					}
				}
				acked += 1500
				now += tick
				for range c.Caps(now) {
					continue
				}
			}
			for now < 5*time.Second {
				look(0)
			}
			for range 2 {
				look(collective.FastRetransmit)
			}
			b.ResetTimer()
			for range b.N {
				look(collective.FastRetransmit)
			}
			if !c.Controlling() {
				b.Fatal("the set is not controlled")
			}
			b.ReportMetric(100*b.Elapsed().Seconds()/(float64(b.N)*tick.Seconds()), "%core")
		})
	}
}
