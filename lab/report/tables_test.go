package report

import (
	"bytes"
	"testing"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/traffic"
)

// Requests and transfers have their own tables below the flows. A table of only TCP flows has no
// columns for UDP.
func TestWrite(t *testing.T) {
	total := func(iv traffic.Interval) traffic.Interval {
		iv.Seconds, iv.OfferedL2Bits, iv.DeliveredL2Bits = 2, 20e6, 19e6
		return iv
	}
	plain := traffic.FlowResult{
		Name: "bulk", From: "a", To: "b", Protocol: traffic.TCP,
		Total: total(traffic.Interval{Retransmits: 7, SRTTus: 20_500, CwndSegments: 40}),
	}
	all := []traffic.FlowResult{
		plain,
		{Name: "voice", From: "a", To: "b", Protocol: traffic.UDP, Total: total(traffic.Interval{LostDatagrams: 3, JitterUs: 310})},
		{Name: "web", From: "a", To: "b", Protocol: traffic.TCP, Total: total(traffic.Interval{SRTTus: 1000, CwndSegments: 30}), Requests: &traffic.RequestStats{
			RequestCounts: traffic.RequestCounts{Arrived: 112, Refused: 4, Started: 103, Done: 100, Failed: 1},
			UnderWay:      2, Backlog: 5, Latency: traffic.Times{MinUs: 900, P50Us: 21e3, P99Us: 240e3, MaxUs: 1.3e6},
		}},
		{Name: "none", From: "a", To: "b", Protocol: traffic.TCP, Requests: &traffic.RequestStats{}},
		{Name: "backup", From: "a", To: "b", Protocol: traffic.TCP, Total: total(traffic.Interval{}), Transfer: &traffic.TransferResult{
			Completed: make([]traffic.Completion, 2), Failed: 1, UnfinishedBytes: 3 << 20, Time: traffic.Times{MinUs: 1.1e6, MeanUs: 1.2e6, MaxUs: 1.3e6},
		}},
	}
	for _, c := range []struct {
		flows []traffic.FlowResult
		want  string
	}{
		{[]traffic.FlowResult{plain}, `FLOW  FROM  TO  PROTO  OFFERED   DELIVERED  RETRANSMITTED  SRTT     CWND
bulk  a     b   tcp    10.0Mbit  9.50Mbit   7              20.50ms  40

LINK  FROM  TO  BACKEND  CARRIED  FRAMES  DROPPED  LATE  WORST
`},
		{all, `FLOW    FROM  TO  PROTO  OFFERED   DELIVERED  RETRANSMITTED  SRTT     CWND  LOST  JITTER
bulk    a     b   tcp    10.0Mbit  9.50Mbit   7              20.50ms  40
voice   a     b   udp    10.0Mbit  9.50Mbit                                 3     310us
web     a     b   tcp    10.0Mbit  9.50Mbit   0              1.00ms   30
none    a     b   tcp    0         0          0
backup  a     b   tcp    10.0Mbit  9.50Mbit   0

REQUESTS  DONE  REFUSED  FAILED  UNDER WAY  BACKLOG  MIN    P50     P99    MAX
web       100   4        1       2          5        900us  21.0ms  240ms  1.30s
none      0     0        0       0          0

TRANSFERS  DONE  FAILED  UNFINISHED  MIN    MEAN   MAX
backup     2     1       3.00MiB     1.10s  1.20s  1.30s

LINK  FROM  TO  BACKEND  CARRIED  FRAMES  DROPPED  LATE  WORST
`},
	} {
		var b bytes.Buffer
		if err := Write(&b, &lab.RunResult{Result: &traffic.Result{Flows: c.flows}}); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); got != c.want {
			t.Errorf("got\n%s\nwant\n%s", got, c.want)
		}
	}
}
