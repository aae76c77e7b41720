package doctor

import (
	"fmt"
	"io"

	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/unit/rounded"
)

// Write prints the report for people: a row for each check, with its meaning, and the remedy, if any, in
// a row below it.
func (r Report) Write(w io.Writer) error {
	about := ""
	var rows [][]string
	flush := func() error {
		err := text.Table(w, "  ", rows)
		rows = nil
		return err
	}
	for _, c := range r.Checks {
		if c.About != about {
			if err := flush(); err != nil {
				return err
			}
			about = c.About
			fmt.Fprintln(w, about)
		}
		name := c.Name
		if c.Found != "" {
			name += ": " + c.Found
		}
		rows = append(rows, []string{string(c.State), text.Truncate(name, nameWidth), c.Meaning})
		if c.Remedy != "" {
			rows = append(rows, []string{"", "", "-> " + c.Remedy})
		}
	}
	if err := flush(); err != nil {
		return err
	}
	if m := r.Throughput; m != nil {
		fmt.Fprintf(w, "throughput of this machine, %s sending, no receiver\n", text.Count(m.Senders, "CPU"))
		rows = [][]string{
			{"", "60-BYTE FRAMES", "64-KB PACKETS"},
			{"with groups", humanCount(m.PacketsPerSecond) + "/s", rounded.Rate(float64(m.Bandwidth))},
			{"without groups", humanCount(m.WithoutPPS) + "/s", rounded.Rate(float64(m.BandwidthWithout))},
		}
		if err := flush(); err != nil {
			return err
		}
	}
	verdict := "groups can be enforced"
	switch {
	case r.NotPermitted:
		verdict = "cannot determine whether groups can be enforced"
	case !r.OK:
		verdict = "groups cannot be enforced"
	}
	_, err := fmt.Fprintln(w, verdict)
	return err
}

// nameWidth limits a check's name in the table; -o json has the whole text.
const nameWidth = 48

func humanCount(n float64) string {
	switch {
	case n >= 1e6:
		return rounded.Digits(n/1e6) + " million"
	case n >= 1e3:
		return rounded.Digits(n/1e3) + " thousand"
	}
	return rounded.Digits(n)
}
