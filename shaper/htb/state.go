package htb

import (
	"fmt"
	"time"

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
	st := shaper.State{Dev: k.Name(), Engine: group.HTB, At: time.Now(), Foreign: k.Sides[egress].After}
	ours := false
	for i := range k.sides {
		s := &k.sides[i]
		if s.Record == nil {
			continue
		}
		ours, st.Plan = true, s.Record.Plan
		d, err := s.direction()
		if err != nil {
			return st, err
		}
		if s.Record.In {
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
	t := s.Record.Tree()
	counters, err := classifier.ReadCounters(s.Maps[classifier.Counters])
	if err != nil {
		return nil, err
	}
	queued, err := readQueues(s.Maps[queues])
	if err != nil {
		return nil, err
	}
	hits, err := classifier.ReadHits(s.Maps[classifier.RuleHits])
	if err != nil {
		return nil, err
	}
	d := &shaper.DirectionState{RuleHits: hits[:min(len(hits), len(t.Rules))], Queues: s.tree.queues()}
	for _, n := range t.Nodes {
		g := s.group(s.Record.Class(n), counters, queued)
		g.Path, g.Guarantee, g.Ceiling = n.Path, n.Guarantee, n.Ceiling
		d.Groups = append(d.Groups, g)
	}
	d.Control = s.group(controlMinor, counters, queued)
	d.Control.Path = "(control)"
	d.Control.Guarantee, d.Control.Ceiling = t.Limit/controlPart, t.Limit/controlCeiling
	d.Assigned, err = s.Assigned()
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
	if l.child != "" {
		g.BacklogBytes = l.stats.BacklogBytes
	}
	if int(minor) < len(counters) {
		g.Marks = counters[minor].Marks
	}
	if int(minor) < len(queued) {
		g.QueueDelay = time.Duration(queued[minor].SojournNS)
	}
	return g
}

// queues is what the leaves are: fq_codel if all of them are.
func (t tree) queues() string {
	for _, l := range t.leaves {
		if l.flows.Flows == 0 {
			return "fifo"
		}
	}
	if len(t.leaves) == 0 {
		return "fifo" // somebody took ours away, and HTB makes its own
	}
	return nl.FQCodelKind
}
