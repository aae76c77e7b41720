package record_test

import (
	"fmt"
	"os"
	"time"

	"headgate.dev/headgate/agent/record"
	"headgate.dev/headgate/unit"
	"headgate.dev/headgate/usage"
)

// Readings of the counters, one per second, become usage per minute, which survives a restart.
func ExampleRecord() {
	dir, err := os.MkdirTemp("", "headgate-record")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	r, err := record.Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for second := range 4 {
		err := r.Add(noon.Add(time.Duration(second)*time.Second), map[string][]usage.Direction{"eth0": {{Name: "out", Groups: []usage.Group{{
			Path: "web", Parent: -1, Leaf: true, Guarantee: 8 * unit.Mbit, Counters: usage.Counters{Bytes: uint64(second) * 500_000},
		}}}}})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	all, err := r.Usage(noon, noon.Add(time.Minute))
	web := all["eth0"]["out/web"]
	fmt.Println(web.Delivered, "bytes in", web.Seconds, "s,", err)
	// Output: 1500000 bytes in 3 s, <nil>
}
