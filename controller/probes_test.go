package controller

import (
	"fmt"
	"strings"
	"testing"

	"headgate.dev/headgate/api/agents"
	api "headgate.dev/headgate/api/client"
)

// A measurement whose request cannot be sent to the agent fails, and the number of remembered
// measurements is limited.
func TestProbesOfOneThatDoesNotListen(t *testing.T) {
	l := &link{host: "h1", out: make(chan *agents.ToAgent, 2*maxProbes), queries: map[uint64]openQuery{}}
	v := view{&hub{links: map[string]*link{"h1": l}}}
	for n := range cap(l.out) {
		if err := v.Probe("h1", fmt.Sprint(n), api.ProbeRequest{Measure: "path"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.Probe("h1", "last", api.ProbeRequest{Measure: "path"}); err == nil {
		t.Error("a request is accepted while the queue is full")
	}
	if p, ok := v.ProbeResult("h1", "last"); !ok || p.State != api.Failed || p.Error == nil || !strings.Contains(*p.Error, "queue is full") {
		t.Errorf("the measurement is %+v, %v", p, ok)
	}
	if _, ok := v.ProbeResult("h1", "0"); ok || len(l.probes) != maxProbes {
		t.Errorf("%d measurements are remembered", len(l.probes))
	}
	l.updateProbe(&agents.ProbeAnswer{Id: "0", State: "done"})
	if len(l.probes) != maxProbes {
		t.Error("a forgotten measurement is remembered again")
	}
}
