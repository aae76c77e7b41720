package report

import (
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/internal/golden"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/compare"
	"headgate.dev/headgate/probe/limiter"
	"headgate.dev/headgate/probe/measure"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/tokenrate"
)

// TestWrite: a table has the rows that some direction has, and what is missing is left out.
func TestWrite(t *testing.T) {
	rate := func(v float64) probe.Estimate { return probe.Estimate{Value: v, Low: 0.9 * v, High: 1.1 * v} }
	capacity := rate(1e9)
	var b strings.Builder
	write := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		b.WriteByte('\n')
	}
	answer := &path.Answer{
		Capacity: &capacity, TokenRate: &tokenrate.Result{Rate: rate(1e8), Bucket: probe.NoEstimate("it was never empty"), Held: 1_500_000, HeldSeconds: 0.12},
		Limiter: &limiter.Result{Class: limiter.Scheduling}, LayerThree: 0.99, Lost: 0.01, Flaws: []string{"2 packets reordered"}, Bytes: 10_000_000, Seconds: 2.5,
	}
	write(Write(&b, &path.Report{Host: "a", RTT: 2 * time.Millisecond, Directions: map[probe.Direction]*path.Answer{probe.Out: answer, probe.In: {Bytes: 1000}}}))
	unlimited := &tokenrate.Result{Rate: probe.NoEstimate("the train found no limit"), Bucket: probe.NoEstimate("the train found no limit"), Joint: &tokenrate.Joint{Rate: 1e9, Bytes: 2_500_000, Took: 0.02}}
	write(Write(&b, &path.Report{Host: "b", Directions: map[probe.Direction]*path.Answer{probe.Out: {TokenRate: unlimited, Bytes: 1000}}}))
	write(WriteWatch(&b, &measure.WatchReport{Host: "a", Directions: map[probe.Direction]*limiter.WatchResult{probe.In: {Cannot: "no packets"}}}))
	write(WriteComparisons(&b, []measure.Comparison{
		{First: "a", Second: "b", Result: compare.Result{Ratio: rate(2)}, Bytes: 1000, Seconds: 1}, {First: "a", Second: "c", Result: compare.Result{Ratio: rate(4), Notes: []string{"few samples"}}},
		{First: "b", Second: "c", Result: compare.Result{Ratio: rate(2)}},
	}))
	b.WriteString(Line(answer, "tokenrate") + "\n" + Line(&path.Answer{Capacity: &capacity}, "capacity") + "\n")
	golden.Compare(t, "testdata/report.txt", b.String())
}
