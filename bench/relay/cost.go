package relay

import (
	"context"
	"slices"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/unit"
)

// costCases are the processor time of the agents and of a splitting proxy for the same bytes.
func costCases() (out []bench.Case) {
	for _, c := range []struct {
		name   string
		plain  bool
		target bench.Target
	}{{"unencrypted", true, cpu}, {"encrypted", false, cpuTLS}} {
		id := "cost/" + c.name
		out = append(out, bench.Case{
			Name:   id,
			Claims: []bench.Claim{bench.NewClaim(id, "processor time of the busier agent per byte", c.target, proxy.name)},
			Takes: func(quick bool) time.Duration {
				return time.Duration(bench.Pick(quick, 2, 3)) * (length(quick) + 4*time.Second)
			},
			Run: func(ctx context.Context, r *bench.Run) error {
				t := throughput{paths: paths(path{500 * unit.Mbit, 10 * ms, 0})}
				// perGbit returns the processors that each process needs for 1 Gbit/s.
				perGbit := func(m method) (each []float64, err error) {
					_, all, u, err := t.measure(ctx, m, r.Quick)
					for _, seconds := range u.each {
						each = append(each, seconds/length(r.Quick).Seconds()/(all/1e9))
					}
					return each, err
				}
				theirs, err := perGbit(proxy)
				if err != nil {
					return err
				}
				mine, err := perGbit(relayed(bench.Ours, agentOptions{plain: c.plain})) // the exit, then the entry
				if err != nil {
					return err
				}
				r.Sheet(bench.Ours).Set(id, slices.Max(mine)/theirs[0])
				r.Sheet(proxy.name).Set(id, 1)
				r.Sheet(bench.Ours).Note(id, "processors per Gbit/s: the exit %s, the entry %s, the proxy, which is at the entry, %s", bench.Number(mine[0]), bench.Number(mine[1]), bench.Number(theirs[0]))
				if !r.Quick {
					// What arrives from a path comes in small pieces, which costs a proxy at the exit several times as much.
					there, err := perGbit(exitProxy)
					if err != nil {
						return err
					}
					r.Sheet(bench.Ours).Note(id, "a proxy at the exit instead: %s", bench.Number(there[0]))
				}
				return nil
			},
		})
	}
	return out
}
