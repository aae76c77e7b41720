package quantum

import (
	"bytes"
	"testing"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// TestUpgradeKeepsCounters: another build with the same map layouts takes over a device while
// it drops and counts. No counter decreases, and no packet is missed. Other layouts are tested
// in package classifier and the HTB engine, which use the same maps.
func TestUpgradeKeepsCounters(t *testing.T) {
	l := labtest.Rig(t, lab.RigOptions{})
	server, engine := l.Node("server"), New()
	g := group.Group{Name: "all", Default: true, Guarantee: group.Amount{Rate: unit.Mbit}}
	tree, problems := group.Direction{Limit: unit.Mbit, Groups: []group.Group{g}}.Resolve("out", true)
	for _, p := range problems {
		t.Fatal(p)
	}
	plan := shaper.Plan{Dev: "router", Perspective: group.Host, Out: &tree}
	apply := func() {
		t.Helper()
		if err := server.Do(func() error { _, err := engine.Apply(plan); return err }); err != nil {
			t.Fatal(err)
		}
	}
	observe := func() (st shaper.State) {
		t.Helper()
		if err := server.Do(func() (err error) { st, err = engine.Observe("router"); return err }); err != nil {
			t.Fatal(err)
		}
		return st
	}
	today := _PolicerBytes
	defer func() { _PolicerBytes = today }()
	_PolicerBytes = append(bytes.Clone(today), 0) // the same code with another hash
	apply()
	session, err := traffic.Start(t.Context(), l.Host, []traffic.Flow{
		{Name: "udp", From: "server", To: "client", Protocol: traffic.UDP, DstPort: 5001, Schedule: traffic.Constant(8 * unit.Mbit)},
	}, traffic.Options{})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	before := observe().Out.Groups[0]
	_PolicerBytes = today
	if len(observe().Drift) == 0 {
		t.Error("no drift is reported for another build")
	}
	apply()
	after := observe()
	if g := after.Out.Groups[0]; before.Packets == 0 || before.Drops == 0 || g.Packets < before.Packets || g.Bytes < before.Bytes || g.Drops < before.Drops || len(after.Drift) > 0 {
		t.Errorf("counters before %+v, after %+v, drift %v", before, g, after.Drift)
	}
	time.Sleep(300 * time.Millisecond)
	session.Stop()
	sent := session.Wait().Flow("udp").Total.Datagrams
	time.Sleep(50 * time.Millisecond)
	st := observe().Out
	if got := st.Groups[0]; got.Packets+got.Drops < uint64(sent) {
		t.Errorf("of %d datagrams, %d were counted, and %d drops", sent, got.Packets, got.Drops)
	}
}
