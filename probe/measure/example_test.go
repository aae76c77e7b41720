package measure_test

import (
	"fmt"
	"os"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/measure"
	"headgate.dev/headgate/unit"
)

// The estimates of a logged measurement are repeated, with a capacity that is known: a policer of
// 200 Mbit/s before a link of 1 Gbit/s.
func ExampleReplay() {
	file, err := os.Open("../limiter/testdata/policer.log")
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
	replayed, err := measure.Replay(log, unit.Gbit, false, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for d, answer := range replayed.Report.Directions {
		fmt.Printf("%s: %s of %.1f Gbit/s\n", d, answer.Limiter.Class, answer.TokenRate.Rate.Value/1e9)
	}
	// Output: out: policer of 0.2 Gbit/s
}
