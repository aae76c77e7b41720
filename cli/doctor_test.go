package cli

import (
	"strings"
	"testing"

	"headgate.dev/headgate/doctor"
	"headgate.dev/headgate/internal/golden"
	"headgate.dev/headgate/unit"
)

func TestDoctorTable(t *testing.T) {
	var b strings.Builder
	report := doctor.Report{
		OK: true,
		Checks: []doctor.Check{
			{About: doctor.Machine, Name: "kernel", State: doctor.OK, Found: "6.1.0", Meaning: "groups need 5.15 or newer", Needed: true},
			{About: doctor.Machine, Name: "HTB", State: doctor.Missing, Found: "cannot make it\n" + strings.Repeat("long ", 20), Meaning: "no group can be enforced", Remedy: "another kernel", Needed: true},
			{About: "eth0", Name: "device", State: doctor.OK, Found: "driver ixgbe, up", Meaning: "it exists"},
			{About: "eth0", Name: "transmit queues", State: doctor.Limited, Found: "8", Meaning: "all 8 share one lock", Remedy: "none is needed"},
		},
		Throughput: &doctor.Ceiling{Senders: 2, PacketsPerSecond: 1.234e6, WithoutPPS: 987654, Bandwidth: 12 * unit.Gbit, BandwidthWithout: 15 * unit.Gbit},
	}
	if err := doctorTable(&b, report); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/doctor.txt", b.String())
	for verdict, r := range map[string]doctor.Report{
		"groups cannot be enforced":                       {},
		"cannot determine whether groups can be enforced": {NotPermitted: true},
	} {
		b.Reset()
		if err := doctorTable(&b, r); err != nil || b.String() != verdict+"\n" {
			t.Errorf("%q, %v, want %q", b.String(), err, verdict)
		}
	}
}
