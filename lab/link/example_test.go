package link_test

import (
	"fmt"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/unit"
)

// Four packets of 1,500 bytes arrive at once. Each takes 1 ms on a link of 12 Mbit/s, and the queue holds
// two, beside the one that is being sent.
func ExampleLink() {
	l := link.New(link.Spec{Rate: 12 * unit.Mbit, Delay: 10 * time.Millisecond, Queue: link.Amount{Segments: 2}}, 1, 0)
	for range 4 {
		l.Offer(0, link.Packet{Size: 1500})
	}
	for at, held := l.Next(); held; at, held = l.Next() {
		for r, ok := l.Take(at); ok; r, ok = l.Take(at) {
			if r.Fate == link.Delivered {
				fmt.Println("packet", r.Number, "is released after", time.Duration(r.Released))
			} else {
				fmt.Println("packet", r.Number, "is dropped:", r.Fate == link.Overflowed)
			}
		}
	}
	// Output:
	// packet 4 is dropped: true
	// packet 1 is released after 11ms
	// packet 2 is released after 12ms
	// packet 3 is released after 13ms
}

// Cross traffic of 40 Mbit/s leaves 60 Mbit/s of a link of 100 Mbit/s.
func ExampleAvailable() {
	spec := link.Spec{Rate: 100 * unit.Mbit, Cross: []link.Cross{{Load: 40 * unit.Mbit, Model: link.Constant, Sizes: []int{1500}}}}
	l := link.New(spec, 1, 0)
	until := int64(900 * time.Millisecond)
	var log []link.Result
	for r, ok := l.Take(until); ok; r, ok = l.Take(until) {
		log = append(log, r)
	}
	fmt.Printf("%.0f Mbit/s\n", float64(link.Available(spec, log, 0, until))/1e6)
	// Output: 60 Mbit/s
}
