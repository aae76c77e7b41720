package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"headgate.dev/headgate/internal/text"
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
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if b, err = yaml.JSONToYAML(b); err != nil {
			return err
		}
		_, err = text.Plain(a.out).Write(b)
		return err
	}
	return table(text.Plain(a.out))
}
