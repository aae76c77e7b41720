package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"headgate.dev/headgate/demo/scenario"
	"headgate.dev/headgate/internal/sleep"
)

// recorded is the delay after the end of the traffic until its last second is in the usage record:
// agents read the counters once a second.
const recorded = 1200 * time.Millisecond

// queryUsage queries, as each tenant, the usage records of its groups.
func (p *play) queryUsage(ctx context.Context, r *Result) error {
	if !sleep.Until(ctx, time.Now().Add(recorded)) {
		return ctx.Err()
	}
	p.stage.say("", "The agents' usage records, queried by each tenant:", "")
	for _, tenant := range scenario.Tenants {
		text, err := p.headgate(ctx, scenario.Controller, "report", "--server", tenant, "--since", "10m", "-o", "json")
		if err != nil {
			return err
		}
		var list struct{ Items []Usage }
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return fmt.Errorf("cannot parse the usage records of %s: %w", tenant, err)
		}
		slices.SortStableFunc(list.Items, func(a, b Usage) int { // "out" before "in"
			return cmp.Or(cmp.Compare(a.Host, b.Host), -cmp.Compare(a.Direction, b.Direction))
		})
		for _, u := range list.Items {
			u.Tenant, u.Received = tenant, p.receivedAt(scenario.Place{Host: u.Host, Direction: u.Direction, Group: u.Group})
			r.Usage = append(r.Usage, u)
		}
	}
	return nil
}

// receivedAt returns the bytes of a group that were received at the other end.
func (p *play) receivedAt(at scenario.Place) (sum int64) {
	for i, phase := range p.scenario.Phases {
		sum += int64(p.arrivals(i, at).Rate(phase.At, phase.At+phase.Length) * phase.Length.Seconds() / 8)
	}
	return sum
}
