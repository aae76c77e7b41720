package relay

import (
	"context"
	"fmt"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// shortCases are transfers over new connections, with streams that are open.
func shortCases() (out []bench.Case) {
	for _, c := range []struct {
		name string
		size unit.Bytes
	}{{"10KB", 10_000}, {"1MB", 1_000_000}, {"10MB", 10_000_000}} {
		id := "short/" + c.name
		claims := []bench.Claim{bench.NewClaim(id+"/above", "median time from the first SYN to the last byte, above direct CUBIC's", above)}
		if c.size >= 1_000_000 {
			claims = append(claims, bench.NewClaim(id+"/part", "median time, of direct CUBIC's", part75))
		}
		times := func(quick bool) int { return pick(quick, 3, 15) }
		out = append(out, bench.Case{
			Name: id, Claims: claims, Alongside: slowBatch,
			Takes: func(quick bool) time.Duration { return 2 * (4*time.Second + time.Duration(times(quick))*time.Second) },
			Run: func(ctx context.Context, r *bench.Run) error {
				median := func(m method) (float64, error) {
					flow := greedy(m.congestion)
					flow.Schedule = nil
					flow.Transfer = &traffic.Transfer{Size: c.size, Times: times(r.Quick), Pause: 500 * ms}
					got, _, err := trial{paths: paths(path{unit.Gbit, 100 * ms, 0}), method: m, flows: []traffic.Flow{flow}}.run(ctx)
					if err != nil {
						return 0, fmt.Errorf("%s: %w", m.name, err)
					}
					var all []float64
					for _, done := range got.Flow("f").Transfer.Completed {
						all = append(all, done.Seconds)
					}
					if len(all) != times(r.Quick) {
						return 0, fmt.Errorf("%s: %d of %d transfers have ended", m.name, len(all), times(r.Quick))
					}
					return bench.Median(all), nil
				}
				direct, err := median(directCUBIC)
				if err != nil {
					return err
				}
				mine, err := median(ours)
				if err != nil {
					return err
				}
				sheet := r.Sheet(bench.Ours)
				sheet.Set(id+"/above", 1e3*(mine-direct))
				if c.size >= 1_000_000 {
					sheet.Set(id+"/part", mine/direct)
				}
				sheet.Note(id+"/above", "%s ms, direct %s ms", bench.Number(1e3*mine), bench.Number(1e3*direct))
				return nil
			},
		})
	}
	return out
}
