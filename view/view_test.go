package view

import (
	"fmt"
	"io"
	"testing"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// plainTheme has no colours and does not depend on the machine's locale.
func plainTheme() Theme {
	t := NewTheme(io.Discard)
	t.signs = unicode
	return t
}

var epoch = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// server is a device of a small host: nested groups out, two groups in.
type server struct {
	out, in *group.Tree
	// Bytes, drops and marks per second of each leaf.
	rates map[string]uint64
	drops map[string]uint64
	marks map[string]uint64
}

func node(path string, parent, depth int, leaf bool, guarantee, ceiling unit.Rate) group.Node {
	return group.Node{Path: path, Parent: parent, Depth: depth, Leaf: leaf, Guarantee: guarantee, Ceiling: ceiling}
}

const m = unit.Mbit

func newServer() *server {
	return &server{
		out: &group.Tree{Limit: 100 * m, Spare: group.Proportional, Nodes: []group.Node{
			node("storage", -1, 1, true, 40*m, 100*m),
			node("tenant", -1, 1, false, 30*m, 100*m),
			node("tenant/web", 1, 2, true, 20*m, 100*m),
			node("tenant/db", 1, 2, true, 5*m, 50*m),
			node("backup", -1, 1, true, 10*m, 30*m),
			node("rest", -1, 1, true, 15*m, 100*m),
		}},
		in: &group.Tree{Limit: 60 * m, Spare: group.Equal, Nodes: []group.Node{
			node("storage", -1, 1, true, 24*m, 60*m),
			node("rest", -1, 1, true, 0, 60*m),
		}},
		rates: map[string]uint64{
			"out storage": 1_250_000, "out tenant/web": 4_500_000, "out tenant/db": 0, "out backup": 3_750_000, "out rest": 1_875_000,
			"in storage": 3_000_000, "in rest": 1_237_500, "out (control)": 120_000, "in (control)": 90_000,
		},
		drops: map[string]uint64{"out backup": 1234},
		marks: map[string]uint64{"out tenant/web": 87},
	}
}

// at returns the state after this many seconds.
func (s *server) at(seconds int) shaper.State {
	n := uint64(seconds)
	direction := func(name string, t *group.Tree) *shaper.DirectionState {
		count := func(path string) shaper.GroupState {
			key := name + " " + path
			return shaper.GroupState{
				Path: path, Class: "1:10", Bytes: s.rates[key] * n, Packets: s.rates[key] * n / 1500, Drops: s.drops[key] * n, Marks: s.marks[key] * n,
				BacklogBytes: s.rates[key] / 200, QueueDelay: time.Duration(s.rates[key]) * 200,
			}
		}
		d := &shaper.DirectionState{Control: count("(control)"), Assigned: 1}
		d.Control.Ceiling = t.Limit / 4
		for _, node := range t.Nodes {
			g := count(node.Path)
			g.Guarantee, g.Ceiling = node.Guarantee, node.Ceiling
			d.Groups = append(d.Groups, g)
		}
		return d
	}
	return shaper.State{
		Dev: "eth0", Engine: group.HTB, At: epoch.Add(time.Duration(seconds) * time.Second),
		Plan: shaper.Plan{Dev: "eth0", Out: s.out, In: s.in}, Out: direction("out", s.out), In: direction("in", s.in),
	}
}

// frameOf returns the frame after this many seconds at constant rates.
func frameOf(s *server, seconds int) Frame {
	var t Tracker
	var f Frame
	for i := 1; i <= seconds; i++ {
		f = t.Update(epoch, []shaper.State{s.at(i)})
	}
	return f
}

func row(t *testing.T, f Frame, direction, path string) Row {
	t.Helper()
	for _, d := range f.Devices[0].Directions {
		if d.Name != direction {
			continue
		}
		for _, r := range append(append([]Row{}, d.Groups...), d.Control, d.Total) {
			if r.Path == path {
				return r
			}
		}
	}
	t.Fatalf("no row %s %s", direction, path)
	return Row{}
}

func near(got, want float64) bool { return got > want-1 && got < want+1 }

func expect(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !near(got, want) {
		t.Errorf("%s is %s, want %s", what, fmt.Sprint(got), fmt.Sprint(want))
	}
}
