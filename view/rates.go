package view

import (
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/usage"
)

// historyLength is the number of rates in a Row's history.
const historyLength = 60

// Tracker computes rates from counters. It keeps the last state of each device. The
// zero Tracker is ready for use.
type Tracker struct {
	devices map[string]*deviceHistory
}

// deviceHistory is the last state and history of a device. A removed device has neither: its
// counters restart when it returns.
type deviceHistory struct {
	last    *shaper.State
	history map[rowKey][]float64
}

// rowKey identifies a row of a device.
type rowKey struct{ direction, path string }

// Empty reports whether Update was never called.
func (t *Tracker) Empty() bool { return t.devices == nil }

// Update takes the current states of all devices, and returns the rates since the last
// call. A device of a former call that is not in states is marked as gone. now is the
// frame's time if states is empty.
func (t *Tracker) Update(now time.Time, states []shaper.State) Frame {
	if t.devices == nil {
		t.devices = map[string]*deviceHistory{}
	}
	f := Frame{At: now, Devices: []Device{}}
	found := map[string]bool{}
	for _, s := range states {
		found[s.Dev] = true
		d := t.devices[s.Dev]
		if d == nil {
			d = &deviceHistory{}
			t.devices[s.Dev] = d
		}
		f.Devices = append(f.Devices, d.update(s))
	}
	if len(states) > 0 {
		f.At = states[len(states)-1].At
	}
	for name, d := range t.devices {
		if !found[name] {
			*d = deviceHistory{}
			f.Devices = append(f.Devices, Device{Dev: name, Directions: []Direction{}, Removed: true})
		}
	}
	slices.SortFunc(f.Devices, func(a, b Device) int { return strings.Compare(a.Dev, b.Dev) })
	return f
}

func (d *deviceHistory) update(s shaper.State) Device {
	out := Device{Dev: s.Dev, Engine: s.Engine, Directions: []Direction{}, Foreign: s.Foreign}
	for _, c := range s.Drift {
		out.Drift = append(out.Drift, c.String())
	}
	before := shaper.State{}
	if d.last != nil {
		// Two observations at the same time have no rate.
		if out.Seconds = s.At.Sub(d.last.At).Seconds(); out.Seconds <= 0 {
			out.Seconds = 0
		}
		before = *d.last
	}
	if d.history == nil {
		d.history = map[rowKey][]float64{}
	}
	was := map[string]map[string]usage.Counters{}
	for _, u := range before.Usage() {
		was[u.Name] = u.Counters()
		if before.Engine != s.Engine { // the counters of a new engine start from 0
			for path, c := range was[u.Name] {
				was[u.Name][path] = usage.Counters{At: c.At}
			}
		}
	}
	for _, now := range s.Usage() {
		tree, state := s.Plan.Out, s.Out
		if now.Name == "in" {
			tree, state = s.Plan.In, s.In
		}
		out.Directions = append(out.Directions, d.direction(*tree, state, was[now.Name], now))
	}
	d.last = &s
	return out
}

// direction returns the rates of one direction since the counters was. Rates use the time between the
// direction's own two readings (usage.Counters.At). With the time of the whole device, a reading that was 20 ms
// late made a full link of 100 Mbit show 102, and 120 at --interval 100ms.
func (d *deviceHistory) direction(t group.Tree, state *shaper.DirectionState, was map[string]usage.Counters, now usage.Direction) Direction {
	out := Direction{Name: now.Name, Spare: t.Spare, Assigned: state.Assigned, Total: Row{Path: totalPath, Ceiling: uint64(t.Limit)}}
	for n, u := range usage.Account(was, now) {
		g := now.Groups[n]
		r := Row{Path: g.Path, Depth: max(t.Nodes[n].Depth, 1), Leaf: g.Leaf, Guarantee: uint64(g.Guarantee), Ceiling: uint64(state.Groups[n].Ceiling)}
		r.set(u, g, state.Groups[n], was[g.Path])
		out.Groups = append(out.Groups, r)
	}
	for n, g := range now.Groups { // a parent has the queues of its leaves
		for p := g.Parent; g.Leaf && p >= 0; p = now.Groups[p].Parent {
			out.Groups[p].queue(out.Groups[n])
		}
	}
	if state.Control != (shaper.GroupState{}) {
		out.Control = Row{Path: usage.ControlPath, Depth: 1, Leaf: true, Guarantee: uint64(state.Control.Guarantee), Ceiling: uint64(state.Control.Ceiling)}
		g := usage.Group{Path: usage.ControlPath, Parent: -1, Leaf: true, Counters: now.Control}
		out.Control.set(usage.Account(was, usage.Direction{Groups: []usage.Group{g}})[0], g, state.Control, was[g.Path])
		out.Control.Borrowed = 0 // control traffic has no guarantee to exceed
		out.Total.add(out.Control)
	}
	for _, r := range out.Groups {
		if r.Leaf {
			out.Total.add(r)
		}
	}
	d.recordHistory(now.Name, &out)
	return out
}

// set fills in the usage of a group since it had the counters was.
func (r *Row) set(u usage.Usage, g usage.Group, now shaper.GroupState, was usage.Counters) {
	r.unknown = u.Seconds <= 0
	if g.Leaf {
		r.Delay, r.Backlog = now.QueueDelay, now.BacklogBytes
	}
	if r.unknown {
		return
	}
	r.Rate, r.Borrowed, r.Lent = u.Rate(u.Delivered), u.Rate(u.Borrowed), u.Rate(u.Lent)
	r.Drops, r.Marks = float64(u.Drops)/u.Seconds, float64(u.Marks)/u.Seconds
	if g.Packets == was.Packets {
		r.Delay = 0 // of a packet that left long ago
	}
}

func (r *Row) add(o Row) {
	r.Rate += o.Rate
	r.Drops += o.Drops
	r.Marks += o.Marks
	r.queue(o)
	r.unknown = r.unknown || o.unknown
}

func (r *Row) queue(o Row) {
	r.Backlog += o.Backlog
	r.Delay = max(r.Delay, o.Delay)
}

// recordHistory appends the rates to the histories, and deletes the histories of removed groups.
func (d *deviceHistory) recordHistory(direction string, out *Direction) {
	rows := []*Row{&out.Total}
	if out.Control.Path != "" {
		rows = append(rows, &out.Control)
	}
	for i := range out.Groups {
		rows = append(rows, &out.Groups[i])
	}
	kept := map[rowKey][]float64{}
	for _, r := range rows {
		key := rowKey{direction, r.Path}
		h := d.history[key]
		if !out.Total.unknown {
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
