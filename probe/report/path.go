package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/limiter"
	"headgate.dev/headgate/probe/path"
)

// Write prints a report as a table with a column for each direction.
func Write(w io.Writer, m *path.Report) error {
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
		if a.TokenRate == nil || !a.TokenRate.Rate.WithoutCarried().Known() {
			return ""
		}
		return probe.FormatRate(a.TokenRate.Rate.Value * a.LayerThree)
	}},
	{"  held for", func(a *path.Answer) string {
		if a.TokenRate == nil || a.TokenRate.Held == 0 || !a.TokenRate.Rate.Known() {
			return ""
		}
		if a.TokenRate.Rate.AtLeast {
			return probe.FormatBytes(float64(a.TokenRate.Held))
		}
		return fmt.Sprintf("%s, %v", probe.FormatBytes(float64(a.TokenRate.Held)), time.Duration(a.TokenRate.HeldSeconds*1e9).Round(time.Millisecond))
	}},
	{"bucket", func(a *path.Answer) string {
		if a.TokenRate == nil {
			return ""
		}
		return a.TokenRate.Bucket.Format(probe.FormatBytes)
	}},
	{"either", func(a *path.Answer) string {
		if a.TokenRate == nil || a.TokenRate.Joint == nil {
			return ""
		}
		j := a.TokenRate.Joint
		return fmt.Sprintf("the token rate is at least %s, or the bucket lets %s pass within %v", probe.FormatRate(j.Rate), probe.FormatBytes(float64(j.Bytes)), time.Duration(j.Took*1e9).Round(10*time.Microsecond))
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
	{"  held for", func(a *path.Answer) string {
		if a.Available == nil || a.Available.Held == 0 || !a.Available.Available.Known() {
			return ""
		}
		return probe.FormatBytes(float64(a.Available.Held))
	}},
	{"credits", func(a *path.Answer) string {
		c := a.Credits
		if c == nil || !c.Baseline.Known() {
			return ""
		}
		if !c.Bucket.Known() {
			return fmt.Sprintf("%s, then %s", rateText(c.Burst), probe.FormatRate(c.Baseline.Value))
		}
		atLeast := ""
		if c.Bucket.AtLeast {
			atLeast = "at least "
		}
		return fmt.Sprintf("%s for %s%v, then %s; fills in %[2]s%[5]v", rateText(c.Burst), atLeast, short(c.Lasts()), probe.FormatRate(c.Baseline.Value), short(c.Fills()))
	}},
	{"lost", func(a *path.Answer) string {
		if a.Lost == 0 {
			return ""
		}
		return fmt.Sprintf("%.2f %%", a.Lost*100)
	}},
	{"sent", func(a *path.Answer) string {
		if a.Seconds == 0 {
			return probe.FormatBytes(float64(a.Bytes))
		}
		return fmt.Sprintf("%s in %.2f s", probe.FormatBytes(float64(a.Bytes)), a.Seconds)
	}},
}

// Line formats the parts of an answer as a line. It leaves out the capacity, unless it is what was measured.
func Line(a *path.Answer, measure string) (text string) {
	for _, row := range answerRows {
		switch row.name {
		case "capacity", "token rate", "bucket", "limiter", "available", "credits":
			if cell := row.cell(a); cell != "" && (row.name != "capacity" || measure == "capacity" || measure == "path") {
				if text != "" {
					text += ", "
				}
				text += row.name + " " + cell
			}
		}
	}
	return text
}

// short rounds a duration to three digits.
func short(d time.Duration) time.Duration {
	step := time.Duration(1)
	for d/step >= 1000 {
		step *= 10
	}
	return d.Round(step)
}

func rateText(e probe.Estimate) string { return e.Format(probe.FormatRate) }

// confident is the confidence in a limiter type from which on it is not printed.
const confident = 0.9

// limiterText returns the limiter type with its parameters.
func limiterText(r *limiter.Result) string {
	text := string(r.Class)
	if r.Class == limiter.None && r.Held > 0 {
		text += " within " + probe.FormatBytes(float64(r.Held))
	}
	if r.Cannot == "" && r.Confidence > 0 && r.Confidence < confident {
		text += fmt.Sprintf(" (confidence %.0f %%)", 100*r.Confidence)
		if n := len(r.Doubts); n > 0 {
			text += ": " + r.Doubts[n-1]
		}
	}
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
	return e.Format(func(v float64) string { return fmt.Sprintf("%.4g", v) })
}

func milliseconds(e probe.Estimate) string {
	return e.Format(func(v float64) string { return fmt.Sprintf("%.4gms", v/1e6) })
}
