package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
)

// reconcileConnections assigns connections to groups, and unassigns connections that this agent or a previous one
// assigned and that are no longer desired. A connection that was moved to another group since, or
// whose group was removed, is not unassigned. Manual assignments stay. A connection that cannot be
// assigned is logged, and the rules apply to it; the other connections are still assigned.
func (a *Agent) reconcileConnections(m *deviceState, e shaper.Shaper) error {
	want := m.desired.connections
	if len(want)+len(m.assigned) == 0 {
		return nil
	}
	var gone []shaper.Conn
	var given []shaper.Assignment
	for _, had := range m.assigned {
		if m.desired.controllerGroup(had.Conn) != "" {
			continue
		}
		now, err := e.Assigned(m.name, had.Conn)
		if err != nil {
			return err
		}
		if now == had.Group {
			gone, given = append(gone, had.Conn), append(given, had)
		}
	}
	// Written before the assignment, so that no assignment is unknown to the next agent if this one is killed.
	m.assigned = append(slices.Clone(want), given...)
	a.publishState()
	if len(gone) > 0 {
		if err := e.Unassign(m.name, gone); err != nil {
			return err
		}
	}
	leaves := m.desired.leaves()
	could := slices.DeleteFunc(slices.Clone(want), func(c shaper.Assignment) bool { return !leaves[c.Group] })
	placed, err := assignEach(e, m.name, could)
	if err != nil && len(placed) == 0 {
		return err
	}
	if left := len(want) - len(placed); left > 0 {
		if err == nil {
			i := slices.IndexFunc(want, func(c shaper.Assignment) bool { return !leaves[c.Group] })
			err = fmt.Errorf("connection %v: there is no leaf group %q", want[i].Conn, want[i].Group)
		}
		a.logOnce(m, slog.LevelWarn, "cannot assign some connections to their groups; the rules apply to them", "connections", left, "error", err)
	}
	m.assigned = placed
	a.publishState()
	return nil
}

// leaves returns the paths of the leaf groups, to which connections may be assigned.
func (w *DesiredState) leaves() map[string]bool {
	out := map[string]bool{}
	for _, t := range []*group.Tree{w.plan.Out, w.plan.In} {
		if t == nil {
			continue
		}
		for _, n := range t.Nodes {
			if n.Leaf {
				out[n.Path] = true
			}
		}
	}
	return out
}

// assignEach assigns as many connections as possible: all at once, or else each half separately,
// which finds the few that fail. The error is that of one connection that failed.
func assignEach(e shaper.Shaper, dev string, list []shaper.Assignment) (placed []shaper.Assignment, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	err = e.Assign(dev, list)
	switch {
	case err == nil:
		return list, nil
	case len(list) == 1, errors.Is(err, shaper.ErrNoDevice), errors.Is(err, shaper.ErrNotShaped), errors.Is(err, shaper.ErrPermission):
		return nil, err
	}
	half := len(list) / 2
	first, err := assignEach(e, dev, list[:half])
	second, also := assignEach(e, dev, list[half:])
	if err == nil {
		err = also
	}
	return append(slices.Clone(first), second...), err
}
