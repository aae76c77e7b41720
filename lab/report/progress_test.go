package report

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// TestProgress checks the lines and the frame of samples of a run with a flow and an event.
func TestProgress(t *testing.T) {
	top := &lab.Topology{
		Name: "demo", Duration: 10 * time.Second,
		Links: []lab.LinkSpec{{Ends: [2]string{"a", "b"}}}, Flows: []traffic.Flow{{Name: "bulk", From: "a", To: "b"}},
	}
	flow := traffic.FlowInterval{Name: "bulk"}
	flow.Seconds, flow.OfferedL2Bits, flow.DeliveredL2Bits, flow.Retransmits = 1, 10e6, float64(9*unit.Mbit), 2
	link := lab.LinkSample{Name: "a-b"}
	link.Forward.Seconds, link.Forward.Bytes = 1, 9e6/8
	sample := lab.Sample{Seconds: 1, Flows: []traffic.FlowInterval{flow}, Links: []lab.LinkSample{link}}
	var b strings.Builder
	print := Progress(&b, top)
	print(sample)
	sample.Seconds, sample.Events = 2, []lab.EventResult{{HappenedSeconds: 1.5, What: "stop bulk"}}
	print(sample)
	print(lab.Sample{Seconds: 3, Flows: sample.Flows, Events: sample.Events})
	if got, want := b.String(), "seconds         bulk\n    1.0     9.00Mbit\n    1.5 stop bulk\n    2.0     9.00Mbit\n    3.0     9.00Mbit\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	want := Frame{
		Lab: "demo", Seconds: 2, Length: 10, Events: []string{"1.5 s, stop bulk"},
		Flows: []Flow{{Name: "bulk", Direction: "a > b", Offered: 10e6, Delivered: 9e6, Lost: 2}},
		Links: []Link{{Name: "a-b", Way: "a > b", Rate: 9e6}, {Name: "a-b", Way: "b > a"}},
	}
	if got := NewFrame(top, sample); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
