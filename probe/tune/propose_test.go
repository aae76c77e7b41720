package tune_test

import (
	"fmt"
	"strings"
	"testing"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/credits"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/tokenrate"
	"headgate.dev/headgate/probe/tune"
	"headgate.dev/headgate/shaper/htb"
	"headgate.dev/headgate/unit"
)

// The proposed limit is below the confidence interval of the token rate. Without an estimate
// nothing is proposed.
func TestPropose(t *testing.T) {
	rate := func(e probe.Estimate) *path.Answer {
		return &path.Answer{TokenRate: &tokenrate.Result{Rate: e, Bucket: probe.Estimate{Value: 5e6}}}
	}
	joint := rate(probe.NoEstimate("the train met no limit"))
	joint.TokenRate.Joint = &tokenrate.Joint{Rate: 9.5e8, Bytes: 3_000_000, Took: 0.1}
	carried := rate(probe.Estimate{Value: 9.4e8, Low: 9.4e8, AtLeast: true, Because: "the train met no limit"})
	carried.TokenRate.Joint = joint.TokenRate.Joint
	tiny := rate(probe.Estimate{Value: 5e8, Low: 4.99e8, High: 5.01e8})
	tiny.TokenRate.Bucket = probe.Estimate{Value: 1600}
	burst := rate(probe.Estimate{Value: 7.5e8, Low: 7.5e8, High: 7.5e8})
	burst.TokenRate.Bucket = probe.Estimate{Value: 3e7}
	burst.Credits = &credits.Result{Burst: probe.Estimate{Value: 5e9}, Baseline: burst.TokenRate.Rate, Bucket: burst.TokenRate.Bucket}
	for name, c := range map[string]struct {
		a       *path.Answer
		inForce unit.Rate
		limit   unit.Rate
		cannot  string // or a note
	}{
		"known":               {rate(probe.Estimate{Value: 5e8, Low: 4.99e8, High: 5.01e8}), 0, 494 * unit.Mbit, ""},
		"without an interval": {rate(probe.Estimate{Value: 1e8}), 0, 99 * unit.Mbit, ""},
		"four digits, down":   {rate(probe.Estimate{Value: 123_456_789, Low: 123_456_789, High: 123_456_789}), 0, 122_200 * unit.Kbit, ""},
		"wide":                {rate(probe.Estimate{Value: 1e8, Low: 8e7, High: 1.2e8}), 0, 79_200 * unit.Kbit, "from 80.00Mbit to 120.0Mbit"},
		"a tiny bucket":       {tiny, 0, 494 * unit.Mbit, "is smaller than Headgate's burst of 37.2kB"},
		"burst credits":       {burst, 0, 742_500 * unit.Kbit, "after it was idle for 320ms the path has 5.000Gbit for 56ms"},
		"no limit":            {joint, 0, 0, "at least 950.0Mbit, or a bucket that 3MB do not empty: write --bytes 400MB"},
		"a bound alone":       {carried, 0, 0, "cannot estimate the token rate: the train met no limit. The path has at least 950.0Mbit"},
		"others":              {rate(probe.Estimate{Value: 5e8, Low: 5e8, AtLeast: true}), 0, 0, "cross traffic"},
		"not measured":        {nil, 0, 0, "not measured"},
		"capacity alone":      {&path.Answer{}, 0, 0, "was not measured"},
		"our own":             {rate(probe.Estimate{Value: 4.95e8, Low: 4.94e8, High: 4.96e8}), 495 * unit.Mbit, 0, `"headgate clear --dev eth0"`},
		"our own, no limit":   {joint, 960 * unit.Mbit, 0, `"headgate clear --dev eth0"`},
		"below our own":       {rate(probe.Estimate{Value: 1e8, Low: 1e8, High: 1e8}), 495 * unit.Mbit, 99 * unit.Mbit, ""},
	} {
		p := tune.Direction{
			Dev: "eth0", DeviceLimit: c.inForce, Margin: tune.Margin, Bytes: tune.Budget,
			Burst:            func(limit unit.Rate) unit.Bytes { return htb.Burst(limit, 1500) },
			WithoutLimitHint: `run "headgate clear --dev eth0"`,
			LargerBudgetHint: func(bytes unit.Bytes) string { return fmt.Sprintf("write --bytes %s", bytes) },
		}.Propose(c.a)
		said := p.Cannot + strings.Join(p.Notes, " ")
		if p.Limit != c.limit || (p.Cannot == "") != (c.limit > 0) || !strings.Contains(said, c.cannot) || c.cannot == "" && said != "" {
			t.Errorf("%s: %+v, want %v with %q", name, p, c.limit, c.cannot)
		}
	}
}
