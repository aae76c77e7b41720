package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
)

// format is the value of -o.
type format string

func (f *format) String() string { return string(*f) }
func (f *format) Type() string   { return "table|json|yaml" }

// Set implements pflag.Value.
func (f *format) Set(s string) error {
	switch s {
	case "table", "json", "yaml":
		*f = format(s)
		return nil
	}
	return fmt.Errorf("%q is not a format: write table, json or yaml", s)
}

// outputFlag adds the flag -o to a command.
func outputFlag(c *cobra.Command) *format {
	f := format("table")
	c.Flags().VarP(&f, "output", "o", "print as table, json or yaml")
	completeFlag(c, "output", oneOf("table", "json", "yaml"))
	return &f
}

// print writes v in format f. table writes v as text for people.
func (a *app) print(f format, v any, table func(io.Writer) error) error {
	switch f {
	case "json":
		e := json.NewEncoder(a.out)
		e.SetIndent("", "  ")
		return e.Encode(v)
	case "yaml":
		text, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if text, err = yaml.JSONToYAML(text); err != nil {
			return err
		}
		_, err = a.out.Write(text)
		return err
	}
	return table(a.out)
}

// table writes rows in aligned columns. The first row is the heading.
func table(w io.Writer, indent string, rows [][]string) error {
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
