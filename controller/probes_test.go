package controller

import (
	"fmt"
	"strings"
	"testing"

	"headgate/api"
	"headgate/api/agents"
)

// A measurement that an agent is not told of has failed, and so many are remembered, not more.
func TestProbesOfOneThatDoesNotListen(t *testing.T) {
	l := &link{host: "h1", out: make(chan *agents.ToAgent, 2*mostProbes)}
	v := view{&hub{links: map[string]*link{"h1": l}}}
	for n := range cap(l.out) {
		if err := v.Probe("h1", fmt.Sprint(n), api.ProbeRequest{Measure: "path"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.Probe("h1", "last", api.ProbeRequest{Measure: "path"}); err == nil {
		t.Error("an agent that does not listen measures")
	}
	if p, ok := v.Probed("h1", "last"); !ok || p.State != api.Failed || p.Error == nil || !strings.Contains(*p.Error, "does not listen") {
		t.Errorf("it is told of as %+v, %v", p, ok)
	}
	if _, ok := v.Probed("h1", "0"); ok || len(l.probes) != mostProbes {
		t.Errorf("%d measurements are remembered", len(l.probes))
	}
	l.probes.put(&agents.ProbeAnswer{Id: "0", State: "done"})
	if len(l.probes) != mostProbes {
		t.Error("one that was forgotten comes back")
	}
}
