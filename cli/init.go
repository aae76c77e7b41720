package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"headgate/unit"
)

func initCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "init",
		Short: "Write a commented configuration for this machine, to start from",
		Long: `Init looks at this machine's devices and at what doctor finds, and prints a
configuration with the reason of each value: a document for each device by which
traffic leaves the machine, that of the default route first, and why the others are
left out. It changes nothing. With -f it writes a file that does not exist yet.

Limits are a little under what the link carries, so that what is written can be
applied as it is: guarantees lend what they do not use, and nobody is slowed down.
Where the machine does not know its link's speed, as in most virtual machines, the
document is a comment that says how to find it out. --speed says it, and also where
the provider gives less than the link could carry.

Run it as root to have doctor's findings in it.`,
		Example: `  headgate init
  headgate init -f groups.yaml
  headgate init --speed eth0=200Mbit -f groups.yaml
  headgate check -f groups.yaml && headgate plan -f groups.yaml`,
		Args: cobra.NoArgs,
	}
	devs := c.Flags().StringArray("dev", nil, "only this device (may be repeated)")
	completeFlag(c, "dev", a.completeDevices())
	given := speedFlag{}
	c.Flags().Var(given, "speed", "what the link of a device gives, as promised or measured (may be repeated)")
	file := c.Flags().StringP("file", "f", "-", "write this file, which must not exist, or - for standard output")
	output := outputFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		for i, dev := range *devs {
			(*devs)[i] = a.dev(dev)
		}
		for _, dev := range slices.Sorted(maps.Keys(given)) {
			if kernel := a.dev(dev); kernel != dev {
				given[kernel] = given[dev]
				delete(given, dev)
			}
		}
		r, err := a.survey(*devs, given)
		if err != nil {
			return err
		}
		text := r.text()
		if *file == "-" {
			r.Configuration = text
			return a.print(*output, r, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
		}
		if err := writeNew(*file, text); err != nil {
			return err
		}
		r.File = *file
		a.note("%s", r.next())
		if *output == "table" {
			return nil
		}
		return a.print(*output, r, nil)
	}
	return c
}

func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists already, and is not overwritten: write another name, or remove it first", path)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// speedFlag takes what links give, by device: eth0=1Gbit.
type speedFlag map[string]unit.Rate

func (s speedFlag) Type() string   { return "DEV=RATE" }
func (s speedFlag) String() string { return "" }

// Set is for package pflag.
func (s speedFlag) Set(text string) error {
	dev, rate, ok := strings.Cut(text, "=")
	if !ok || dev == "" {
		return fmt.Errorf("%q is not a device and its rate: write for example eth0=1Gbit", text)
	}
	v, err := unit.ParseRate(rate)
	if err == nil && v == 0 {
		err = errors.New("a link that gives nothing cannot be divided: write for example " + dev + "=1Gbit")
	}
	s[dev] = v
	return err
}

// next says what was written, and what to do about it.
func (r *initReport) next() string {
	var b strings.Builder
	fmt.Fprintf(&b, "wrote %s", r.File)
	for _, d := range []initDecision{written, commented, leftOut} {
		if names := r.names(d); len(names) > 0 {
			fmt.Fprintf(&b, "\n  %s: %s", d, strings.Join(names, ", "))
		}
	}
	b.WriteString("\nNext: ")
	if len(r.names(written)) == 0 {
		b.WriteString("say what the link gives, as in the file, and then ")
	}
	fmt.Fprintf(&b, "edit it, and\n  headgate check -f %[1]s\n  headgate plan -f %[1]s", r.File)
	return b.String()
}

// names are the devices of which that was decided.
func (r *initReport) names(d initDecision) (names []string) {
	for _, i := range r.Interfaces {
		if i.Decision == d {
			names = append(names, i.Dev)
		}
	}
	return names
}
