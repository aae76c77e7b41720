package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/limiter"
	"headgate.dev/headgate/probe/measure"
	"headgate.dev/headgate/probe/path"
)

// reportTable prints a report as a table with a column for each direction.
func reportTable(w io.Writer, m *path.Report) error {
	head := m.Host
	if m.RTT > 0 {
		head += fmt.Sprintf(", round trip %v", m.RTT.Round(10*time.Microsecond))
	}
	fmt.Fprintln(w, head)
	rows := [][]string{{"PATH"}}
	var answers []*path.Answer
	for _, d := range probe.Directions {
		if a := m.Directions[d]; a != nil {
			rows[0] = append(rows[0], strings.ToUpper(string(d)))
			answers = append(answers, a)
		}
	}
	add := func(name string, cell func(*path.Answer) string) {
		row := []string{name}
		some := false
		for _, a := range answers {
			text := cell(a)
			some = some || text != ""
			row = append(row, text)
		}
		if some {
			rows = append(rows, row)
		}
	}
	for _, r := range answerRows {
		add(r.name, r.cell)
	}
	if err := text.Table(w, "", rows); err != nil {
		return err
	}
	for i, a := range answers {
		for _, f := range a.Flaws {
			fmt.Fprintf(w, "%s: %s\n", strings.ToLower(rows[0][i+1]), f)
		}
	}
	return nil
}

// answerRows are the rows of the table. A row without values is left out.
var answerRows = []struct {
	name string
	cell func(*path.Answer) string
}{
	{"capacity", func(a *path.Answer) string {
		if a.Capacity == nil {
			return ""
		}
		return rateText(*a.Capacity)
	}},
	{"token rate", func(a *path.Answer) string {
		if a.TokenRate == nil {
			return ""
		}
		return rateText(a.TokenRate.Rate)
	}},
	{"  of IP packets", func(a *path.Answer) string {
		if a.TokenRate == nil || !a.TokenRate.Rate.Known() {
			return ""
		}
		return bitRate(a.TokenRate.Rate.Value * a.LayerThree)
	}},
	{"bucket", func(a *path.Answer) string {
		if a.TokenRate == nil {
			return ""
		}
		return estimateText(a.TokenRate.Bucket, func(v float64) string { return sizeText(v) })
	}},
	{"either", func(a *path.Answer) string {
		if a.TokenRate == nil || a.TokenRate.Joint == nil {
			return ""
		}
		j := a.TokenRate.Joint
		return fmt.Sprintf("token rate >= %s, or bucket + rate * %.0f ms >= %s", bitRate(j.Rate), j.Took*1e3, j.Bytes)
	}},
	{"limiter", func(a *path.Answer) string {
		if a.Limiter == nil {
			return ""
		}
		return limiterText(a.Limiter)
	}},
	{"available", func(a *path.Answer) string {
		if a.Available == nil {
			return ""
		}
		return rateText(a.Available.Available)
	}},
	{"lost", func(a *path.Answer) string {
		if a.Lost == 0 {
			return ""
		}
		return fmt.Sprintf("%.2f %%", a.Lost*100)
	}},
	{"sent", func(a *path.Answer) string {
		if a.Seconds == 0 {
			return sizeText(float64(a.Bytes))
		}
		return fmt.Sprintf("%s in %.2f s", sizeText(float64(a.Bytes)), a.Seconds)
	}},
}

// watchTable prints a line with the extra tokens and changes of each direction.
func watchTable(to io.Writer, w *measure.WatchReport) error {
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
			rate = bitRate(seen.Levels[n-1].Rate)
		}
		if g := seen.TokenGrants; g != nil {
			gifts = fmt.Sprintf("%s every %s", estimateText(g.Size, sizeText), estimateText(g.Every, func(v float64) string { return fmt.Sprintf("%.2f s", v) }))
		}
		for i, c := range seen.Changes {
			if i == 0 {
				changes = ""
			} else {
				changes += "; "
			}
			changes += fmt.Sprintf("at %.1f s from %s to %s", c.At, bitRate(c.From), bitRate(c.To))
		}
		rows = append(rows, append(row, rate, gifts, changes))
	}
	fmt.Fprintln(to, w.Host)
	return text.Table(to, "", rows)
}

func rateText(e probe.Estimate) string { return e.Format(probe.FormatRate) }

// Number formats of package probe.
var bitRate, sizeText, estimateText = probe.FormatRate, probe.FormatBytes, probe.Estimate.Format

// limiterText returns the limiter type with its parameters.
func limiterText(r *limiter.Result) string {
	text := string(r.Class)
	switch {
	case r.Cannot != "":
		return "cannot estimate: " + r.Cannot
	case r.Ticks != nil:
		text += fmt.Sprintf(", %s packets every %s", plain(r.Ticks.Packets), milliseconds(r.Ticks.Interval))
	case r.Class == limiter.Scheduling && len(r.Schedules) > 0:
		s := r.Schedules[0]
		text += fmt.Sprintf(" of the %s, %s active, %s asleep", s.At, milliseconds(s.Active), milliseconds(s.Sleeping))
	case r.Class == limiter.CPU && r.Rate != nil:
		text += ", " + rateText(*r.Rate)
	}
	return text
}

func plain(e probe.Estimate) string {
	return estimateText(e, func(v float64) string { return fmt.Sprintf("%.4g", v) })
}

func milliseconds(e probe.Estimate) string {
	return estimateText(e, func(v float64) string { return fmt.Sprintf("%.4gms", v/1e6) })
}
