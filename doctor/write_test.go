package doctor

import (
	"strings"
	"testing"

	"headgate.dev/headgate/internal/golden"
	"headgate.dev/headgate/unit"
)

func TestWrite(t *testing.T) {
	var b strings.Builder
	report := Report{
		OK: true,
		Checks: []Check{
			{About: Machine, Name: "kernel", State: OK, Found: "6.1.0", Meaning: "groups need 5.15 or newer", Needed: true},
			{About: Machine, Name: "HTB", State: Missing, Found: "cannot make it\n" + strings.Repeat("long ", 20), Meaning: "no group can be enforced", Remedy: "another kernel", Needed: true},
			{About: "eth0", Name: "device", State: OK, Found: "driver ixgbe, up", Meaning: "it exists"},
			{About: "eth0", Name: "transmit queues", State: Limited, Found: "8", Meaning: "all 8 share one lock", Remedy: "none is needed"},
		},
		Throughput: &Ceiling{Senders: 2, PacketsPerSecond: 1.234e6, WithoutPPS: 987654, Bandwidth: 12 * unit.Gbit, BandwidthWithout: 15 * unit.Gbit},
	}
	if err := report.Write(&b); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/doctor.txt", b.String())
	for verdict, r := range map[string]Report{
		"groups cannot be enforced":                       {},
		"cannot determine whether groups can be enforced": {NotPermitted: true},
	} {
		b.Reset()
		if err := r.Write(&b); err != nil || b.String() != verdict+"\n" {
			t.Errorf("%q, %v, want %q", b.String(), err, verdict)
		}
	}
}
