package relay

import (
	"context"
	"errors"
	"time"

	"headgate.dev/headgate/bench"
)

// missingCases are rows of the table that this bench does not measure yet. They are printed as missing, and count as
// short.
func missingCases() (out []bench.Case) {
	direct := bench.Target{Op: ">=", Value: 100, Unit: "% of direct's"}
	var claims []bench.Claim
	for _, app := range []string{"curl", "rsync", "git", "iperf3", "websocket", "http2"} {
		claims = append(claims, bench.NewClaim("apps/"+app, "rate of the unmodified application", direct))
	}
	for _, c := range claims {
		out = append(out, bench.Case{
			Name: c.ID, Claims: []bench.Claim{c},
			Takes: func(bool) time.Duration { return 0 },
			Run:   func(context.Context, *bench.Run) error { return errors.New("not built yet") },
		})
	}
	return out
}
