package agent

import (
	"slices"

	"headgate/shaper"
)

// place puts connections in groups, and gives back to the rules those that the agent, or one
// before it, had put in one, unless somebody has put them elsewhere since, or their groups have
// gone. What was put there by hand stays.
func (a *Agent) place(m *memory, e shaper.Shaper) error {
	want := m.want.connections
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
	if len(want) > 0 {
		if err := e.Assign(m.name, want); err != nil {
			return err
		}
	}
	m.assigned = want
	a.claim()
	return nil
}
