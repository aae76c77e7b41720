package service

import (
	"testing"
	"time"

	"headgate.dev/headgate/agent/record"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// A report has the names of groups only after a change, and after a new connection. The record has one
// reading a second, also while a client watches.
func TestReadings(t *testing.T) {
	records, err := record.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := newReadings(records)
	state := func(guarantee unit.Rate, sent uint64) []shaper.State {
		tree := &group.Tree{Nodes: []group.Node{{Path: "rest", Parent: -1, Leaf: true}}}
		return []shaper.State{{
			Dev: "eth0", Plan: shaper.Plan{Dev: "eth0", Out: tree},
			Out: &shaper.DirectionState{Groups: []shaper.GroupState{{Path: "rest", Guarantee: guarantee, Bytes: sent}}},
		}}
	}
	second := time.Unix(1_700_000_000, 0)
	for n, c := range []struct {
		guarantee unit.Rate
		forget    bool
		names     int
		queued    int // since the last one
	}{
		{unit.Gbit, false, 1, 1}, {unit.Gbit, false, 0, 0}, {2 * unit.Gbit, false, 1, 0}, {2 * unit.Gbit, true, 1, 0},
	} {
		if c.forget {
			r.forgetReported()
		}
		r.take(second.Add(time.Duration(n)*100*time.Millisecond), state(c.guarantee, uint64(n)))
		if got := r.report().Devices[0]; len(got.Names) != c.names || len(got.Bytes) != 1 || got.Bytes[0] != uint64(n) {
			t.Errorf("report %d: %v, want %d names", n, got, c.names)
		}
		if len(r.queue) != c.queued {
			t.Errorf("reading %d: %d are queued, want %d", n, len(r.queue), c.queued)
		}
		for len(r.queue) > 0 {
			<-r.queue
		}
	}
	r.take(second.Add(time.Second-time.Millisecond), nil) // a little before its second
	written := start(r.write)
	close(r.queue)
	<-written
	if err := records.Close(); err != nil {
		t.Error(err)
	}
}
