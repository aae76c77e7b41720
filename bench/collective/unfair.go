package collective

import (
	"context"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/unit"
)

// unfairCases are the five members besides 20 greedy connections outside of the set.
func unfairCases() (out []bench.Case) {
	for _, control := range []string{"cubic", "reno"} {
		c := fastCase{rate: 100 * unit.Mbit, rtt: 20 * time.Millisecond, control: control, queue: "droptail", rivals: 20}
		id := "unfair/" + control
		measured := bench.Case{
			Name: id,
			Claims: []bench.Claim{
				bench.NewClaim(id, "goodput of all five", aggregate, seed),
				bench.NewClaim(id+"/proportion", "largest deviation of a member from its proportion", measuredPercent, plain, seed),
			},
			Takes: func(quick bool) time.Duration {
				c.quick = quick
				return c.takes(laws)
			},
			Run: func(ctx context.Context, r *bench.Run) error {
				c.quick = r.Quick
				all, err := c.runAll(ctx, laws)
				if err != nil {
					return err
				}
				without, _ := proportion(all[plain], fiveShares)
				for law, got := range all {
					sum, worst := proportion(got, fiveShares)
					sheet := r.Sheet(law)
					sheet.Set(id+"/proportion", 100*worst)
					sheet.Note(id+"/proportion", "%s: %s Mbit/s", law, mbits(got))
					if law != plain {
						sheet.Set(id, 100*sum/without)
					}
				}
				return nil
			},
		}
		if control == "reno" {
			measured = unsmoked(measured)
		}
		out = append(out, measured)
	}
	return out
}
