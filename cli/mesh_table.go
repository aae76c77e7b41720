package cli

import (
	"fmt"
	"io"

	"headgate/probe"
	"headgate/probe/path"
)

// meshParts are the tables of a mesh's result.
var meshParts = []struct {
	name string
	of   func(*path.Answer) *probe.Estimate
}{
	{"capacity", func(a *path.Answer) *probe.Estimate { return a.Capacity }},
	{"token rate", func(a *path.Answer) *probe.Estimate {
		if a.TokenRate == nil {
			return nil
		}
		return &a.TokenRate.Rate
	}},
	{"available bandwidth", func(a *path.Answer) *probe.Estimate {
		if a.Available == nil {
			return nil
		}
		return &a.Available.Available
	}},
}

// table prints a matrix for each part that was measured, and the reasons of missing values.
func (m *meshRun) table(w io.Writer) error {
	cells := map[[2]string]*meshRow{}
	for i := range m.rows {
		r := &m.rows[i]
		cells[[2]string{r.From, r.To}] = r
	}
	var notes []string
	printed := false
	for _, part := range meshParts {
		some := false
		rows := [][]string{{"FROM \\ TO"}}
		for _, s := range m.list.Servers {
			rows[0] = append(rows[0], s.Name)
		}
		for _, from := range m.list.Servers {
			row := []string{from.Name}
			for _, to := range m.list.Servers {
				text := "-"
				if r := cells[[2]string{from.Name, to.Name}]; r != nil {
					var e *probe.Estimate
					if r.Answer != nil {
						e = part.of(r.Answer)
					}
					some = some || e != nil
					text = meshCell(r, e)
					if e != nil && !e.Known() && r.Failed == "" {
						notes = append(notes, fmt.Sprintf("%s to %s: cannot estimate the %s: %s", r.From, r.To, part.name, e.Reason))
					}
				}
				row = append(row, text)
			}
			rows = append(rows, row)
		}
		if !some {
			continue
		}
		if printed {
			fmt.Fprintln(w)
		}
		printed = true
		fmt.Fprintf(w, "%s, from row to column\n", part.name)
		if err := table(w, "", rows); err != nil {
			return err
		}
	}
	for _, r := range m.rows {
		if r.Failed != "" {
			notes = append(notes, fmt.Sprintf("%s to %s: failed: %s", r.From, r.To, r.Failed))
		}
	}
	if printed && len(notes) > 0 {
		fmt.Fprintln(w)
	}
	for _, n := range notes {
		fmt.Fprintln(w, n)
	}
	return nil
}

func meshCell(r *meshRow, e *probe.Estimate) string {
	switch {
	case r.Failed != "":
		return "failed"
	case e == nil || !e.Known():
		return "?"
	case e.AtLeast:
		return ">= " + bitRate(e.Value)
	}
	return bitRate(e.Value)
}
