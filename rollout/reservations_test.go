package rollout

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate.dev/headgate/agent"
	"headgate.dev/headgate/observe"
)

// While an agent enforces reservations on a device, neither clear nor apply touches it.
func TestReservationsStay(t *testing.T) {
	m := Machine{Observer: observe.Observer{State: t.TempDir()}}
	claim, err := agent.NewClaim(m.State, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(m.State, "*.agent"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	state := `{"pid": 1, "devs": ["eth0", "eth1"], "origins": {"eth0": {"out/web": "tenant", "out/reservation:acme:a:forward": "reservation"}, "eth1": {"out/web": "tenant"}}}`
	if err := os.WriteFile(files[0], []byte(state), 0o644); err != nil { // in place, so that the lock stays
		t.Fatal(err)
	}
	if err := m.CheckReservations("eth0"); err == nil || !strings.Contains(err.Error(), "eth0 carries reservations") {
		t.Errorf("a device with reservations: %v", err)
	}
	if err := m.CheckReservations("eth1"); err != nil {
		t.Errorf("a device without reservations: %v", err)
	}
	if list, _, err := m.ClearDevices(nil, []string{"eth0"}, 0); err == nil || len(list) > 0 {
		t.Errorf("clear of a device with reservations: %v, %v", list, err)
	}
	claim.Close() // the agent has stopped, and the operator decides
	if err := m.CheckReservations("eth0"); err != nil {
		t.Errorf("without an agent: %v", err)
	}
}
