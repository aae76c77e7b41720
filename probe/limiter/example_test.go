package limiter_test

import (
	"fmt"
	"os"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/limiter"
)

// The samples are from a log of a real measurement: a link of 1 Gbit/s behind a policer of 200 Mbit/s.
func ExampleDetector_Estimate() {
	file, err := os.Open("testdata/policer.log")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Close()
	log, err := probe.ReadLog(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	r := limiter.Detector{Capacity: 1e9}.Estimate(log.Samples[probe.Out])
	fmt.Println(r.Class, "on the", r.At)
	fmt.Printf("%.1f Gbit/s\n", r.Bucket.Rate.Value/1e9)
	// Output:
	// policer on the path
	// 0.2 Gbit/s
}
