package e2e

import (
	"encoding/json"
	"math"
	"path/filepath"
	"testing"
	"time"

	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/measure"
	"headgate.dev/headgate/unit"
)

// The size and period of a limiter's extra tokens, here every 4 s, are measured over a real path, and
// again from the log. On a link of 1 Gbit/s the extra tokens last for 9 ms, and busy machines that send and forward late cut them into pieces (in
// 10 attempts of two runs): here they last for 44 ms.
func TestProbeWatch(t *testing.T) {
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		const gift, every = 1_000_000, 4.0
		p := probeLab(t, link.Spec{Rate: 200 * unit.Mbit, Bucket: &link.Bucket{Rate: 20 * unit.Mbit, Size: 100_000, Gift: gift, GiftEvery: every * time.Second}}, link.Spec{Rate: unit.Gbit})
		log := filepath.Join(p.dir, "log")
		for _, args := range [][]string{
			{"probe", "limiter", "10.0.0.2", "--watch", "13s", "--direction", "out", "--log", log, "-o", "json", "--key-file", p.key()},
			{"probe", "replay", log, "-o", "json"},
		} {
			out, err := p.command(p.client, args...).Output()
			if err != nil {
				t.Fatalf("%v: %v\n%s", args, err, out)
			}
			var w measure.WatchReport
			if err := json.Unmarshal(out, &w); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			got := w.Directions[probe.Out]
			if got == nil || got.TokenGrants == nil || len(got.TokenGrants.At) < 2 {
				t.Fatalf("%v: no gifts: %s", args, out)
			}
			if g := got.TokenGrants; math.Abs(g.Size.Value/gift-1) > 0.05 || g.Every.Low > every || g.Every.High < every {
				t.Errorf("%v: %v every %v", args[:2], g.Size, g.Every)
			}
		}
	})
}
