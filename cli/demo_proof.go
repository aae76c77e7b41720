package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"headgate/api"
)

// usageRow is an agent's usage record of a group over the whole demo, with the bytes received
// at the other end.
type usageRow struct {
	Tenant     string `json:"tenant"`
	Host       string `json:"host"`
	Direction  string `json:"direction"`
	Group      string `json:"group"`
	Guaranteed int64  `json:"guaranteed_bytes"`
	Borrowed   int64  `json:"borrowed_bytes"`
	Lent       int64  `json:"lent_bytes"`
	Delivered  int64  `json:"delivered_bytes"`
	Received   int64  `json:"received_bytes"`
	// Unmet counts the seconds with a backlog in which the guarantee was not met.
	Unmet int64 `json:"unmet_seconds"`
}

// recorded is the delay after the end of the traffic until its last second is in the usage record:
// agents read the counters once a second.
const recorded = 1200 * time.Millisecond

// queryUsage queries, as each tenant, the usage records of its groups.
func (p *play) queryUsage(ctx context.Context, r *demoResult) error {
	if !sleepUntil(ctx, time.Now().Add(recorded)) {
		return ctx.Err()
	}
	p.stage.say("", "The agents' usage records, queried by each tenant:", "")
	for _, tenant := range demoTenants {
		text, err := p.headgate(ctx, demoController, "report", "--server", tenant, "--since", "10m", "-o", "json")
		if err != nil {
			return err
		}
		var list api.UsageList
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return fmt.Errorf("cannot parse the usage records of %s: %w", tenant, err)
		}
		slices.SortStableFunc(list.Items, func(a, b api.Usage) int { // "out" before "in"
			return cmp.Or(cmp.Compare(a.Host, b.Host), -cmp.Compare(a.Direction, b.Direction))
		})
		for _, u := range list.Items {
			r.Usage = append(r.Usage, usageRow{
				Tenant: tenant, Host: u.Host, Direction: u.Direction, Group: u.Group,
				Guaranteed: orNone(u.GuaranteedBytes), Borrowed: orNone(u.BorrowedBytes), Lent: orNone(u.LentBytes),
				Delivered: orNone(u.DeliveredBytes), Received: p.receivedAt(demoPlace{u.Host, u.Direction, u.Group}), Unmet: orNone(u.UnmetSeconds),
			})
		}
	}
	return nil
}

// receivedAt returns the bytes of a group that were received at the other end.
func (p *play) receivedAt(at demoPlace) (sum int64) {
	for i, phase := range p.phases {
		sum += int64(p.arrivals(i, at).Rate(phase.at, phase.at+phase.length) * phase.length.Seconds() / 8)
	}
	return sum
}

// writeProof prints the usage records.
func (r *demoResult) writeProof(b *strings.Builder) {
	if len(r.Usage) == 0 {
		return
	}
	b.WriteString(`
Usage records of the agents ("headgate report"), in MB, and what was received
at the other ends, over all phases.
  GUAR   guaranteed over that time    BORROWED, LENT   above it, unused of it
  UNMET  seconds with a backlog in which the guarantee was not met

`)
	const line = "  %-7s%-6s%-18s%7s%9s%6s%10s%9s%6s\n"
	fmt.Fprintf(b, line, "TENANT", "HOST", "GROUP", "GUAR", "BORROWED", "LENT", "DELIVERED", "RECEIVED", "UNMET")
	mb := func(bytes int64) string { return fmt.Sprintf("%.1f", float64(bytes)/1e6) }
	for _, u := range r.Usage {
		fmt.Fprintf(b, line, u.Tenant, u.Host, u.Direction+" "+u.Group, mb(u.Guaranteed), mb(u.Borrowed), mb(u.Lent), mb(u.Delivered), mb(u.Received), fmt.Sprintf("%ds", u.Unmet))
	}
}
