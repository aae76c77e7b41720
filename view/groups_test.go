package view

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/golden"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// TestGroupRates checks rates from two observations. A group that was recreated in between has
// no rate.
func TestGroupRates(t *testing.T) {
	tree := &group.Tree{Limit: 100 * unit.Mbit, Spare: group.Equal, Nodes: []group.Node{
		{Path: "web", Depth: 1, Leaf: true}, {Path: "new", Depth: 1, Leaf: true},
	}}
	at := time.Unix(1700000000, 0)
	state := func(at time.Time, web, fresh, control uint64) shaper.State {
		return shaper.State{
			Dev: "eth0", Engine: group.HTB, At: at, Plan: shaper.Plan{Dev: "eth0", Out: tree},
			Out: &shaper.DirectionState{
				At: at,
				Groups: []shaper.GroupState{
					{Path: "web", Class: "1:10", Guarantee: unit.Mbit, Ceiling: unit.Gbit, Bytes: web, Drops: 3, Marks: 4, BacklogBytes: 2048, QueueDelay: time.Millisecond},
					{Path: "new", Class: "1:11", Bytes: fresh},
				},
				Control: shaper.GroupState{Class: "1:2", Bytes: control},
			},
			Foreign: []string{"qdisc ingress ffff:"}, Drift: []shaper.Change{{Verb: "change", Object: "out group web"}},
		}
	}
	var b bytes.Buffer
	before := []shaper.State{state(at, 1000, 5000, 0)}
	after := []shaper.State{state(at.Add(2*time.Second), 1000+25_000_000, 10, 250)}
	if err := WriteGroups(&b, after, before); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/rates.txt", b.String())
}

// TestRatesOfEachDirection checks that rates use the times of each direction's own readings.
func TestRatesOfEachDirection(t *testing.T) {
	tree := &group.Tree{Limit: 10 * unit.Mbit, Nodes: []group.Node{{Path: "web", Depth: 1, Leaf: true}}}
	at := time.Unix(1700000000, 0)
	state := func(after, out, in time.Duration, bytes uint64) []shaper.State {
		direction := func(after time.Duration) *shaper.DirectionState {
			return &shaper.DirectionState{At: at.Add(after), Groups: []shaper.GroupState{{Path: "web", Bytes: bytes}}}
		}
		return []shaper.State{{Dev: "eth0", Engine: group.HTB, At: at.Add(after), Plan: shaper.Plan{Out: tree, In: tree}, Out: direction(out), In: direction(in)}}
	}
	var b bytes.Buffer
	if err := WriteGroups(&b, state(time.Second, 1250*time.Millisecond, 2*time.Second, 1_250_000), state(0, 0, 0, 0)); err != nil {
		t.Fatal(err)
	}
	var rates []string
	for line := range strings.Lines(b.String()) {
		if words := strings.Fields(line); words[0] == "web" {
			rates = append(rates, words[3])
		}
	}
	if want := []string{"8.00Mbit", "5.00Mbit"}; !slices.Equal(rates, want) {
		t.Errorf("the rates are %v, want %v:\n%s", rates, want, b.String())
	}
}

// TestShowQuantum checks that the state of the quantum algorithm is shown.
func TestShowQuantum(t *testing.T) {
	tree := &group.Tree{Limit: 8 * unit.Mbit, Nodes: []group.Node{{Path: "web", Depth: 1, Leaf: true}, {Path: "rest", Depth: 1, Leaf: true}}}
	st := shaper.State{Dev: "eth0", Engine: group.Quantum, Plan: shaper.Plan{Dev: "eth0", Out: tree}, Out: &shaper.DirectionState{
		Groups: []shaper.GroupState{
			{Path: "web", Class: "10", Guarantee: 4 * unit.Mbit, Ceiling: 8 * unit.Mbit, Bytes: 1000, Packets: 1, Drops: 3, Marks: 4,
				Quantum: &shaper.QuantumGroupState{Actual: 7 * unit.Mbit, ActualBytes: 875_000, Mode: shaper.Enforcement}},
			{Path: "rest", Class: "11", Guarantee: 4 * unit.Mbit, Quantum: &shaper.QuantumGroupState{Mode: shaper.Normal}},
		},
		Control: shaper.GroupState{Class: "2"},
		Quantum: &shaper.QuantumState{
			Mode: shaper.Enforcement, Quantum: time.Second, StepBytes: 1500, Overdraft: true, LimitBytes: 1_000_000, PoolBytes: 125_000, Pool: unit.Mbit, Resets: 14,
		},
	}}
	var b bytes.Buffer
	if err := WriteGroups(&b, []shaper.State{st}, nil); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/show_quantum.txt", b.String())
}

func TestQueueType(t *testing.T) {
	for queues, want := range map[string]string{"fq_codel": "connections, queues fq_codel;", "fifo": "connections, queues fifo;", "": "connections;"} {
		var out strings.Builder
		st := shaper.State{Dev: "eth0", Plan: shaper.Plan{Out: &group.Tree{}}, Out: &shaper.DirectionState{Queues: queues}}
		if err := WriteGroups(&out, []shaper.State{st}, nil); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%q: %v in\n%s", queues, err, out.String())
		}
	}
}

// The column of origins is left out if files created all groups.
func TestShowOrigins(t *testing.T) {
	tree := &group.Tree{Nodes: []group.Node{{Path: "shop", Depth: 1}, {Path: "shop/web", Depth: 2, Leaf: true}}}
	for _, c := range []struct {
		web  group.Origin
		want string
	}{{group.OriginTenant, "  web  tenant"}, {group.OriginFile, ""}} {
		var out strings.Builder
		st := shaper.State{Dev: "eth0", Plan: shaper.Plan{Out: tree}, Out: &shaper.DirectionState{Groups: []shaper.GroupState{
			{Path: "shop", Origin: "file"}, {Path: "shop/web", Origin: c.web.String()},
		}}}
		err := WriteGroups(&out, []shaper.State{st}, nil)
		if err != nil || !strings.Contains(out.String(), c.want) || strings.Contains(out.String(), "ORIGIN") != (c.want != "") {
			t.Errorf("%v: %v in\n%s", c.web, err, out.String())
		}
	}
}
