package view

import (
	"testing"
	"time"

	"headgate/group"
	"headgate/shaper"
	"headgate/unit"
)

func TestRates(t *testing.T) {
	f := frameOf(newServer(), 3)
	if d := f.Devices[0]; d.Seconds != 1 || d.Dev != "eth0" || d.Gone {
		t.Errorf("the device is %+v", d)
	}
	if !f.At.Equal(epoch.Add(3 * time.Second)) {
		t.Errorf("the frame is of %v", f.At)
	}
	storage := row(t, f, "out", "storage")
	expect(t, "storage's rate", storage.Rate, 10e6)
	expect(t, "what storage borrows", storage.Borrowed, 0)
	expect(t, "backup's drops", row(t, f, "out", "backup").Drops, 1234)
	tenant := row(t, f, "out", "tenant")
	expect(t, "tenant's rate, of its leaves", tenant.Rate, 36e6)
	expect(t, "tenant's marks, of its leaves", tenant.Marks, 87)
	expect(t, "what tenant borrows", tenant.Borrowed, 6e6)
	expect(t, "out's total", row(t, f, "out", totalPath).Rate, 10e6+36e6+30e6+15e6+0.96e6)
	if n := len(storage.History); n != 2 {
		t.Errorf("after 3 observations there are %d rates", n)
	}
}

// TestInterval: the time between two states is theirs, not the interval that was
// asked for.
func TestInterval(t *testing.T) {
	s := newServer()
	var tr Tracker
	tr.Update(epoch, []shaper.State{s.at(1)})
	late := s.at(2)
	late.At = epoch.Add(3 * time.Second) // a second's bytes in two
	f := tr.Update(epoch, []shaper.State{late})
	expect(t, "seconds", f.Devices[0].Seconds, 2)
	expect(t, "storage's rate", row(t, f, "out", "storage").Rate, 5e6)
	again := s.at(3)
	again.At = late.At
	f = tr.Update(epoch, []shaper.State{again})
	if f.Devices[0].Seconds != 0 || row(t, f, "out", "storage").Rate != 0 {
		t.Errorf("two states of one instant give %+v", f.Devices[0])
	}
}

func TestFirstObservationHasNoRates(t *testing.T) {
	f := frameOf(newServer(), 1)
	if d := f.Devices[0]; d.Seconds != 0 || row(t, f, "out", "storage").Rate != 0 || len(row(t, f, "out", "storage").History) != 0 {
		t.Errorf("the first observation gives %+v", d)
	}
}

// TestCounterReset: a group that was made again has counted from 0 since.
func TestCounterReset(t *testing.T) {
	for name, remake := range map[string]func(*shaper.GroupState){
		"counters fall":      func(g *shaper.GroupState) { g.Bytes, g.Packets = 1000, 1 },
		"another class":      func(g *shaper.GroupState) { g.Class, g.Bytes, g.Packets = "1:99", 1000, 1 },
		"only packets fall":  func(g *shaper.GroupState) { g.Bytes, g.Packets = 1000, 0 },
		"class and more now": func(g *shaper.GroupState) { g.Class, g.Bytes, g.Drops = "1:99", 1000, 0 },
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			var tr Tracker
			tr.Update(epoch, []shaper.State{s.at(100)})
			now := s.at(101)
			remake(&now.Out.Groups[0])
			f := tr.Update(epoch, []shaper.State{now})
			expect(t, "the new storage's rate", row(t, f, "out", "storage").Rate, 8000)
			expect(t, "the others'", row(t, f, "out", "rest").Rate, 15e6)
		})
	}
}

// TestIdleGroupHasNoDelay: what the last packet waited, long ago, is not shown.
func TestIdleGroupHasNoDelay(t *testing.T) {
	s := newServer()
	var tr Tracker
	tr.Update(epoch, []shaper.State{s.at(1)})
	now := s.at(2)
	was := s.at(1)
	now.Out.Groups[0].Bytes, now.Out.Groups[0].Packets = was.Out.Groups[0].Bytes, was.Out.Groups[0].Packets
	f := tr.Update(epoch, []shaper.State{now})
	if d := row(t, f, "out", "storage").Delay; d != 0 {
		t.Errorf("storage, idle, has a delay of %v", d)
	}
	if d := row(t, f, "out", "rest").Delay; d == 0 {
		t.Error("rest, busy, has no delay")
	}
}

// TestGroupsChange: a group that comes later is new, one that goes is forgotten.
func TestGroupsChange(t *testing.T) {
	s := newServer()
	var tr Tracker
	tr.Update(epoch, []shaper.State{s.at(1)})
	tr.Update(epoch, []shaper.State{s.at(2)})
	s.in.Nodes = append(s.in.Nodes, node("late", -1, 1, true, unit.Mbit, unit.Gbit))
	s.rates["in late"] = 125
	f := tr.Update(epoch, []shaper.State{s.at(3)})
	expect(t, "the late group's rate", row(t, f, "in", "late").Rate, 3*1000)
	s.in.Nodes = s.in.Nodes[:1]
	tr.Update(epoch, []shaper.State{s.at(4)})
	for key := range tr.devices["eth0"].history {
		if key.direction == "in" && (key.path == "late" || key.path == "rest") {
			t.Errorf("%v is still remembered", key)
		}
	}
}

// TestEngineChange: the counters of two engines have nothing to do with each
// other.
func TestEngineChange(t *testing.T) {
	s := newServer()
	var tr Tracker
	tr.Update(epoch, []shaper.State{s.at(1)})
	now := s.at(2)
	now.Engine = group.Quantum
	f := tr.Update(epoch, []shaper.State{now})
	expect(t, "storage's rate", row(t, f, "out", "storage").Rate, 20e6)
}

// TestDeviceVanishes: a device that goes is shown as gone, and begins anew.
func TestDeviceVanishes(t *testing.T) {
	s := newServer()
	var tr Tracker
	tr.Update(epoch, []shaper.State{s.at(1)})
	tr.Update(epoch, []shaper.State{s.at(2)})
	f := tr.Update(epoch.Add(time.Minute), nil)
	if len(f.Devices) != 1 || !f.Devices[0].Gone || f.Devices[0].Dev != "eth0" || !f.At.Equal(epoch.Add(time.Minute)) {
		t.Fatalf("a device that is gone gives %+v", f)
	}
	f = tr.Update(epoch, []shaper.State{s.at(60)})
	if d := f.Devices[0]; d.Gone || d.Seconds != 0 || len(row(t, f, "out", "storage").History) != 0 {
		t.Errorf("a device that is back gives %+v", d)
	}
	f = tr.Update(epoch, []shaper.State{s.at(61)})
	expect(t, "storage's rate", row(t, f, "out", "storage").Rate, 10e6)
}

func TestHistoryIsBounded(t *testing.T) {
	s := newServer()
	var tr Tracker
	var f Frame
	for i := range 3 * historyLength {
		s.rates["out storage"] = uint64(i)
		state := s.at(1)
		state.At = epoch.Add(time.Duration(i) * time.Second)
		state.Out.Groups[0].Bytes = uint64(i * i)
		f = tr.Update(epoch, []shaper.State{state})
	}
	h := row(t, f, "out", "storage").History
	if len(h) != historyLength {
		t.Fatalf("%d rates are remembered", len(h))
	}
	last := float64(3*historyLength - 1)
	expect(t, "the latest rate", h[len(h)-1], 8*(last*last-(last-1)*(last-1)))
}

// TestLending: what borrowers have was lent by those who left it, in proportion
// to what they left.
func TestLending(t *testing.T) {
	tree := group.Tree{Limit: 100 * m, Nodes: []group.Node{
		node("idle", -1, 1, true, 40*m, 100*m), node("half", -1, 1, true, 30*m, 100*m), node("busy", -1, 1, true, 20*m, 100*m),
		node("tenant", -1, 1, false, 10*m, 100*m), node("tenant/a", 3, 2, true, 8*m, 100*m), node("tenant/b", 3, 2, true, 2*m, 100*m),
	}}
	for _, c := range []struct {
		name           string
		rates          []float64 // Mbit/s
		control        float64
		borrowed, lent []float64
	}{
		{"nobody borrows", []float64{0, 15, 20, 10, 8, 2}, 0, []float64{0, 0, 0, 0, 0, 0}, []float64{0, 0, 0, 0, 0, 0}},
		{"all is used", []float64{0, 10, 80, 10, 8, 2}, 0, []float64{0, 0, 60, 0, 0, 0}, []float64{40, 20, 0, 0, 0, 0}},
		{"control takes a part", []float64{0, 30, 58, 10, 8, 2}, 2, []float64{0, 0, 38, 0, 0, 0}, []float64{38, 0, 0, 0, 0, 0}},
		{"half is used", []float64{0, 10, 50, 10, 8, 2}, 0, []float64{0, 0, 30, 0, 0, 0}, []float64{20, 10, 0, 0, 0, 0}},
		{"siblings lend first to each other", []float64{0, 30, 20, 10, 3, 7}, 0, []float64{0, 0, 0, 0, 0, 5}, []float64{0, 0, 0, 0, 5, 0}},
		{"a tenant borrows for its children", []float64{0, 30, 20, 50, 8, 42}, 0, []float64{0, 0, 0, 40, 0, 40}, []float64{40, 0, 0, 0, 0, 0}},
	} {
		rows := make([]Row, len(tree.Nodes))
		for i, n := range tree.Nodes {
			rows[i] = Row{Path: n.Path, Guarantee: uint64(n.Guarantee), Rate: c.rates[i] * 1e6}
		}
		lend(tree, rows, c.control*1e6)
		for i := range rows {
			if !near(rows[i].Borrowed, c.borrowed[i]*1e6) || !near(rows[i].Lent, c.lent[i]*1e6) {
				t.Errorf("%s: %s borrows %s and lends %s", c.name, rows[i].Path, Rate(rows[i].Borrowed), Rate(rows[i].Lent))
			}
		}
	}
}

// TestEachDirectionHasItsTime: a direction that was read late has passed no more than the link gives.
func TestEachDirectionHasItsTime(t *testing.T) {
	s := newServer()
	var tr Tracker
	first, second := s.at(1), s.at(2)
	first.Out.At, second.Out.At = first.At, first.At.Add(1250*time.Millisecond) // a second's bytes in 1.25 s
	tr.Update(epoch, []shaper.State{first})
	f := tr.Update(epoch, []shaper.State{second})
	expect(t, "storage's rate", row(t, f, "out", "storage").Rate, 8e6)
}
