package view

import (
	"slices"
	"strings"
	"time"

	"headgate/group"
	"headgate/shaper"
)

// historyLength is how many rates a Row remembers.
const historyLength = 60

// Tracker makes rates of counters: it remembers the last state of each device.
// The zero Tracker is ready.
type Tracker struct {
	devices map[string]*tracked
}

// tracked is what is remembered of a device. One that is gone has no last state
// and no history: its counters begin anew when it returns.
type tracked struct {
	last    *shaper.State
	history map[series][]float64
}

// series names a row of a device.
type series struct{ direction, path string }

// Empty tells whether Update was never called.
func (t *Tracker) Empty() bool { return t.devices == nil }

// Update takes the states of all devices that were found now, and tells what
// happened since the last call. A device that was found before and is not among
// them is gone. now is the frame's time when there is no state at all.
func (t *Tracker) Update(now time.Time, states []shaper.State) Frame {
	if t.devices == nil {
		t.devices = map[string]*tracked{}
	}
	f := Frame{At: now, Devices: []Device{}}
	found := map[string]bool{}
	for _, s := range states {
		found[s.Dev] = true
		d := t.devices[s.Dev]
		if d == nil {
			d = &tracked{}
			t.devices[s.Dev] = d
		}
		f.Devices = append(f.Devices, d.update(s))
	}
	if len(states) > 0 {
		f.At = states[len(states)-1].At
	}
	for name, d := range t.devices {
		if !found[name] {
			*d = tracked{}
			f.Devices = append(f.Devices, Device{Dev: name, Directions: []Direction{}, Gone: true})
		}
	}
	slices.SortFunc(f.Devices, func(a, b Device) int { return strings.Compare(a.Dev, b.Dev) })
	return f
}

func (d *tracked) update(s shaper.State) Device {
	out := Device{Dev: s.Dev, Engine: s.Engine, Directions: []Direction{}, Foreign: s.Foreign}
	for _, c := range s.Drift {
		out.Drift = append(out.Drift, c.String())
	}
	before := shaper.State{}
	if d.last != nil {
		// Two observations of the same instant would divide by nothing.
		if out.Seconds = s.At.Sub(d.last.At).Seconds(); out.Seconds <= 0 {
			out.Seconds = 0
		}
		// Another engine counts from 0 again.
		if d.last.Engine == s.Engine {
			before = *d.last
		}
	}
	if d.history == nil {
		d.history = map[series][]float64{}
	}
	for _, side := range []struct {
		name     string
		tree     *group.Tree
		now, was *shaper.DirectionState
	}{{"out", s.Plan.Out, s.Out, before.Out}, {"in", s.Plan.In, s.In, before.In}} {
		if side.tree == nil || side.now == nil {
			continue
		}
		out.Directions = append(out.Directions, d.direction(side.name, *side.tree, side.now, side.was, out.Seconds))
	}
	d.last = &s
	return out
}

func (d *tracked) direction(name string, t group.Tree, now, was *shaper.DirectionState, seconds float64) Direction {
	out := Direction{Name: name, Spare: t.Spare, Assigned: now.Assigned}
	old := map[string]shaper.GroupState{}
	if was != nil {
		// What passed is divided by the time between its own two readings: over that of the whole
		// device's, 20 ms late, a full link of 100 Mbit showed 102, and at --interval 100ms 120.
		if !was.At.IsZero() && !now.At.IsZero() {
			seconds = max(0, now.At.Sub(was.At).Seconds())
		}
		for _, g := range was.Groups {
			old[g.Path] = g
		}
		old[controlPath] = was.Control
	}
	nodes := map[string]group.Node{}
	for _, n := range t.Nodes {
		nodes[n.Path] = n
	}
	for _, g := range now.Groups {
		n := nodes[g.Path]
		r := Row{Path: g.Path, Depth: max(n.Depth, 1), Leaf: n.Leaf, Guarantee: uint64(g.Guarantee), Ceiling: uint64(g.Ceiling)}
		if r.Leaf {
			r.count(g, old[g.Path], seconds)
		}
		out.Groups = append(out.Groups, r)
	}
	sumUp(t, out.Groups)
	out.Total = Row{Path: totalPath, Ceiling: uint64(t.Limit)}
	if now.Control != (shaper.GroupState{}) {
		out.Control = Row{Path: controlPath, Depth: 1, Leaf: true, Guarantee: uint64(now.Control.Guarantee), Ceiling: uint64(now.Control.Ceiling)}
		out.Control.count(now.Control, old[controlPath], seconds)
		out.Total.add(out.Control)
	}
	for _, r := range out.Groups {
		if r.Leaf {
			out.Total.add(r)
		}
	}
	lend(t, out.Groups, out.Control.Rate)
	d.remember(name, &out, seconds)
	return out
}

// count fills in what a group did since it was in the state was.
func (r *Row) count(now, was shaper.GroupState, seconds float64) {
	// A counter that fell, or another class, belongs to a group that was made
	// again in the meantime; it has counted from 0 since.
	if now.Class != was.Class || now.Bytes < was.Bytes || now.Packets < was.Packets || now.Drops < was.Drops || now.Marks < was.Marks {
		was = shaper.GroupState{}
	}
	r.Delay, r.Backlog, r.unknown = now.QueueDelay, now.BacklogBytes, seconds == 0
	if seconds > 0 {
		r.Rate = float64(now.Bytes-was.Bytes) * 8 / seconds
		r.Drops = float64(now.Drops-was.Drops) / seconds
		r.Marks = float64(now.Marks-was.Marks) / seconds
		if now.Packets == was.Packets {
			r.Delay = 0 // of a packet of long ago
		}
	}
}

func (r *Row) add(o Row) {
	r.Rate += o.Rate
	r.Drops += o.Drops
	r.Marks += o.Marks
	r.Backlog += o.Backlog
	r.Delay = max(r.Delay, o.Delay)
	r.unknown = r.unknown || o.unknown
}

// sumUp gives groups with children what their leaves did, whatever the engine
// counts for them. Rows are in the order of the tree's nodes.
func sumUp(t group.Tree, rows []Row) {
	for i, n := range t.Nodes {
		if !n.Leaf || i >= len(rows) {
			continue
		}
		for p := n.Parent; p >= 0 && p < len(rows); p = t.Nodes[p].Parent {
			rows[p].add(rows[i])
		}
	}
}

// remember adds the rates to the histories and forgets groups that are gone.
func (d *tracked) remember(direction string, out *Direction, seconds float64) {
	rows := []*Row{&out.Total}
	if out.Control.Path != "" {
		rows = append(rows, &out.Control)
	}
	for i := range out.Groups {
		rows = append(rows, &out.Groups[i])
	}
	kept := map[series][]float64{}
	for _, r := range rows {
		key := series{direction, r.Path}
		h := d.history[key]
		if seconds > 0 {
			h = append(h[max(0, len(h)-historyLength+1):len(h):len(h)], r.Rate)
		}
		kept[key], r.History = h, h
	}
	for key := range d.history {
		if key.direction == direction {
			delete(d.history, key)
		}
	}
	for key, h := range kept {
		d.history[key] = h
	}
}
