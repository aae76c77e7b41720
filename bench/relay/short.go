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
		times := func(quick bool) int { return bench.Pick(quick, 3, 15) }
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
	return append(out, besideCase())
}

// besideCase is the price of a relay's streams for others: short connections beside a greedy one.
func besideCase() bench.Case {
	const id = "short/10KB-beside-greedy"
	peers := []method{directCUBIC, directBBR}
	took := func(quick bool) time.Duration { return bench.Pick(quick, 4*time.Second, 30*time.Second) }
	return bench.Case{
		Name:   id,
		Claims: []bench.Claim{bench.NewClaim(id, "median time of 10 KB from the first SYN to the last byte, 500 Mbit/s, 20 ms", bench.Target{Op: bench.Measured, Unit: "ms"}, directCUBIC.name, directBBR.name)},
		Takes: func(quick bool) time.Duration {
			return time.Duration(bench.Pick(quick, 1, len(peers)+1)) * (took(quick) + 5*time.Second)
		},
		Alongside: slowBatch,
		Run: func(ctx context.Context, r *bench.Run) error {
			measure := func(m method) error {
				bulk, short := greedy(m.congestion), greedy(m.congestion)
				bulk.Name, short.Schedule = "bulk", nil
				short.DstPort++
				short.Transfer = &traffic.Transfer{Size: 10_000, Times: int(took(r.Quick)/(500*ms)) / 2, Pause: 500 * ms}
				got, _, err := trial{paths: paths(path{500 * unit.Mbit, 20 * ms, 0}), method: m, flows: []traffic.Flow{bulk, short}, length: took(r.Quick)}.run(ctx)
				if err != nil {
					return fmt.Errorf("%s: %w", m.name, err)
				}
				var all []float64
				for _, done := range got.Flow("f").Transfer.Completed {
					all = append(all, 1e3*done.Seconds)
				}
				if len(all) == 0 {
					return fmt.Errorf("%s: no transfer has ended", m.name)
				}
				sheet := r.Sheet(m.name)
				sheet.Set(id, bench.Median(all))
				if m.name == bench.Ours {
					sheet.Note(id, "beside %s Mbit/s", bench.Number(got.Flow("bulk").Total.DeliveredRate()/1e6))
				}
				return nil
			}
			if err := measure(ours); err != nil || r.Quick && !r.Few {
				return err
			}
			for _, m := range peers {
				if err := measure(m); err != nil {
					r.Sheet(m.name).Fail(err)
				}
			}
			return ctx.Err()
		},
	}
}
