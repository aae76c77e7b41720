package collective

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// calmCase is a set without congestion, alternately with and without control: four paced members and
// one that sends requests and gets responses.
func calmCase() bench.Case {
	pairs := func(quick bool) int {
		if quick {
			return 1
		}
		return 3
	}
	const length = 8 * time.Second
	return bench.Case{
		Name: "calm/1Gbit",
		Claims: []bench.Claim{
			bench.NewClaim("calm/1Gbit/throughput", "rate of the paced members, deviation from that without control", asWithout),
			bench.NewClaim("calm/1Gbit/latency", "median response time, deviation from that without control", asWithout),
		},
		Takes: func(quick bool) time.Duration { return time.Duration(2*pairs(quick)) * (length + 2*time.Second) },
		Run: func(ctx context.Context, r *bench.Run) error {
			var rates, latencies []float64
			for range pairs(r.Quick) {
				without, late, err := calmRun(ctx, plain, length)
				if err != nil {
					return err
				}
				with, later, err := calmRun(ctx, ours, length)
				if err != nil {
					return err
				}
				rates = append(rates, 100*math.Abs(with/without-1))
				latencies = append(latencies, 100*math.Abs(later/late-1))
				r.Sheet(ours).Note("calm/1Gbit/latency", "%s ms for %s", bench.Number(later), bench.Number(late))
			}
			r.Sheet(ours).SetAll("calm/1Gbit/throughput", rates)
			r.Sheet(ours).SetAll("calm/1Gbit/latency", latencies)
			return nil
		},
	}
}

// calmRun returns the rate of the paced members, and the median response time in ms.
func calmRun(ctx context.Context, law string, length time.Duration) (rate, latency float64, err error) {
	c := fastCase{rate: unit.Gbit, rtt: 10 * time.Millisecond, control: "cubic", queue: "droptail"}
	l, err := lab.Up(ctx, c.topology())
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	port := nextPorts(8)
	d, err := watch(ctx, set{name: "calm", scaleControl: law, rules: []string{fmt.Sprintf("dport: %d-%d", port, port+4)}})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, d.end()) }()
	var flows []traffic.Flow
	for i := range 4 {
		flows = append(flows, c.flow(fmt.Sprintf("m%d", i), port+uint16(i), traffic.Constant(150*unit.Mbit)))
	}
	asks := c.flow("asks", port+4, nil)
	asks.Requests = &traffic.Requests{Users: 4, Request: traffic.Always[unit.Bytes](200), Response: traffic.Always[unit.Bytes](1000)}
	got, err := traffic.Run(ctx, l.Host, append(flows, asks), traffic.Options{Duration: length})
	if err != nil {
		return 0, 0, err
	}
	for _, f := range got.Flows {
		if f.Error != "" {
			return 0, 0, fmt.Errorf("flow %s: %s", f.Name, f.Error)
		}
		rate += f.Total.DeliveredRate()
	}
	asked := got.Flow("asks")
	rate -= asked.Total.DeliveredRate()
	return rate, asked.Requests.Latency.P50Us / 1e3, nil
}
