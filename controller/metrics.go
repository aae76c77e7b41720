package controller

import (
	"context"
	"encoding/json"
	"time"

	"headgate/metrics"
	"headgate/probe/path"
	"headgate/probe/schedule"
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
	docs, more, at, err := c.store.List(ctx, store.Prefix(store.Newest), "", metrics.MostProbes)
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
	runs, err := c.store.Keys(ctx, store.Prefix(store.Probing, "runs"))
	if err != nil {
		return nil, err
	}
	out.Running = len(runs)
	doc, there, err := c.store.Get(ctx, store.ScheduleKey, at)
	if err != nil || !there {
		return out, err
	}
	var s schedule.Schedule
	if err := doc.Into(&s); err != nil {
		return nil, err
	}
	ledgers, _, err := c.store.All(ctx, store.Prefix(store.Probing, "spent"), at)
	for _, d := range ledgers {
		var l schedule.Ledger
		if err := d.Into(&l); err != nil {
			return nil, err
		}
		_, name := store.Name(d.Key)
		out.Spent[name[len(name)-1]] = l.On(s.Day(time.Now()))
	}
	return out, err
}
