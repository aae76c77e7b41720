package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/doctor"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/unit/rounded"
)

func doctorCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor [DEV...]",
		Short: "Check which features this kernel and machine support",
		Long: `Doctor tries the kernel features that Headgate needs, in a network namespace of its own,
and leaves nothing behind. Each line is a check: ok, limited (works with the stated
restriction) or missing, with its consequence and the remedy. For a device it shows
what conflicts with groups, and what limits their throughput.

With --measure it measures the throughput of this machine: packets and bits per second
through the classifier and one HTB, between two devices of that namespace, with all CPUs
for up to 2 s.

The exit code is 0 if groups can be enforced, 1 if a needed feature is missing, 3 if a
needed feature could not be checked without more privileges.`,
		Example: `  headgate doctor
  headgate doctor eth0 --measure
  headgate doctor -o json`,
		ValidArgsFunction: a.completeDevices(),
	}
	measure := c.Flags().Bool("measure", false, "measure this machine's throughput, which takes up to 2 s of all CPUs")
	output := outputFlag(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		for i := range args {
			args[i] = a.dev(args[i])
		}
		report, err := a.examine(args, *measure)
		if err != nil {
			return err
		}
		if err := a.print(*output, report, func(w io.Writer) error { return doctorTable(w, report) }); err != nil {
			return err
		}
		switch {
		case report.NotPermitted:
			return fmt.Errorf("cannot run all checks: %w: run doctor as root", os.ErrPermission)
		case !report.OK:
			return errReported
		}
		return nil
	}
	return c
}

// examine runs all checks with the default engine.
func (a *app) examine(devices []string, measure bool) (doctor.Report, error) {
	engine, err := a.engine(group.HTB)
	if err != nil {
		return doctor.Report{}, err
	}
	return doctor.Run(doctor.Options{Engine: engine, Observe: a.observe, Devices: devices, Measure: measure})
}

// doctorTable prints a row for each check, with its meaning, and the remedy, if any, in
// a row below it.
func doctorTable(w io.Writer, r doctor.Report) error {
	about := ""
	var rows [][]string
	flush := func() error {
		err := text.Table(w, "  ", rows)
		rows = nil
		return err
	}
	for _, c := range r.Checks {
		if c.About != about {
			if err := flush(); err != nil {
				return err
			}
			about = c.About
			fmt.Fprintln(w, about)
		}
		name := c.Name
		if c.Found != "" {
			name += ": " + c.Found
		}
		rows = append(rows, []string{string(c.State), text.Truncate(name, nameWidth), c.Meaning})
		if c.Remedy != "" {
			rows = append(rows, []string{"", "", "-> " + c.Remedy})
		}
	}
	if err := flush(); err != nil {
		return err
	}
	if m := r.Throughput; m != nil {
		fmt.Fprintf(w, "throughput of this machine, %s sending, no receiver\n", text.Count(m.Senders, "CPU"))
		rows = [][]string{
			{"", "60-BYTE FRAMES", "64-KB PACKETS"},
			{"with groups", humanCount(m.PacketsPerSecond) + "/s", rounded.Rate(float64(m.Bandwidth))},
			{"without groups", humanCount(m.WithoutPPS) + "/s", rounded.Rate(float64(m.BandwidthWithout))},
		}
		if err := flush(); err != nil {
			return err
		}
	}
	verdict := "groups can be enforced"
	switch {
	case r.NotPermitted:
		verdict = "cannot determine whether groups can be enforced"
	case !r.OK:
		verdict = "groups cannot be enforced"
	}
	_, err := fmt.Fprintln(w, verdict)
	return err
}

// nameWidth limits a check's name in the table; -o json has the whole text.
const nameWidth = 48

func humanCount(n float64) string {
	switch {
	case n >= 1e6:
		return rounded.Digits(n/1e6) + " million"
	case n >= 1e3:
		return rounded.Digits(n/1e3) + " thousand"
	}
	return rounded.Digits(n)
}
