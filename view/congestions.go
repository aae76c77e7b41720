package view

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"headgate.dev/headgate/collective/host"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/unit/rounded"
)

// WriteCongestions prints the congestions of sets since a time.
func WriteCongestions(to io.Writer, reports []host.Report, since time.Time) error {
	if len(reports) == 0 {
		_, err := fmt.Fprintf(to, "no congestion since %s\n", since.Local().Format(time.DateTime))
		return err
	}
	for i, r := range reports {
		if i > 0 {
			fmt.Fprintln(to)
		}
		name := r.Set
		if r.Destination != "" {
			name += " to " + r.Destination
		}
		fmt.Fprintf(to, "set %s: %s since %s, %v in all\n", name, text.Count(r.Congestions, "congestion"), since.Local().Format(time.DateTime), r.Duration.Round(time.Second))
		if r.DryRun {
			fmt.Fprintln(to, "nothing was capped (--dry-run)")
		}
		if r.Suspended > 0 {
			fmt.Fprintf(to, "suspended in %s, because it carried less than ordinary connections would have\n", text.Count(r.Suspended, "congestion"))
		}
		w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "SERVICE\tMEANT\tHAD\tRATE\tIN PROPORTION\tRETRANSMITTED")
		for _, s := range r.Services {
			meant, had, rate := "-", "-", "-"
			if s.Meant > 0 {
				meant, had, rate = percent(s.Meant), percent(s.Had), rounded.Rate(float64(s.RateMeant))
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", s.Service, meant, had, rounded.Rate(float64(s.Rate)), rate, percent(s.Resent))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}
