package view

import (
	"testing"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

func TestRates(t *testing.T) {
	f := frameOf(newServer(), 3)
	if d := f.Devices[0]; d.Seconds != 1 || d.Dev != "eth0" || d.Removed {
		t.Errorf("the device is %+v", d)
	}
	if !f.At.Equal(epoch.Add(3 * time.Second)) {
		t.Errorf("the frame's time is %v", f.At)
	}
	storage := row(t, f, "out", "storage")
	expect(t, "storage's rate", storage.Rate, 10e6)
	expect(t, "storage's borrowed rate", storage.Borrowed, 0)
	expect(t, "backup's drops", row(t, f, "out", "backup").Drops, 1234)
	tenant := row(t, f, "out", "tenant")
	expect(t, "tenant's rate, the sum of its leaves", tenant.Rate, 36e6)
	expect(t, "tenant's marks, the sum of its leaves", tenant.Marks, 87)
	expect(t, "tenant's borrowed rate", tenant.Borrowed, 6e6)
	expect(t, "out's total", row(t, f, "out", totalPath).Rate, 10e6+36e6+30e6+15e6+0.96e6)
	if n := len(storage.History); n != 2 {
		t.Errorf("%d rates after 3 observations, want 2", n)
	}
}

// TestInterval checks that rates use the time stamps of the states, not the configured interval.
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
		t.Errorf("two states with the same time give %+v", f.Devices[0])
	}
}

func TestFirstObservationHasNoRates(t *testing.T) {
	f := frameOf(newServer(), 1)
	if d := f.Devices[0]; d.Seconds != 0 || row(t, f, "out", "storage").Rate != 0 || len(row(t, f, "out", "storage").History) != 0 {
		t.Errorf("the first observation gives %+v", d)
	}
}

// TestCounterReset checks that the counters of a recreated group start from 0.
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
			expect(t, "the rate of rest", row(t, f, "out", "rest").Rate, 15e6)
		})
	}
}

// TestIdleGroupHasNoDelay checks that the delay of a packet before the interval is not shown.
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

// TestGroupsChange checks the rate of a new group, and that the history of a removed group is deleted.
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
			t.Errorf("%v still has a history", key)
		}
	}
}

// TestEngineChange checks that the counters of two engines are not compared.
func TestEngineChange(t *testing.T) {
	s := newServer()
	var tr Tracker
	tr.Update(epoch, []shaper.State{s.at(1)})
	now := s.at(2)
	now.Engine = group.Quantum
	f := tr.Update(epoch, []shaper.State{now})
	expect(t, "storage's rate", row(t, f, "out", "storage").Rate, 20e6)
}

// TestDeviceRemoved checks that a removed device is marked as gone, and has no history when it returns.
func TestDeviceRemoved(t *testing.T) {
	s := newServer()
	var tr Tracker
	tr.Update(epoch, []shaper.State{s.at(1)})
	tr.Update(epoch, []shaper.State{s.at(2)})
	f := tr.Update(epoch.Add(time.Minute), nil)
	if len(f.Devices) != 1 || !f.Devices[0].Removed || f.Devices[0].Dev != "eth0" || !f.At.Equal(epoch.Add(time.Minute)) {
		t.Fatalf("a removed device gives %+v", f)
	}
	f = tr.Update(epoch, []shaper.State{s.at(60)})
	if d := f.Devices[0]; d.Removed || d.Seconds != 0 || len(row(t, f, "out", "storage").History) != 0 {
		t.Errorf("a device that returned gives %+v", d)
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
		t.Fatalf("%d rates in the history", len(h))
	}
	last := float64(3*historyLength - 1)
	expect(t, "the latest rate", h[len(h)-1], 8*(last*last-(last-1)*(last-1)))
}

// TestRateUsesDirectionTime checks that a direction that was read late has no rate above the link's.
func TestRateUsesDirectionTime(t *testing.T) {
	s := newServer()
	var tr Tracker
	first, second := s.at(1), s.at(2)
	first.Out.At, second.Out.At = first.At, first.At.Add(1250*time.Millisecond) // a second's bytes in 1.25 s
	tr.Update(epoch, []shaper.State{first})
	f := tr.Update(epoch, []shaper.State{second})
	expect(t, "storage's rate", row(t, f, "out", "storage").Rate, 8e6)
}
