package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"headgate.dev/headgate/relay/host"
)

// The metrics have totals, bytes of paths to exits, and streams of all paths; those of two entries with one address
// are exported once.
func TestRelay(t *testing.T) {
	entry := host.PeerStatus{Address: "203.0.113.7", Paths: []host.PathStatus{{Name: "203.0.113.7", Sent: 5, Streams: []host.StreamStatus{{State: host.StreamOpen, RTT: time.Millisecond}}}}}
	s := host.Status{
		Exits: []host.PeerStatus{{Address: "192.0.2.2:8424", Paths: []host.PathStatus{{Name: "fibre", Sent: 1000, Received: 10, Streams: []host.StreamStatus{
			{State: host.StreamOpen, RTT: 54 * time.Millisecond}, {State: host.StreamSuspect, RTT: 60 * time.Millisecond}, {State: host.StreamClosed},
		}}}}},
		Entries:     []host.PeerStatus{entry, entry},
		Connections: []host.ConnectionStatus{{Reordering: 2}, {Reordering: 4}},
		Total:       host.TotalStatus{Connections: 2, Ended: 7, Failed: 1, Sent: 1 << 20, Received: 3, Waiting: 4, Unread: 5, Reordering: 6},
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(NewRelay(func() host.Status { return s }))
	all, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 15 {
		t.Errorf("%d metrics, want 15", len(all))
	}
	const of = `{path="fibre",peer="192.0.2.2:8424"} `
	want := map[string]string{
		"headgate_relay_connections":                 " 2",
		"headgate_relay_connections_ended_total":     " 7",
		"headgate_relay_sent_bytes_total":            " 1.048576e+06",
		"headgate_relay_reordering_bytes":            " 6",
		"headgate_relay_longest_reorder_queue_bytes": " 4",
		"headgate_relay_reorder_queue_limit_bytes":   fmt.Sprint(" ", float64(host.ReorderQueueLimit())),
		"headgate_relay_path_sent_bytes_total":       of + "1000",
		"headgate_relay_path_streams":                of + "2\nheadgate_relay_path_streams" + `{path="203.0.113.7",peer="203.0.113.7"} 2`,
		"headgate_relay_path_suspect_streams":        of + "1\nheadgate_relay_path_suspect_streams" + `{path="203.0.113.7",peer="203.0.113.7"} 0`,
		"headgate_relay_path_received_bytes_total":   of + "10",
	}
	for name, value := range want {
		kind := "gauge"
		if strings.HasSuffix(name, "_total") {
			kind = "counter"
		}
		for _, d := range metricsOf(t, NewRelay(nil)) {
			if d.name == name {
				text := "# HELP " + name + " " + d.help + "\n# TYPE " + name + " " + kind + "\n" + name + value + "\n"
				if err := testutil.GatherAndCompare(registry, strings.NewReader(text), name); err != nil {
					t.Error(err)
				}
			}
		}
	}
}
