package report

import (
	"fmt"
	"io"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/unit/rounded"
)

// Progress returns a function that prints events, and a line of delivered rates for each
// sample. The rates are those of flows or, without flows, of the links' forward direction.
func Progress(w io.Writer, t *lab.Topology) func(lab.Sample) {
	heading := "seconds"
	for _, f := range t.Flows {
		heading += fmt.Sprintf(" %12s", f.Name)
	}
	if len(t.Flows) == 0 {
		for _, name := range t.LinkNames() {
			heading += fmt.Sprintf(" %12s", name)
		}
	}
	fmt.Fprintf(w, "%s\n", heading)
	told := 0
	return func(s lab.Sample) {
		for _, e := range s.Events[told:] {
			fmt.Fprintf(w, "%7.1f %s\n", e.HappenedSeconds, e.What)
		}
		told = len(s.Events)
		line := fmt.Sprintf("%7.1f", s.Seconds)
		for _, f := range s.Flows {
			line += fmt.Sprintf(" %12s", rounded.Rate(f.DeliveredRate()))
		}
		if len(s.Flows) == 0 {
			for _, l := range s.Links {
				line += fmt.Sprintf(" %12s", rounded.Rate(l.Forward.Rate()))
			}
		}
		fmt.Fprintf(w, "%s\n", line)
	}
}
