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

// proofRow is what an agent has on record of a group, over the whole demo, beside what
// arrived at the other end.
type proofRow struct {
	Tenant     string `json:"tenant"`
	Host       string `json:"host"`
	Direction  string `json:"direction"`
	Group      string `json:"group"`
	Guaranteed int64  `json:"guaranteed_bytes"`
	Borrowed   int64  `json:"borrowed_bytes"`
	Lent       int64  `json:"lent_bytes"`
	Delivered  int64  `json:"delivered_bytes"`
	Received   int64  `json:"received_bytes"`
	// Unmet are the seconds in which packets waited and the guarantee was not met.
	Unmet int64 `json:"unmet_seconds"`
}

// recorded is how long after the traffic's end its last second is on record: agents read
// once a second.
const recorded = 1200 * time.Millisecond

// prove asks, as each tenant, for what is on record of its groups.
func (p *play) prove(ctx context.Context, r *demoResult) error {
	if !sleepUntil(ctx, time.Now().Add(recorded)) {
		return ctx.Err()
	}
	p.stage.say("", "What the agents have on record, as each tenant is told:", "")
	for _, tenant := range demoTenants {
		text, err := p.headgate(ctx, demoController, "report", "--server", tenant, "--since", "10m", "-o", "json")
		if err != nil {
			return err
		}
		var list api.UsageList
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return fmt.Errorf("what headgate report says of %s cannot be read: %w", tenant, err)
		}
		slices.SortStableFunc(list.Items, func(a, b api.Usage) int { // "out" before "in", as everywhere
			return cmp.Or(cmp.Compare(a.Host, b.Host), -cmp.Compare(a.Direction, b.Direction))
		})
		for _, u := range list.Items {
			r.Proof = append(r.Proof, proofRow{
				Tenant: tenant, Host: u.Host, Direction: u.Direction, Group: u.Group,
				Guaranteed: orNone(u.GuaranteedBytes), Borrowed: orNone(u.BorrowedBytes), Lent: orNone(u.LentBytes),
				Delivered: orNone(u.DeliveredBytes), Received: p.receivedAt(demoPlace{u.Host, u.Direction, u.Group}), Unmet: orNone(u.UnmetSeconds),
			})
		}
	}
	return nil
}

// receivedAt is all that has arrived of a group, in bytes.
func (p *play) receivedAt(at demoPlace) (sum int64) {
	for i, phase := range p.phases {
		sum += int64(p.arrivals(i, at).Rate(phase.at, phase.at+phase.length) * phase.length.Seconds() / 8)
	}
	return sum
}

// writeProof prints what is on record.
func (r *demoResult) writeProof(b *strings.Builder) {
	if len(r.Proof) == 0 {
		return
	}
	b.WriteString(`
Proof of delivery, in MB: what the agents have on record ("headgate report"),
beside what was received at the other ends, of all phases together.
  GUAR   guaranteed over that time    BORROWED, LENT   beyond it, and left of it
  UNMET  seconds in which packets waited and the guarantee was not met

`)
	const line = "  %-7s%-6s%-18s%7s%9s%6s%10s%9s%6s\n"
	fmt.Fprintf(b, line, "TENANT", "HOST", "GROUP", "GUAR", "BORROWED", "LENT", "DELIVERED", "RECEIVED", "UNMET")
	mb := func(bytes int64) string { return fmt.Sprintf("%.1f", float64(bytes)/1e6) }
	for _, u := range r.Proof {
		fmt.Fprintf(b, line, u.Tenant, u.Host, u.Direction+" "+u.Group, mb(u.Guaranteed), mb(u.Borrowed), mb(u.Lent), mb(u.Delivered), mb(u.Received), fmt.Sprintf("%ds", u.Unmet))
	}
}
