package summary

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/unit/rounded"
)

// Write prints the description for people.
func (r Report) Write(w io.Writer) error {
	for _, c := range r.Collectives {
		fmt.Fprintf(w, "set %s: %v (%s:%d)\n", c.Name, c, c.File, c.Line)
	}
	for _, s := range r.Servers {
		fmt.Fprintf(w, "%s between %s (%s:%d)\n", s.Measure, text.Count(len(s.Servers), "server"), s.File, s.Line)
		for _, name := range slices.Sorted(maps.Keys(s.Servers)) {
			fmt.Fprintf(w, "  %s at %s\n", name, s.Servers[name])
		}
	}
	for _, one := range r.Relays {
		one.write(w)
	}
	for _, one := range r.Networks {
		if err := one.write(w); err != nil {
			return err
		}
	}
	for _, one := range r.Reservations {
		one.write(w)
	}
	for n, i := range r.Interfaces {
		if n > 0 {
			fmt.Fprintln(w)
		}
		name := i.Dev
		if i.Written != "" {
			name += ", written as " + i.Written
		}
		fmt.Fprintf(w, "%s (%s:%d), seen from the %s, enforced by %s\n", name, i.File, i.Line, i.Perspective, i.Engine)
		if i.Engine == group.Quantum {
			fmt.Fprintf(w, "  %s\n", i.Options.Describe())
		}
		if i.Overhead != (group.Overhead{}) {
			fmt.Fprintf(w, "  overhead: %v added to each packet, counted size at least %v\n", i.Overhead.Frame, i.Overhead.Minimum)
		}
		for _, d := range []struct {
			name string
			tree *group.Tree
		}{{"out", i.Out}, {"in", i.In}} {
			if d.tree == nil {
				continue
			}
			if err := treeTable(w, d.name, i.Engine, *d.tree); err != nil {
				return err
			}
		}
	}
	return nil
}

// treeTable prints a direction: its groups as a table, child groups indented, and
// its rules in the order in which they are matched.
func treeTable(w io.Writer, name string, e group.Engine, t group.Tree) error {
	fmt.Fprintf(w, "  %s: %s\n", name, t.Describe(e, text.Count(len(t.Nodes), "group")))
	rows := [][]string{{"GROUP", "GUARANTEE", "CEILING", ""}}
	for i, n := range t.Nodes {
		note := ""
		if i == t.Default {
			note = "default"
		}
		if text := clientsText(n); text != "" {
			note = strings.TrimPrefix(note+"; "+text, "; ")
		}
		label := strings.Repeat("  ", n.Depth-1) + n.Path[strings.LastIndexByte(n.Path, '/')+1:]
		rows = append(rows, []string{label, rounded.Amount(uint64(n.Guarantee)), rounded.Amount(uint64(n.Ceiling)), note})
	}
	if err := text.Table(w, "    ", rows); err != nil || len(t.Rules) == 0 {
		return err
	}
	rows = [][]string{{"RULE", "MATCHES", "GROUP"}}
	for i, r := range t.Rules {
		rows = append(rows, []string{fmt.Sprint(i), r.Selector.String(), t.Nodes[r.Node].Path})
	}
	return text.Table(w, "    ", rows)
}

// clientsText describes the guarantee and ceiling of each client of a group with each; "" for another group.
func clientsText(n group.Node) string {
	c := n.Clients
	if c.IsZero() {
		return ""
	}
	return fmt.Sprintf("each %v: %s to %v, %s", c.Each, rounded.Amount(uint64(c.Guarantee)), c.Ceiling, text.Count(c.Most, "client"))
}
