package device

import (
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/config/diff"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/tokenrate"
	"headgate.dev/headgate/probe/tune"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// The output of a report is a valid configuration: all that is none is a comment.
func TestWrite(t *testing.T) {
	target := NewTarget("eth0")
	target.SetLimit(probe.Out, 99*unit.Mbit)
	document, _, err := target.Document()
	if err != nil {
		t.Fatal(err)
	}
	rate := probe.Estimate{Value: 1e8, Low: 99e6, High: 101e6}
	r := &Report{
		Dev: "eth0", Document: document,
		Measured: path.Report{Host: "a", RTT: 2 * time.Millisecond, Directions: map[probe.Direction]*path.Answer{
			probe.Out: {TokenRate: &tokenrate.Result{Rate: rate, Bucket: probe.NoEstimate("it was never empty")}},
		}},
		Proposals: map[probe.Direction]tune.Proposal{
			probe.Out: {Limit: 99 * unit.Mbit, Before: 50 * unit.Mbit, Notes: []string{"measured with a long train"}}, probe.In: {Cannot: "no packets"},
		},
		Steps:     []diff.Entry{{Dev: "eth0", Changes: []shaper.Change{{Verb: "add", Object: "out group all"}}}},
		Rechecked: map[probe.Direction]Recheck{probe.Out: {Sent: 104e6, Rate: 99e6, Lost: 0.05, QueueLoss: 0.05}},
	}
	var b strings.Builder
	if err := r.Write(&b); err != nil || r.Limits() != 1 {
		t.Fatalf("%d limits, %v", r.Limits(), err)
	}
	want := `# eth0 to a, round trip 2ms
# out: token rate 100.0Mbit (99.00Mbit to 101.0Mbit), bucket cannot estimate: it was never empty: limit 99Mbit (now 50Mbit)
# out: measured with a long train
# in: no limit is proposed: no packets
` + document + `# eth0: 1 change
#   add    out group all
# out, measured again: 99.00Mbit of 104.0Mbit received, 0.00 % lost on the path, 5.00 % in this host's queue
`
	if b.String() != want {
		t.Errorf("%s\nwant\n%s", b.String(), want)
	}
	if _, err := config.Parse("output", []byte(b.String())); err != nil {
		t.Error(err)
	}
}
