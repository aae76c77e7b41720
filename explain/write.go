package explain

import (
	"fmt"
	"io"
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
