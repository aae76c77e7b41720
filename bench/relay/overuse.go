package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

var errNever = errors.New("the rate is not reached again")

// overUseCase is a path that begins with 100 streams, which are too many.
func overUseCase() bench.Case {
	const id = "over-use/600Mbit"
	c := throughput{paths: paths(path{600 * unit.Mbit, 25 * ms, 0})}
	fixed := []int{1, 2, 5, 10, 20, 100}
	settled := relayed(bench.Ours, agentOptions{path: "first_streams: 100"})
	long := func(quick bool) time.Duration { return bench.Pick(quick, 6*time.Second, 90*time.Second) }
	return bench.Case{
		Name: id,
		Claims: []bench.Claim{
			bench.NewClaim(id, "goodput from the 60th to the 90th second, begun with 100 streams, of the best fixed number's", most97).WithPaper(100 * 512.0 / 597),
			bench.NewClaim(id+"/streams", "streams at the end", counted),
		},
		Takes: func(quick bool) time.Duration {
			return long(quick) + time.Duration(bench.Pick(quick, 1, len(fixed)))*(length(quick)+4*time.Second)
		},
		Run: func(ctx context.Context, r *bench.Run) error {
			got, u, err := trial{paths: c.paths, method: settled, flows: []traffic.Flow{greedy("cubic")}, length: long(r.Quick)}.run(ctx)
			if err != nil {
				return err
			}
			mine := got.Flow("f").Between(long(r.Quick)*2/3, long(r.Quick)).DeliveredRate()
			best, of := 0.0, 0
			for _, n := range bench.Pick(r.Quick, []int{5}, fixed) {
				rate, _, _, err := c.measure(ctx, relayed("fixed", agentOptions{path: fmt.Sprintf("streams: %d", n)}), r.Quick)
				if err != nil {
					return err
				}
				if rate > best {
					best, of = rate, n
				}
			}
			sheet := r.Sheet(bench.Ours)
			sheet.Set(id, 100*mine/best)
			sheet.Set(id+"/streams", float64(u.streams))
			sheet.Note(id, "%s Mbit/s; %s with %d fixed streams", bench.Number(mine/1e6), bench.Number(best/1e6), of)
			return nil
		},
	}
}
