package metrics

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/collective/host"
)

// The metrics have the states of the connection sets. Of two connections with the same endpoints in two
// network namespaces only one is exported. Listen fails for an address that is in use.
func TestServe(t *testing.T) {
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(l.Addr().String()); err == nil || !strings.Contains(err.Error(), "cannot serve metrics") {
		t.Errorf("Listen on an address in use: %v", err)
	}
	c := host.ConnectionState{Local: "10.0.0.1:5432", Remote: "10.0.1.1:40000", Needs: 4_800_000, Pace: 4_000_000, RTT: 24 * time.Millisecond, Acked: 1000, Retransmits: 3}
	stop := Serve(l, NewCollective(func() ([]host.State, error) {
		return []host.State{
			{Set: "db", Destination: "10.0.1.1", Controlling: true, Resent: 0.25, Connections: []host.ConnectionState{c, c}},
			{Set: "web", Waiting: true},
		}, nil
	}))
	defer stop()
	r, err := http.Get("http://" + l.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	of := `{destination="10.0.1.1",local="10.0.0.1:5432",remote="10.0.1.1:40000",set="db"} `
	for _, want := range []string{
		`headgate_collective_controlled{destination="10.0.1.1",set="db"} 1`,
		`headgate_collective_connections{destination="10.0.1.1",set="db"} 2`,
		`headgate_collective_retransmitted_ratio{destination="10.0.1.1",set="db"} 0.25`,
		`headgate_collective_cgroup_missing{destination="",set="web"} 1`,
		"headgate_collective_learned_rate_bits_per_second" + of + "4.8e+06",
		"headgate_collective_pacing_cap_bits_per_second" + of + "4e+06",
		"headgate_collective_round_trip_seconds" + of + "0.024",
		"headgate_collective_acknowledged_bytes_total" + of + "1000",
		"headgate_collective_retransmitted_segments_total" + of + "3",
	} {
		if !strings.Contains(string(text), want+"\n") {
			t.Errorf("missing metric %s:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "headgate_collective_window_cap_bytes{") {
		t.Error("a window cap is exported for a connection without one")
	}
}
