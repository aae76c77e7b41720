package mesh_test

import (
	"fmt"
	"os"
	"time"

	"headgate.dev/headgate/probe/mesh"
)

// The results of a mesh as metrics for Prometheus. "headgate probe mesh" measures the rows.
func ExampleRows_WritePrometheus() {
	rows := mesh.Rows{
		{From: "fra", To: "ams", RTT: 10 * time.Millisecond},
		{From: "ams", To: "fra", Failed: "cannot connect"},
	}
	if err := rows.WritePrometheus(os.Stdout, time.Unix(1000, 0)); err != nil {
		fmt.Println(err)
	}
	fmt.Println("failed:", rows.Failed())
	// Output:
	// # HELP headgate_probe_success Whether the measurement of the path succeeded.
	// # TYPE headgate_probe_success gauge
	// headgate_probe_success{from="fra",to="ams"} 1
	// headgate_probe_success{from="ams",to="fra"} 0
	// # HELP headgate_probe_round_trip_seconds Minimum round-trip time of the handshake.
	// # TYPE headgate_probe_round_trip_seconds gauge
	// headgate_probe_round_trip_seconds{from="fra",to="ams"} 0.01
	// # HELP headgate_probe_mesh_finished_timestamp_seconds Time at which the mesh finished.
	// # TYPE headgate_probe_mesh_finished_timestamp_seconds gauge
	// headgate_probe_mesh_finished_timestamp_seconds 1000
	// failed: 1
}
