package metrics

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"headgate/probe"
	"headgate/probe/path"
	"headgate/probe/tokenrate"
	"headgate/unit"
)

// What was measured is told with its ends, a bound as its lower end, and what is not known not at all; nothing is
// told by who does not lead, or when it cannot be read.
func TestProbes(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_500)
	now := &Probing{Running: 2, LeftOut: true, Spent: map[string]unit.Bytes{"h1": 3_000_000}, Newest: []Probe{
		{From: "h1", To: "h2", Measure: "tokenrate", At: at, Tried: at, RTT: time.Millisecond, Own: unit.Gbit, Answer: &path.Answer{
			Lost: 0.25, TokenRate: &tokenrate.Result{Rate: probe.Estimate{Value: 1e8, Low: 9.9e7, High: 1.01e8}, Bucket: probe.CannotTell("nobody knows")}}},
		{From: "h2", To: "h1", Measure: "capacity", At: at, Tried: at.Add(time.Hour), Failed: true, Answer: &path.Answer{Capacity: &probe.Estimate{Value: 5e7, AtLeast: true}}},
		{From: "h2", To: "h3", Measure: "path", Tried: at, Failed: true},
	}}
	var failure error
	c := Probes(func() (*Probing, error) { return now, failure })
	const want = `
# HELP headgate_probe_capacity_low_bits_per_second Lower end of that, of 90 % of measurements.
# TYPE headgate_probe_capacity_low_bits_per_second gauge
headgate_probe_capacity_low_bits_per_second{from="h2",measure="capacity",to="h1"} 5e+07
# HELP headgate_probe_loss_ratio Part of its packets that did not arrive.
# TYPE headgate_probe_loss_ratio gauge
headgate_probe_loss_ratio{from="h1",measure="tokenrate",to="h2"} 0.25
headgate_probe_loss_ratio{from="h2",measure="capacity",to="h1"} 0
# HELP headgate_probe_measured_timestamp_seconds When it was measured.
# TYPE headgate_probe_measured_timestamp_seconds gauge
headgate_probe_measured_timestamp_seconds{from="h1",measure="tokenrate",to="h2"} 1.8000000005e+09
headgate_probe_measured_timestamp_seconds{from="h2",measure="capacity",to="h1"} 1.8000000005e+09
# HELP headgate_probe_own_limit_bits_per_second The least that Headgate let through at either end meanwhile, if it set a limit.
# TYPE headgate_probe_own_limit_bits_per_second gauge
headgate_probe_own_limit_bits_per_second{from="h1",measure="tokenrate",to="h2"} 1e+09
# HELP headgate_probe_round_trip_seconds Least round trip of the handshake.
# TYPE headgate_probe_round_trip_seconds gauge
headgate_probe_round_trip_seconds{from="h1",measure="tokenrate",to="h2"} 0.001
# HELP headgate_probe_running Measurements that are under way.
# TYPE headgate_probe_running gauge
headgate_probe_running 2
# HELP headgate_probe_spent_bytes What measurements have brought through the host today.
# TYPE headgate_probe_spent_bytes gauge
headgate_probe_spent_bytes{host="h1"} 3e+06
# HELP headgate_probe_success Whether it was measured to the end when it was tried last.
# TYPE headgate_probe_success gauge
headgate_probe_success{from="h1",measure="tokenrate",to="h2"} 1
headgate_probe_success{from="h2",measure="capacity",to="h1"} 0
headgate_probe_success{from="h2",measure="path",to="h3"} 0
# HELP headgate_probe_token_rate_bits_per_second Rate that a long transfer gets, of layer 2.
# TYPE headgate_probe_token_rate_bits_per_second gauge
headgate_probe_token_rate_bits_per_second{from="h1",measure="tokenrate",to="h2"} 1e+08
# HELP headgate_probe_token_rate_high_bits_per_second Upper end of that.
# TYPE headgate_probe_token_rate_high_bits_per_second gauge
headgate_probe_token_rate_high_bits_per_second{from="h1",measure="tokenrate",to="h2"} 1.01e+08
# HELP headgate_probe_token_rate_low_bits_per_second Lower end of that, of 90 % of measurements.
# TYPE headgate_probe_token_rate_low_bits_per_second gauge
headgate_probe_token_rate_low_bits_per_second{from="h1",measure="tokenrate",to="h2"} 9.9e+07
# HELP headgate_probe_tried_timestamp_seconds When it was tried last.
# TYPE headgate_probe_tried_timestamp_seconds gauge
headgate_probe_tried_timestamp_seconds{from="h1",measure="tokenrate",to="h2"} 1.8000000005e+09
headgate_probe_tried_timestamp_seconds{from="h2",measure="capacity",to="h1"} 1.8000036005e+09
headgate_probe_tried_timestamp_seconds{from="h2",measure="path",to="h3"} 1.8000000005e+09
# HELP headgate_probes_left_out Whether there are more than the 2000 that are told of.
# TYPE headgate_probes_left_out gauge
headgate_probes_left_out 1
`
	if err := testutil.CollectAndCompare(c, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if now = nil; testutil.CollectAndCount(c) != 0 {
		t.Error("who does not lead tells something")
	}
	if failure = errors.New("the store is away"); testutil.CollectAndCount(c) != 0 {
		t.Error("something is told that cannot be read")
	}
}
