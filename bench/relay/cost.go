package relay

import (
	"context"
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
			Takes:  func(quick bool) time.Duration { return 2 * (length(quick) + 4*time.Second) },
			Run: func(ctx context.Context, r *bench.Run) error {
				t := throughput{paths: paths(path{500 * unit.Mbit, 10 * ms, 0})}
				perGbit := func(m method) (float64, error) {
					_, all, u, err := t.measure(ctx, m, r.Quick)
					if err != nil {
						return 0, err
					}
					return u.busiest / length(r.Quick).Seconds() / (all / 1e9), nil
				}
				theirs, err := perGbit(proxy)
				if err != nil {
					return err
				}
				mine, err := perGbit(relayed(bench.Ours, agentOptions{plain: c.plain}))
				if err != nil {
					return err
				}
				r.Sheet(bench.Ours).Set(id, mine/theirs)
				r.Sheet(proxy.name).Set(id, 1)
				r.Sheet(bench.Ours).Note(id, "%s processors per Gbit/s, the proxy %s; the relay has two agents, the proxy is one", bench.Number(mine), bench.Number(theirs))
				return nil
			},
		})
	}
	return out
}
