package report

import (
	"fmt"
	"io"

	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/measure"
)

// WriteWatch prints a line with the extra tokens and changes of each direction.
func WriteWatch(to io.Writer, w *measure.WatchReport) error {
	rows := [][]string{{"DIRECTION", "WATCHED", "SENT", "RATE", "EXTRA TOKENS", "CHANGES"}}
	for _, d := range probe.Directions {
		seen := w.Directions[d]
		if seen == nil {
			continue
		}
		row := []string{string(d), fmt.Sprintf("%.1f s", seen.Took), seen.Bytes.String()}
		if seen.Cannot != "" {
			rows = append(rows, append(row, "cannot estimate: "+seen.Cannot))
			continue
		}
		rate, gifts, changes := "", "none", "none"
		if n := len(seen.Levels); n > 0 {
			rate = probe.FormatRate(seen.Levels[n-1].Rate)
		}
		if g := seen.TokenGrants; g != nil {
			gifts = fmt.Sprintf("%s every %s", g.Size.Format(probe.FormatBytes), g.Every.Format(func(v float64) string { return fmt.Sprintf("%.2f s", v) }))
		}
		for i, c := range seen.Changes {
			if i == 0 {
				changes = ""
			} else {
				changes += "; "
			}
			changes += fmt.Sprintf("at %.1f s from %s to %s", c.At, probe.FormatRate(c.From), probe.FormatRate(c.To))
		}
		rows = append(rows, append(row, rate, gifts, changes))
	}
	fmt.Fprintln(to, w.Host)
	return text.Table(to, "", rows)
}
