package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"headgate/group"
	"headgate/shaper"
)

// place puts connections in groups, and gives back to the rules those that the agent, or one
// before it, had put in one, unless somebody has put them elsewhere since, or their groups have
// gone. What was put there by hand stays. A connection that cannot be where it is to be is told of,
// and follows the rules; the others do not wait for it.
func (a *Agent) place(m *memory, e shaper.Shaper) error {
	want := m.want.connections
	if len(want)+len(m.assigned) == 0 {
		return nil
	}
	var gone []shaper.Conn
	var given []shaper.Assignment
	for _, had := range m.assigned {
		if m.want.placed(had.Conn) != "" {
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
	// Written down first, so that who is killed meanwhile leaves none that nobody knows of.
	m.assigned = append(slices.Clone(want), given...)
	a.claim()
	if len(gone) > 0 {
		if err := e.Unassign(m.name, gone); err != nil {
			return err
		}
	}
	leaves := m.want.leaves()
	could := slices.DeleteFunc(slices.Clone(want), func(c shaper.Assignment) bool { return !leaves[c.Group] })
	placed, err := assignMost(e, m.name, could)
	if err != nil && len(placed) == 0 {
		return err
	}
	if left := len(want) - len(placed); left > 0 {
		if err == nil {
			i := slices.IndexFunc(want, func(c shaper.Assignment) bool { return !leaves[c.Group] })
			err = fmt.Errorf("the connection %v: there is no group %q that connections may be in", want[i].Conn, want[i].Group)
		}
		a.say(m, slog.LevelWarn, "some connections cannot be put in their groups, and follow the rules", "connections", left, "error", err)
	}
	m.assigned = placed
	a.claim()
	return nil
}

// leaves are the groups that connections may be in, by path.
func (w *want) leaves() map[string]bool {
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

// assignMost puts those in groups that it can: all at once, or else one half and the other, which
// finds the few that cannot be. The error is of one that cannot.
func assignMost(e shaper.Shaper, dev string, list []shaper.Assignment) (placed []shaper.Assignment, err error) {
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
	first, err := assignMost(e, dev, list[:half])
	second, also := assignMost(e, dev, list[half:])
	if err == nil {
		err = also
	}
	return append(slices.Clone(first), second...), err
}
