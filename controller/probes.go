package controller

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"headgate.dev/headgate/api/agents"
	api "headgate.dev/headgate/api/client"
)

// maxProbes is how many measurements of a host are remembered.
const maxProbes = 64

// probes are the measurements requested from a host, newest last.
type probes []*agents.ProbeAnswer

func (all probes) find(id string) int {
	return slices.IndexFunc(all, func(a *agents.ProbeAnswer) bool { return a.Id == id })
}

// updateProbe updates the state of a measurement, and reports whether the measurement has ended. It ignores a
// measurement that is no longer remembered. l.mu must be held.
func (l *link) updateProbe(a *agents.ProbeAnswer) (ended bool) {
	if n := l.probes.find(a.Id); n >= 0 {
		l.probes[n] = a
	}
	return a.State == "done" || a.State == "failed"
}

func (v view) Probe(host, id string, r api.ProbeRequest) error {
	l := v.hub.link(host)
	if l == nil {
		return fmt.Errorf("the agent of %s is not connected", host)
	}
	l.mu.Lock()
	l.probes = append(l.probes, &agents.ProbeAnswer{Id: id, State: "waiting"})
	l.probes = slices.Delete(l.probes, 0, max(len(l.probes)-maxProbes, 0))
	l.mu.Unlock()
	m, end := l.begin(&agents.ProbeQuery{Id: id, Measure: string(r.Measure), Peer: r.Peer}, func(m *agents.FromAgent) bool {
		a, ok := agents.Carried(m).(*agents.ProbeAnswer)
		if !ok {
			a = &agents.ProbeAnswer{Id: id, State: "failed", Error: m.Error}
		}
		return l.updateProbe(a)
	})
	select {
	case l.out <- m:
		return nil
	case <-time.After(time.Second):
		end()
		err := fmt.Errorf("cannot send the request to the agent of %s: its queue is full", host)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.updateProbe(&agents.ProbeAnswer{Id: id, State: "failed", Error: err.Error()})
		return err
	}
}

func (v view) ProbeResult(host, id string) (out api.Probe, ok bool) {
	l := v.hub.link(host)
	if l == nil {
		return out, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.probes.find(id)
	if n < 0 {
		return out, false
	}
	p := l.probes[n]
	out = api.Probe{Id: id, State: api.ProbeState(p.State)}
	if p.Error != "" {
		out.Error = &p.Error
	}
	if len(p.Result) > 0 {
		var result map[string]any
		if json.Unmarshal(p.Result, &result) == nil {
			out.Result = &result
		}
	}
	return out, true
}
