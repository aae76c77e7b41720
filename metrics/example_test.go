package metrics_test

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"headgate.dev/headgate/metrics"
	"headgate.dev/headgate/shaper"
)

// The groups of a device become metrics. A program serves the registry with promhttp, or with Serve.
func ExampleNewGroups() {
	states := func() []shaper.State {
		return []shaper.State{{Dev: "eth0", Out: &shaper.DirectionState{Groups: []shaper.GroupState{{Path: "web", Bytes: 1500}}}}}
	}
	unmet := func(dev, group string) float64 { return 7 } // usage.Meter has this method
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewGroups(states, unmet))
	families, err := registry.Gather()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range families {
		switch f.GetName() {
		case "headgate_group_delivered_bytes_total", "headgate_group_unmet_seconds_total":
			fmt.Println(f.GetName(), f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	// Output:
	// headgate_group_delivered_bytes_total 1500
	// headgate_group_unmet_seconds_total 7
}
