package service

import (
	"testing"
	"time"

	"headgate.dev/headgate/agent/remote"
	"headgate.dev/headgate/agent/reserved"
	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

func TestReservationReports(t *testing.T) {
	stored, err := remote.OpenReservations(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	takes, sent := true, []*agents.ReservationReport{}
	r := &reservations{stored: stored, send: func(m *agents.ReservationReport) bool {
		if takes {
			sent = append(sent, m)
		}
		return takes
	}}
	start := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	// sample is a sample with what left the queue of the reservation, what waits there, and what was dropped.
	sample := func(after time.Duration, bytes, packets, backlog, drops uint64, queued time.Duration) {
		at := start.Add(after)
		g := shaper.GroupState{Path: reserved.Path("acme/a/forward"), Class: "1:10", Ceiling: 5 * unit.Mbit, Bytes: bytes, Packets: packets, BacklogBytes: backlog, Drops: drops, QueuedFor: queued}
		tree := &group.Tree{Limit: 100 * unit.Mbit, Nodes: []group.Node{{Path: "rest", Parent: -1, Leaf: true}, {Path: g.Path, Parent: -1, Leaf: true, Adjustable: true}}}
		r.report(at, []shaper.State{
			{Dev: "eth0", At: at, Plan: shaper.Plan{Dev: "eth0", Out: tree}, Out: &shaper.DirectionState{At: at, Groups: []shaper.GroupState{{Path: "rest"}, g}}},
			{Dev: "eth1", At: at, Plan: shaper.Plan{Dev: "eth1", Out: tree}, Out: &shaper.DirectionState{At: at, Groups: []shaper.GroupState{{Path: "rest"}, g}}},
		})
	}
	sample(0, 5000, 5, 0, 0, 0)
	if len(sent) > 0 {
		t.Fatalf("without reservations the agent sends %v", sent)
	}
	list := &agents.Reservations{Fence: &agents.Fence{Epoch: 1}, ReportIntervalNs: int64(time.Second), Reservations: []*agents.Reservation{
		{Key: "acme/a/forward", Dev: "eth0", Direction: agents.Egress, RateBps: 1e7, LimitBps: 5e6, Traffic: []*agents.Traffic{{Destination: "10.0.0.0/8"}}},
	}}
	if err := stored.Store("", list); err != nil {
		t.Fatal(err)
	}
	sample(time.Second, 10000, 10, 0, 0, 0) // the first reading
	sample(1100*time.Millisecond, 10100, 11, 0, 0, 0)
	if len(sent) > 0 {
		t.Fatalf("after one reading the agent sends %v", sent)
	}
	sample(2*time.Second, 30000, 30, 4000, 2, 700*time.Millisecond)
	if len(sent) != 1 || len(sent[0].Reservations) != 1 {
		t.Fatalf("after a second the agent has sent %v", sent)
	}
	// 20 packets of 1000 bytes left, 4000 bytes wait, and 2 packets were dropped.
	c := sent[0].Reservations[0]
	if c.Key != "acme/a/forward" || c.PeriodNs != int64(time.Second) || c.DeliveredBytes != 20000 || c.OfferedBytes != 26000 || c.Drops != 2 || c.QueuedNs != int64(700*time.Millisecond) || c.LimitBps != 5e6 {
		t.Errorf("the report is %v", c)
	}
	takes = false
	sample(3*time.Second, 40000, 40, 0, 2, 700*time.Millisecond)
	takes = true
	sample(4*time.Second, 50000, 50, 0, 2, 700*time.Millisecond)
	if c := sent[1].Reservations[0]; c.PeriodNs != int64(2*time.Second) || c.DeliveredBytes != 20000 || c.OfferedBytes != 16000 || c.QueuedNs != 0 {
		t.Errorf("the report after a disconnection is %v", c)
	}
}
