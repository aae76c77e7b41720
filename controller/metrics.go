package controller

import (
	"context"
	"encoding/json"
	"time"

	"headgate/metrics"
	"headgate/probe/path"
	"headgate/store"
	"headgate/unit"
)

// toldWithin is how long Prometheus waits for results of measurements. Ours: it gives all of an answer 10 s.
const toldWithin = 5 * time.Second

// probing is what the schedule has brought, for metrics; nil if another controller leads, and tells of it.
func (c *Controller) probing() (*metrics.Probing, error) {
	if !c.leader() {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), toldWithin)
	defer cancel()
	docs, more, _, err := c.store.List(ctx, store.Prefix(store.Newest), "", metrics.MostProbes)
	if err != nil {
		return nil, err
	}
	out := &metrics.Probing{LeftOut: more, Spent: map[string]unit.Bytes{}}
	for _, d := range docs {
		var r store.ProbeResult
		if err := d.Into(&r); err != nil {
			return nil, err
		}
		p := metrics.Probe{From: r.From, To: r.To, Measure: r.Measure, At: r.At, Tried: r.Tried, Failed: r.Trouble != "", RTT: r.RTT, Own: r.Own}
		// What another version answered may be of another form, and is not told then.
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
