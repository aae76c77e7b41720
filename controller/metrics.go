package controller

import (
	"context"
	"encoding/json"
	"time"

	"headgate.dev/headgate/metrics"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/unit"
)

// metricsTimeout is the timeout for reading measurement results for a Prometheus scrape, whose default
// timeout is 10 s. The value is chosen for Headgate.
const metricsTimeout = 5 * time.Second

// probeMetrics returns the results of scheduled measurements for metrics. It returns nil on a controller
// that is not the leader, because the leader exports them.
func (c *Controller) probeMetrics() (*metrics.ProbeState, error) {
	if !c.isLeader() {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), metricsTimeout)
	defer cancel()
	docs, more, _, err := c.store.List(ctx, store.Prefix(store.Newest), "", metrics.MaxProbes)
	if err != nil {
		return nil, err
	}
	out := &metrics.ProbeState{Truncated: more, Spent: map[string]unit.Bytes{}}
	for _, d := range docs {
		var r store.ProbeResult
		if err := d.Into(&r); err != nil {
			return nil, err
		}
		p := metrics.Probe{From: r.From, To: r.To, Measure: r.Measure, At: r.At, LastAttempt: r.Attempted, Failed: r.Error != "", RTT: r.RTT, OwnLimit: r.OwnLimit}
		// Another version of Headgate may have stored the answer in another format; then the answer is left out.
		if a := new(path.Answer); r.Answer != nil && json.Unmarshal(r.Answer, a) == nil {
			p.Answer = a
		}
		out.Newest = append(out.Newest, p)
	}
	now, _ := c.cache.measurements()
	out.Running = len(now.runs)
	if now.schedule != nil {
		today := now.schedule.Day(time.Now())
		for host, l := range now.spent {
			out.Spent[host] = l.On(today)
		}
	}
	return out, nil
}

// networkMetrics returns what this controller knows of the switches, nil if it accepts none.
func (c *Controller) networkMetrics() *metrics.Network {
	if len(c.switches.Listeners()) == 0 {
		return nil
	}
	n := c.switches.Live()
	if n == nil || !c.isLeader() {
		return &metrics.Network{}
	}
	return &metrics.Network{Leads: true, Status: c.networkStatus(n)}
}
