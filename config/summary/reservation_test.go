package summary

import (
	"encoding/json"
	"strings"
	"testing"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/internal/golden"
)

const reservationsText = `kind: Reservation
name: video
from: h1
to: site south
flows: [{proto: udp, dport: 5001-5010}]
class: QoS2
rate: 100Mbit
back: 10Mbit
start: 2150-01-31T22:00:00Z
for: 2h
until: 2150-02-01T06:00:00Z
paths: 2
protected: true
disjoint: switches
avoid: [[s1/3, s2/eth4]]
---
kind: Reservation
name: archive
from: 10.1.0.1
to: 10.2.0.0/16
volume: 2TB
until: 2150-02-01T06:00:00Z
protected: true
---
kind: Reservation
name: circuit
from: vlan 7
to: host h2
rate: 1Gbit
for: 1h
flows: [{}]
`

// A description has what a reservation asks for, and when.
func TestReservations(t *testing.T) {
	set, err := config.Parse("reservations.yaml", []byte(reservationsText))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := Of(set).Write(&b); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/reservations.txt", b.String())
	out, err := json.MarshalIndent(Of(set).Reservations, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/reservations.json", string(out)+"\n")
}
