package explain

import (
	"fmt"
	"io"
	"strings"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/unit/rounded"
)

// Write prints the explanation for people.
func (e Explanation) Write(w io.Writer) error {
	fmt.Fprintf(w, "%s on %s\n", e.Packet, e.Dev)
	for _, d := range e.Directions {
		class := ""
		if d.Class != "" {
			class = ", class " + d.Class
		}
		switch d.Reason {
		case "":
			fmt.Fprintf(w, "  %s: not limited\n", d.Direction)
		case "control":
			fmt.Fprintf(w, "  %s: control traffic of group %s: sent first within its budget%s\n", d.Direction, d.Group, class)
			if d.Beyond != "" {
				fmt.Fprintf(w, "       above the budget with the group's other packets, class %s\n", d.Beyond)
			}
		case "assigned":
			fmt.Fprintf(w, "  %s: assigned at run time: group %s%s\n", d.Direction, d.Group, class)
		case "default":
			fmt.Fprintf(w, "  %s: no rule matches: the default group %s%s\n", d.Direction, d.Group, class)
		default:
			fmt.Fprintf(w, "  %s: rule %d (%s): group %s%s\n", d.Direction, *d.Rule, d.Selector, d.Group, class)
			if d.Place != "" {
				fmt.Fprintf(w, "       written in %s\n", d.Place)
			}
		}
		if d.Client != "" {
			fmt.Fprintf(w, "       client %s: a group of its own, up to %v\n", d.Client, d.Ceiling)
		}
		if d.Note != "" {
			fmt.Fprintf(w, "       note: %s\n", d.Note)
		}
	}
	return nil
}

// Write prints the division for people.
func (d Division) Write(w io.Writer) error {
	fmt.Fprintf(w, "%s, expected rates\n", d.Dev)
	for _, x := range d.Directions {
		t := group.Tree{Limit: x.Limit, Spare: x.Spare}
		fmt.Fprintf(w, "  %s: %s\n", x.Direction, t.Describe(group.HTB, rounded.Amount(x.Unused)+" unused"))
		rows := [][]string{{"GROUP", "GUARANTEE", "CEILING", "DEMAND", "RATE", "BORROWED", "LENT", "LIMITED BY"}}
		for _, g := range x.Groups {
			_, name := group.Split(g.Path)
			by := string(g.LimitedBy)
			if g.CeilingOf != "" {
				by += " of " + g.CeilingOf
			}
			demand := g.Demand.String()
			if g.Demand < Unbounded {
				demand = rounded.Amount(uint64(g.Demand))
			}
			rows = append(rows, []string{
				strings.Repeat("  ", strings.Count(g.Path, "/")) + name, rounded.Amount(uint64(g.Guarantee)), rounded.Amount(uint64(g.Ceiling)), demand,
				rounded.Amount(g.Rate), rounded.Amount(g.Borrowed), rounded.Amount(g.Lent), by,
			})
		}
		if err := text.Table(w, "    ", rows); err != nil {
			return err
		}
	}
	return nil
}
