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

	"headgate.dev/headgate/doctor"
	"headgate.dev/headgate/hostsurvey"
	"headgate.dev/headgate/unit"
)

func initCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "init",
		Short: "Write a commented starting configuration for this machine",
		Long: `Init reads this machine's devices and the findings of doctor, and prints a
configuration with the reason for each value: a document for each device through which
traffic leaves the machine, that of the default route first, and the reason why other
devices are left out. It changes nothing. With -f it writes a new file.

Limits are slightly below the link's capacity, so the configuration can be applied
unchanged: groups borrow unused guarantees, and no traffic slows down. If the machine
does not report its link's speed, as in most virtual machines, the document is commented
out and says how to measure the speed. --speed sets the speed, also if the provider's
rate is below that of the link.

Run it as root to include doctor's findings.`,
		Example: `  headgate init
  headgate init -f groups.yaml
  headgate init --speed eth0=200Mbit -f groups.yaml
  headgate check -f groups.yaml && headgate plan -f groups.yaml`,
		Args: cobra.NoArgs,
	}
	devs := c.Flags().StringArray("dev", nil, "only this device (may be repeated)")
	completeFlag(c, "dev", a.completeDevices())
	given := speedFlag{}
	c.Flags().Var(given, "speed", "the rate of a device's link, from the provider's contract or a measurement (may be repeated)")
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
		r, err := hostsurvey.Run(hostsurvey.Options{
			Devices: *devs, Speeds: given,
			Examine: func(devices []string) (doctor.Report, error) { return a.examine(devices, false) },
		})
		if err != nil {
			return err
		}
		text := r.Text()
		if *file == "-" {
			r.Configuration = text
			return a.print(*output, r, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
		}
		if err := writeNew(*file, text); err != nil {
			return err
		}
		r.File = *file
		a.note("%s", r.Summary())
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
		return fmt.Errorf("%s already exists: choose another name, or remove the file first", path)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// speedFlag is the rates of links by device: eth0=1Gbit.
type speedFlag map[string]unit.Rate

func (s speedFlag) Type() string   { return "DEV=RATE" }
func (s speedFlag) String() string { return "" }

// Set implements pflag.Value.
func (s speedFlag) Set(text string) error {
	dev, rate, ok := strings.Cut(text, "=")
	if !ok || dev == "" {
		return fmt.Errorf("%q is not DEV=RATE: write for example eth0=1Gbit", text)
	}
	v, err := unit.ParseRate(rate)
	if err == nil && v == 0 {
		err = errors.New("rate is 0: write for example " + dev + "=1Gbit")
	}
	s[dev] = v
	return err
}
