package view

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/collective/host"
)

// A line has the caps of its connection, and "-" for caps that are not set.
func TestWriteSetConnections(t *testing.T) {
	var out bytes.Buffer
	err := WriteSetConnections(&out, time.Now(), []host.State{{Set: "db", Controlling: true, Connections: []host.ConnectionState{
		{Local: "10.0.0.1:5432", Remote: "10.0.1.1:40000", Needs: 4_800_000, Rate: 4_000_000, RTT: 24 * time.Millisecond, Pace: 4_100_000, Window: 30_000},
		{Local: "10.0.0.1:5432", Remote: "10.0.1.2:40000", RTT: 24 * time.Millisecond},
		{Local: "10.0.0.1:5432", Remote: "10.0.1.3:40000", Needs: 4_800_000, Weight: 4, RTT: 24 * time.Millisecond},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range []string{
		"db controlled 10.0.0.1:5432 10.0.1.1:40000 learned 4.80Mbit rate 4.00Mbit 24ms pace 4.10Mbit window 30.0 kB",
		"db controlled 10.0.0.1:5432 10.0.1.2:40000 learned - rate 0 24ms pace - window -",
		"db controlled 10.0.0.1:5432 10.0.1.3:40000 weight 4 rate 0 24ms pace - window -",
	} {
		if _, got, _ := strings.Cut(strings.Join(strings.Fields(lines[i]), " "), " "); got != want {
			t.Errorf("line %d: %q, want %q", i+1, got, want)
		}
	}
}
