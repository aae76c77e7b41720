package metrics

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"headgate/collective/host"
)

// What is served is what the sets are doing; of two connections between the same addresses, in
// two network namespaces, one is told. An address is for one.
func TestServe(t *testing.T) {
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(l.Addr().String()); err == nil || !strings.Contains(err.Error(), "cannot serve metrics") {
		t.Errorf("an address that is taken is %v", err)
	}
	c := host.ConnectionState{Local: "10.0.0.1:5432", Remote: "10.0.1.1:40000", Needs: 4_800_000, Pace: 4_000_000, RTT: 24 * time.Millisecond, Acked: 1000, Retransmits: 3}
	stop := Serve(l, Collective(func() ([]host.State, error) {
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
		`headgate_collective_resent_ratio{destination="10.0.1.1",set="db"} 0.25`,
		`headgate_collective_waiting{destination="",set="web"} 1`,
		"headgate_collective_needed_bits_per_second" + of + "4.8e+06",
		"headgate_collective_pace_bits_per_second" + of + "4e+06",
		"headgate_collective_round_trip_seconds" + of + "0.024",
		"headgate_collective_acknowledged_bytes_total" + of + "1000",
		"headgate_collective_resent_segments_total" + of + "3",
	} {
		if !strings.Contains(string(text), want+"\n") {
			t.Errorf("it does not say %s:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "headgate_collective_window_bytes{") {
		t.Error("a window that is no bound is told")
	}
}
