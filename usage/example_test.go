package usage_test

import (
	"fmt"
	"time"

	"headgate.dev/headgate/unit"
	"headgate.dev/headgate/usage"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// Two readings of a link of 100 Mbit/s, one second apart: web uses 10 Mbit/s of its guarantee, and
// backup borrows the rest.
func ExampleAccount() {
	before := map[string]usage.Counters{"web": {At: noon}, "backup": {At: noon}}
	at := noon.Add(time.Second)
	now := usage.Direction{Name: "out", Limit: 100 * unit.Mbit, Groups: []usage.Group{
		{Path: "web", Parent: -1, Leaf: true, Guarantee: 40 * unit.Mbit, Counters: usage.Counters{At: at, Bytes: 1_250_000}},
		{Path: "backup", Parent: -1, Leaf: true, Guarantee: 60 * unit.Mbit, Counters: usage.Counters{At: at, Bytes: 11_250_000}},
	}}
	for i, u := range usage.Account(before, now) {
		fmt.Printf("%s: delivered %.0f, borrowed %.0f, lent %.0f Mbit/s\n",
			now.Groups[i].Path, u.Rate(u.Delivered)/1e6, u.Rate(u.Borrowed)/1e6, u.Rate(u.Lent)/1e6)
	}
	// Output:
	// web: delivered 10, borrowed 0, lent 30 Mbit/s
	// backup: delivered 90, borrowed 30, lent 0 Mbit/s
}

// A meter sums the time in which a guarantee was unmet: the queue of web is never empty, and web gets
// half of its guarantee of 8 Mbit/s.
func ExampleMeter() {
	var m usage.Meter
	for second := range 4 {
		elapsed := time.Duration(second) * time.Second
		bytes := uint64(second) * 500_000
		m.Take(map[string][]usage.Direction{"eth0": {{Name: "out", Groups: []usage.Group{{
			Path: "web", Parent: -1, Leaf: true, Guarantee: 8 * unit.Mbit,
			Counters: usage.Counters{At: noon.Add(elapsed), Bytes: bytes, Backlog: 90_000, QueuedFor: elapsed, Queued: bytes},
		}}}}})
	}
	fmt.Println(m.Unmet("eth0", "out/web"), "s")
	// Output: 3 s
}
