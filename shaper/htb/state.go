package htb

import (
	"fmt"
	"time"

	"github.com/cilium/ebpf"

	"headgate/group"
	"headgate/internal/nl"
	"headgate/shaper"
	"headgate/shaper/classifier"
)

// Observe reads what is in force and what it has carried.
func (e *Engine) Observe(dev string) (shaper.State, error) {
	var st shaper.State
	err := with(dev, func(c *nl.Conn, k *kernel) (err error) {
		st, err = k.state()
		return err
	})
	return st, err
}

func (k *kernel) state() (shaper.State, error) {
	st := shaper.State{Dev: k.dev.Attrs().Name, Engine: group.HTB, At: time.Now(), Foreign: k.foreign}
	ours := false
	for i := range k.sides {
		s := &k.sides[i]
		if s.record == nil || s.record.Engine != group.HTB {
			continue
		}
		ours, st.Plan = true, s.record.Plan
		d, err := s.direction()
		if err != nil {
			return st, err
		}
		if s.record.In {
			st.In = d
		} else {
			st.Out = d
		}
	}
	if !ours {
		return st, fmt.Errorf("device %s %w", st.Dev, shaper.ErrNotShaped)
	}
	if m, err := newMove(k, st.Plan); err == nil && !m.empty() {
		st.Drift = m.changes()
	}
	return st, nil
}

func (s *side) direction() (*shaper.DirectionState, error) {
	t := s.record.Tree()
	counters, err := readCounters(s.maps[classifier.Counters])
	if err != nil {
		return nil, err
	}
	queued, err := readQueues(s.maps[queues])
	if err != nil {
		return nil, err
	}
	hits, err := readHits(s.maps[classifier.RuleHits])
	if err != nil {
		return nil, err
	}
	d := &shaper.DirectionState{RuleHits: hits[:min(len(hits), len(t.Rules))]}
	for _, n := range t.Nodes {
		g := s.group(s.record.Classes[idKey(n)], counters, queued)
		g.Path, g.Guarantee, g.Ceiling = n.Path, n.Guarantee, n.Ceiling
		d.Groups = append(d.Groups, g)
	}
	d.Control = s.group(controlMinor, counters, queued)
	d.Control.Path = "(control)"
	d.Control.Guarantee, d.Control.Ceiling = t.Limit/controlPart, t.Limit/controlCeiling
	d.Assigned, err = countAssigned(s.maps[classifier.Assigned], s.record.In)
	return d, err
}

// group joins what HTB and the classifier know of a class. HTB's bytes are what
// left the queue; drops are the leaf's, which counts segments one by one.
func (s *side) group(minor uint16, counters []classifier.Counter, queued []queue) shaper.GroupState {
	c, l := s.tree.classes[minor], s.tree.leaves[minor]
	g := shaper.GroupState{
		Class: classHandle(minor).String(), Bytes: c.stats.Bytes, Packets: c.stats.Packets,
		Drops: max(c.stats.Drops, l.stats.Drops), BacklogBytes: c.stats.BacklogBytes,
	}
	if int(minor) < len(counters) {
		g.Marks = counters[minor].Marks
	}
	if int(minor) < len(queued) {
		g.QueueDelay = time.Duration(queued[minor].SojournNS)
	}
	return g
}

func readCounters(m *ebpf.Map) ([]classifier.Counter, error) {
	if m == nil {
		return nil, nil
	}
	out := make([]classifier.Counter, 0, m.MaxEntries())
	for i := range m.MaxEntries() {
		var cpus []classifier.Counter
		if err := m.Lookup(i, &cpus); err != nil {
			return nil, fmt.Errorf("cannot read the counters: %w", err)
		}
		var sum classifier.Counter
		for _, c := range cpus {
			sum.Packets, sum.Bytes, sum.Marks = sum.Packets+c.Packets, sum.Bytes+c.Bytes, sum.Marks+c.Marks
		}
		out = append(out, sum)
	}
	return out, nil
}

func readHits(m *ebpf.Map) ([]uint64, error) {
	if m == nil {
		return nil, nil
	}
	out := make([]uint64, m.MaxEntries())
	for i := range out {
		var cpus []uint64
		if err := m.Lookup(uint32(i), &cpus); err != nil {
			return nil, fmt.Errorf("cannot read the rules' counters: %w", err)
		}
		for _, c := range cpus {
			out[i] += c
		}
	}
	return out, nil
}

func readQueues(m *ebpf.Map) ([]queue, error) {
	if m == nil {
		return nil, nil
	}
	out := make([]queue, m.MaxEntries())
	for i := range out {
		if err := m.Lookup(uint32(i), &out[i]); err != nil {
			return nil, fmt.Errorf("cannot read the queues: %w", err)
		}
	}
	return out, nil
}
