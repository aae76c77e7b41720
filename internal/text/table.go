package text

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table writes rows in aligned columns. The first row is the heading.
func Table(w io.Writer, indent string, rows [][]string) error {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.TabIndent)
	for _, row := range rows {
		// Short rows are padded, because tabwriter aligns columns only across adjacent rows that have them.
		row = append(row[:len(row):len(row)], make([]string, max(len(rows[0])-len(row), 0))...)
		fmt.Fprintln(t, indent+strings.Join(row, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}
