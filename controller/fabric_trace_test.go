package controller

import (
	"strings"
	"testing"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
	"headgate.dev/headgate/fabric/trace"
)

// The answer to a trace has at most so many bytes of text, says that it is cut, and leads to no hop that it does not list.
func TestTraceText(t *testing.T) {
	topology, err := fabric.New(fabric.Parts{Switches: []fabric.Switch{{ID: 1, Ports: []fabric.Port{{No: 1}}}}})
	if err != nil {
		t.Fatal(err)
	}
	var all openflow.Actions
	for range 1000 {
		all = append(all, openflow.Output{Port: 1})
	}
	long := &openflow.FlowStats{Instructions: openflow.Instructions{openflow.ApplyActions{Actions: all}}}
	hop := trace.Hop{At: fabric.PortID{Switch: 1, Port: 1}, Frame: make([]byte, 60), Steps: []trace.Step{
		{Step: pipeline.Step{Kind: pipeline.Lookup, Flow: long}}, {Step: pipeline.Step{Kind: pipeline.Output, Port: 1}, End: trace.ToSwitch, Next: 3},
	}}
	whole := &trace.Trace{Topology: topology, Hops: []trace.Hop{hop, hop, hop, hop}}
	if got := traceOf(whole, maxTraceText); got.Cut != nil || len(got.Hops) != 4 || got.Hops[0].Steps[1].Next == nil {
		t.Errorf("a trace that fits is cut: %d hops, %v", len(got.Hops), got.Cut)
	}
	got := traceOf(whole, 50_000)
	size := 0
	for _, h := range got.Hops {
		size += len(h.Text) + len(h.Frame)
		for _, s := range h.Steps {
			size += len(s.Text) + len(textOf(s.Match)) + len(textOf(s.Instructions))
			if s.Next != nil || s.Port != nil && *s.End != api.EndLimit {
				t.Errorf("a step leads to a hop that is not listed: %+v", s)
			}
		}
	}
	if last := got.Hops[len(got.Hops)-1]; got.Cut == nil || !strings.Contains(*got.Cut, "the trace is cut") || size > 50_000 || size < 10_000 || last.Error == nil {
		t.Errorf("%d hops with %d bytes of text, the last one ends with %v, cut: %v", len(got.Hops), size, last.Error, got.Cut)
	}
	whole.Cut = "4096 hops"
	if got := traceOf(whole, maxTraceText); got.Cut == nil || *got.Cut != "the trace is cut: it has 4096 hops, the maximum" {
		t.Errorf("cut: %v", got.Cut)
	}
}
