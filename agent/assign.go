package agent

import (
	"slices"

	"headgate/shaper"
)

// lister is what an engine has that can name the connections that are in groups.
type lister interface {
	Assignments(dev string) ([]shaper.Assignment, error)
}

// assign puts connections in groups, and gives back to the rules those that the agent, or one
// before it, had put in one. What was put there by hand stays.
func (a *Agent) assign(m *memory, e shaper.Shaper) error {
	var want []shaper.Conn
	for _, w := range m.want.connections {
		want = append(want, w.Conn)
	}
	gone := without(m.assigned, want)
	if l, ok := e.(lister); ok && len(gone) > 0 {
		// They may be gone with what was in force before, or were never put there.
		there, err := l.Assignments(m.name)
		if err != nil {
			return err
		}
		are := map[shaper.Conn]bool{}
		for _, t := range there {
			are[t.Conn], are[shaper.Conn{Proto: t.Conn.Proto, A: t.Conn.B, B: t.Conn.A}] = true, true
		}
		gone = slices.DeleteFunc(gone, func(c shaper.Conn) bool { return !are[c] })
	}
	// Written down first, so that who is killed meanwhile leaves none that nobody knows of.
	m.assigned = append(slices.Clone(want), gone...)
	a.claim()
	if len(gone) > 0 {
		if err := e.Unassign(m.name, gone); err != nil {
			return err
		}
	}
	if len(want) > 0 {
		if err := e.Assign(m.name, m.want.connections); err != nil {
			return err
		}
	}
	m.assigned = want
	a.claim()
	return nil
}

// without is a list without what is in another.
func without(list, other []shaper.Conn) (out []shaper.Conn) {
	in := map[shaper.Conn]bool{}
	for _, c := range other {
		in[c] = true
	}
	for _, c := range list {
		if !in[c] {
			out = append(out, c)
		}
	}
	return out
}
