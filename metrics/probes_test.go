package metrics

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/tokenrate"
	"headgate.dev/headgate/unit"
)

// Estimates are exported with the ends of their intervals, a lower bound as the lower end, and unknown estimates
// not at all. A controller that is not the leader, or that cannot read the results, exports nothing.
func TestProbes(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_500)
	now := &ProbeState{Running: 2, Truncated: true, Spent: map[string]unit.Bytes{"h1": 3_000_000}, Newest: []Probe{
		{From: "h1", To: "h2", Measure: "tokenrate", At: at, LastAttempt: at, RTT: time.Millisecond, OwnLimit: unit.Gbit, Answer: &path.Answer{
			Lost: 0.25, TokenRate: &tokenrate.Result{Rate: probe.Estimate{Value: 1e8, Low: 9.9e7, High: 1.01e8}, Bucket: probe.NoEstimate("unknown")}}},
		{From: "h2", To: "h1", Measure: "capacity", At: at, LastAttempt: at.Add(time.Hour), Failed: true, Answer: &path.Answer{Capacity: &probe.Estimate{Value: 5e7, AtLeast: true}}},
		{From: "h2", To: "h3", Measure: "path", LastAttempt: at, Failed: true},
	}}
	var failure error
	c := NewProbes(func() (*ProbeState, error) { return now, failure })
	const want = `
# HELP headgate_probe_capacity_low_bits_per_second Lower end of the 90 % interval of the estimate.
# TYPE headgate_probe_capacity_low_bits_per_second gauge
headgate_probe_capacity_low_bits_per_second{from="h2",measure="capacity",to="h1"} 5e+07
# HELP headgate_probe_loss_ratio Fraction of the probe packets that were lost.
# TYPE headgate_probe_loss_ratio gauge
headgate_probe_loss_ratio{from="h1",measure="tokenrate",to="h2"} 0.25
headgate_probe_loss_ratio{from="h2",measure="capacity",to="h1"} 0
# HELP headgate_probe_last_completed_timestamp_seconds Time of the last completed measurement.
# TYPE headgate_probe_last_completed_timestamp_seconds gauge
headgate_probe_last_completed_timestamp_seconds{from="h1",measure="tokenrate",to="h2"} 1.8000000005e+09
headgate_probe_last_completed_timestamp_seconds{from="h2",measure="capacity",to="h1"} 1.8000000005e+09
# HELP headgate_probe_own_limit_bits_per_second Lowest limit that Headgate had at either end during the measurement, if there was one.
# TYPE headgate_probe_own_limit_bits_per_second gauge
headgate_probe_own_limit_bits_per_second{from="h1",measure="tokenrate",to="h2"} 1e+09
# HELP headgate_probe_round_trip_seconds Minimum round-trip time of the handshake.
# TYPE headgate_probe_round_trip_seconds gauge
headgate_probe_round_trip_seconds{from="h1",measure="tokenrate",to="h2"} 0.001
# HELP headgate_probe_running Number of running measurements.
# TYPE headgate_probe_running gauge
headgate_probe_running 2
# HELP headgate_probe_budget_spent_bytes Bytes that measurements have sent through the host today, of its daily budget.
# TYPE headgate_probe_budget_spent_bytes gauge
headgate_probe_budget_spent_bytes{host="h1"} 3e+06
# HELP headgate_probe_success 1 if the last attempt of the measurement was complete.
# TYPE headgate_probe_success gauge
headgate_probe_success{from="h1",measure="tokenrate",to="h2"} 1
headgate_probe_success{from="h2",measure="capacity",to="h1"} 0
headgate_probe_success{from="h2",measure="path",to="h3"} 0
# HELP headgate_probe_token_rate_bits_per_second Token rate of the path, in layer 2.
# TYPE headgate_probe_token_rate_bits_per_second gauge
headgate_probe_token_rate_bits_per_second{from="h1",measure="tokenrate",to="h2"} 1e+08
# HELP headgate_probe_token_rate_high_bits_per_second Upper end of the 90 % interval of the estimate.
# TYPE headgate_probe_token_rate_high_bits_per_second gauge
headgate_probe_token_rate_high_bits_per_second{from="h1",measure="tokenrate",to="h2"} 1.01e+08
# HELP headgate_probe_token_rate_low_bits_per_second Lower end of the 90 % interval of the estimate.
# TYPE headgate_probe_token_rate_low_bits_per_second gauge
headgate_probe_token_rate_low_bits_per_second{from="h1",measure="tokenrate",to="h2"} 9.9e+07
# HELP headgate_probe_last_attempt_timestamp_seconds Time of the last attempt.
# TYPE headgate_probe_last_attempt_timestamp_seconds gauge
headgate_probe_last_attempt_timestamp_seconds{from="h1",measure="tokenrate",to="h2"} 1.8000000005e+09
headgate_probe_last_attempt_timestamp_seconds{from="h2",measure="capacity",to="h1"} 1.8000036005e+09
headgate_probe_last_attempt_timestamp_seconds{from="h2",measure="path",to="h3"} 1.8000000005e+09
# HELP headgate_probe_results_truncated 1 if there are more results than the 2000 that are exported.
# TYPE headgate_probe_results_truncated gauge
headgate_probe_results_truncated 1
`
	if err := testutil.CollectAndCompare(c, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if now = nil; testutil.CollectAndCount(c) != 0 {
		t.Error("a controller that is not the leader exports metrics")
	}
	if failure = errors.New("store unavailable"); testutil.CollectAndCount(c) != 0 {
		t.Error("metrics are exported although the results cannot be read")
	}
}
