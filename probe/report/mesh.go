package report

import (
	"fmt"
	"io"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/mesh"
)

// meshParts are the tables of a mesh's result.
var meshParts = []struct {
	name string
	of   func(*mesh.Row) *probe.Estimate
}{
	{"capacity", (*mesh.Row).Capacity},
	{"token rate", (*mesh.Row).TokenRate},
	{"available bandwidth", (*mesh.Row).Available},
}

// WriteMesh prints a matrix for each part that was measured, and the reasons of missing values.
func WriteMesh(w io.Writer, servers []config.Server, results mesh.Rows) error {
	cells := map[[2]string]*mesh.Row{}
	for i := range results {
		r := &results[i]
		cells[[2]string{r.From, r.To}] = r
	}
	var notes []string
	printed := false
	for _, part := range meshParts {
		some := false
		rows := [][]string{{"FROM \\ TO"}}
		for _, s := range servers {
			rows[0] = append(rows[0], s.Name)
		}
		for _, from := range servers {
			row := []string{from.Name}
			for _, to := range servers {
				text := "-"
				if r := cells[[2]string{from.Name, to.Name}]; r != nil {
					e := part.of(r)
					some = some || e != nil
					text = meshCell(r, e)
					switch {
					case e == nil || r.Failed != "":
					case !e.Known():
						notes = append(notes, fmt.Sprintf("%s to %s: cannot estimate the %s: %s", r.From, r.To, part.name, e.Reason))
					case e.Carried():
						notes = append(notes, fmt.Sprintf("%s to %s: only a bound of the %s: %s", r.From, r.To, part.name, e.Because))
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
		if err := text.Table(w, "", rows); err != nil {
			return err
		}
	}
	for _, r := range results {
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

func meshCell(r *mesh.Row, e *probe.Estimate) string {
	switch {
	case r.Failed != "":
		return "failed"
	case e == nil || !e.Known():
		return "?"
	case e.AtLeast:
		return ">= " + probe.FormatRate(e.Value)
	}
	return probe.FormatRate(e.Value)
}
