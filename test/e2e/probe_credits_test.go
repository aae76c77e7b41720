package e2e

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/unit"
)

// The burst credits of a limiter, which a measurement of a path does not use up, are measured over a real path, and again from the log.
func TestProbeCredits(t *testing.T) {
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		const baseline, bucket = 30e6, 12e6
		p := probeLab(t, link.Spec{Rate: 200 * unit.Mbit, Bucket: &link.Bucket{Rate: baseline, Size: bucket}}, link.Spec{Rate: 200 * unit.Mbit})
		log := filepath.Join(p.dir, "log")
		for _, args := range [][]string{
			{"probe", "credits", "10.0.0.2", "--bytes", "80MB", "--direction", "out", "--log", log, "-o", "json", "--key-file", p.key()},
			{"probe", "replay", log, "-o", "json"},
		} {
			out, err := p.command(p.client, args...).Output()
			if err != nil {
				t.Fatalf("%v: %v\n%s", args, err, out)
			}
			var r path.Report
			if err := json.Unmarshal(out, &r); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			a := r.Directions[probe.Out]
			if a == nil || a.Credits == nil || !a.Credits.Baseline.Known() || a.Credits.Bucket.AtLeast || len(a.Credits.Found) != 2 {
				t.Errorf("%v: no credits: %s", args, out)
				return // it depends on the measurement, which labtest.Try repeats
			}
			if c := a.Credits; math.Abs(c.Baseline.Value/baseline-1) > 0.01 || math.Abs(c.Bucket.Value/bucket-1) > 0.03 || math.Abs(c.Burst.Value/200e6-1) > 0.02 || c.Held == 0 {
				t.Errorf("%v: %s, then %s after %s", args[:2], c.Burst.Format(probe.FormatRate), c.Baseline.Format(probe.FormatRate), c.Bucket.Format(probe.FormatBytes))
			}
			if a.TokenRate == nil || a.TokenRate.Rate != a.Credits.Baseline || a.TokenRate.Bucket != a.Credits.Bucket {
				t.Errorf("%v: the token rate is not the baseline: %s", args[:2], out)
			}
		}
		// In the table, and on a path without a limiter.
		out, err := p.command(p.client, "probe", "replay", log).Output()
		if err != nil || !strings.Contains(string(out), ", then 30.") || !strings.Contains(string(out), "fills in 3.") {
			t.Errorf("%v: %s", err, out)
		}
		out, err = p.command(p.client, "probe", "credits", "10.0.0.2", "--bytes", "6MB", "--direction", "in", "--capacity", "200Mbit", "--key-file", p.key()).Output()
		if err != nil || !strings.Contains(string(out), "no limiter below ") || !strings.Contains(string(out), "raise bytes or time for a larger bucket") {
			t.Errorf("%v: %s", err, out)
		}
	})
}
