package reserve

import (
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"
)

// ring is a network of three switches, of which the links are named by their ports.
func ring(t *testing.T) *fabric.Topology {
	t.Helper()
	var p fabric.Parts
	for i := range 3 {
		p.Switches = append(p.Switches, fabric.Switch{ID: fabric.DPID(i + 1), Name: []string{"s1", "s2", ""}[i], Ports: []fabric.Port{{No: 1}, {No: 2, Name: "eth2"}, {No: 3}}})
	}
	for i := range 3 {
		id := fabric.LinkID{From: fabric.PortID{Switch: fabric.DPID(i + 1), Port: 2}, To: fabric.PortID{Switch: fabric.DPID((i+1)%3 + 1), Port: 3}}
		p.Links = append(p.Links, fabric.Link{LinkID: id, Capacity: unit.Gbit, Cost: 1}, fabric.Link{LinkID: id.Reverse(), Capacity: unit.Gbit, Cost: 1})
	}
	top, err := fabric.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// TestAvoidNames: links to avoid are found by their ends in either order, by numbers and names of ports, and by names and
// ids of switches. A book refuses a request of which they were not found.
func TestAvoidNames(t *testing.T) {
	top, now := ring(t), time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	r := Request{
		ID: ID{Name: "r"}, Class: 1, Forward: unit.Mbit, Duration: time.Hour, AvoidNames: [][2]string{{"s1/eth2", "s2/3"}},
		Source: Endpoint{Name: "h1", At: port(1)}, Destination: Endpoint{Name: "h2", At: port(2)},
	}
	book := func() *Book {
		b, err := NewBook(top, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if _, err := book().Admit(r, now); err == nil || !strings.Contains(err.Error(), "avoid[0]: link s1/eth2 - s2/3 is not in the network") {
		t.Errorf("%v", err)
	}
	found, err := r.FindAvoided(top)
	if err != nil {
		t.Fatal(err)
	}
	got, err := book().Admit(found, now)
	if err != nil || len(got.Paths) != 1 || len(got.Paths[0].Links) != 2 {
		t.Errorf("%v, %v: want the way around the link", got.Paths, err)
	}
	for _, ends := range [][2]string{{"s2/3", "s1/2"}, {"0000000000000001/2", "0000000000000002/3"}} {
		r.AvoidNames = [][2]string{ends}
		if other, err := r.FindAvoided(top); err != nil || !slices.Contains([]fabric.LinkID{found.Avoid[0], found.Avoid[0].Reverse()}, other.Avoid[0]) {
			t.Errorf("%v: %v, %v", ends, other.Avoid, err)
		}
	}
	r.AvoidNames = [][2]string{{"s1/2", "s2/3"}, {"s1/2", "s2/1"}, {"s1/9", "s2/3"}, {"s9/2", "s2/3"}, {"s1", "s2"}, {"0000000000000009/1", "s2/3"}}
	_, err = r.FindAvoided(top)
	if err == nil || strings.Count(err.Error(), "is not in the network") != 5 || strings.Contains(err.Error(), "avoid[0]") {
		t.Errorf("%v", err)
	}
}

// TestCheckWithoutClock: without a clock, times that may be past are no mistakes, and others are.
func TestCheckWithoutClock(t *testing.T) {
	start := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	r := Request{ID: ID{Name: "r"}, Class: 1, Forward: unit.Mbit, Start: start, Until: start.Add(2 * time.Hour), Duration: time.Hour}
	if wrong := r.Check(time.Time{}); wrong != nil {
		t.Errorf("%v", wrong[0])
	}
	if wrong := r.Check(start.Add(time.Minute)); len(wrong) != 1 || wrong[0].Key != "start" {
		t.Errorf("%v", wrong)
	}
	r.Duration = 3 * time.Hour
	if wrong := r.Check(time.Time{}); len(wrong) != 1 || wrong[0].Key != "until" {
		t.Errorf("%v", wrong)
	}
	r.Start = time.Time{}
	if wrong := r.Check(time.Time{}); wrong != nil {
		t.Errorf("%v", wrong[0])
	}
}
