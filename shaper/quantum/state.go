package quantum

import (
	"fmt"
	"time"

	"github.com/cilium/ebpf"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/attach"
	"headgate.dev/headgate/shaper/classifier"
	"headgate.dev/headgate/unit"
)

// Observe reads the actual state and the counters.
func (e *Engine) Observe(dev string) (st shaper.State, err error) {
	err = with(dev, func(_ *nl.Conn, d *attach.Device) (err error) {
		st, err = state(d)
		return err
	})
	return st, err
}

// ObserveAll observes several devices concurrently.
func (e *Engine) ObserveAll(devs []string) []shaper.Observed {
	return attach.ObserveAll(devs, group.Quantum, func(_ *nl.Conn, d *attach.Device) (shaper.State, error) { return state(d) })
}

func state(d *attach.Device) (shaper.State, error) {
	st := shaper.State{Dev: d.Name(), Engine: group.Quantum, At: time.Now()}
	ours := false
	for i := range d.Sides {
		s := &d.Sides[i]
		st.Foreign = append(st.Foreign, s.After...)
		if s.Record == nil {
			continue
		}
		ours, st.Plan = true, s.Record.Plan
		dir, err := direction(s)
		if err != nil {
			return st, err
		}
		if s.Record.In {
			st.In = dir
		} else {
			st.Out = dir
		}
	}
	if !ours {
		return st, fmt.Errorf("device %s %w", st.Dev, shaper.ErrNotShaped)
	}
	if m, err := newTransition(d, st.Plan); err == nil && !m.empty() {
		st.Drift = m.changes()
	}
	return st, nil
}

func direction(s *attach.Side) (*shaper.DirectionState, error) {
	t := s.Record.Tree()
	at := time.Now()
	counters, err := classifier.ReadCounters(s.Maps[classifier.Counters])
	if err != nil {
		return nil, err
	}
	hits, err := classifier.ReadHits(s.Maps[classifier.RuleHits])
	if err != nil {
		return nil, err
	}
	of := func(id uint16) (shaper.GroupState, error) {
		g := shaper.GroupState{Class: fmt.Sprintf("%x", id)}
		if int(id) < len(counters) {
			c := counters[id]
			g.Bytes, g.Packets, g.Marks = c.Bytes, c.Packets, c.Marks
		}
		var err error
		g.Drops, err = drops(s.Maps[dropsMap], id)
		return g, err
	}
	d := &shaper.DirectionState{At: at, RuleHits: hits[:min(len(hits), len(t.Rules))]}
	for _, n := range t.Nodes {
		g, err := of(s.Record.Class(n))
		if err != nil {
			return nil, err
		}
		g.Path, g.Guarantee, g.Ceiling = n.Path, n.Guarantee, n.Ceiling
		d.Groups = append(d.Groups, g)
	}
	if d.Control, err = of(controlMinor); err != nil {
		return nil, err
	}
	d.Control.Path = "(control)"
	d.Control.Ceiling = unit.MaxRate // control traffic always passes
	if err := algorithm(s, d); err != nil {
		return nil, err
	}
	d.Assigned, err = s.Assigned()
	return d, err
}

func drops(m *ebpf.Map, id uint16) (sum uint64, err error) {
	var cpus []uint64
	if m == nil {
		return 0, nil
	}
	if err := m.Lookup(uint32(id), &cpus); err != nil {
		return 0, fmt.Errorf("cannot read the drop counters: %w", err)
	}
	for _, n := range cpus {
		sum += n
	}
	return sum, nil
}
