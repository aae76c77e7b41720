package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"headgate/cli/doctor"
	"headgate/cli/view"
	"headgate/group"
)

func doctorCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor [DEV...]",
		Short: "Say what this kernel and machine can do, and what is missing for what",
		Long: `Doctor tries what Headgate needs, in a network namespace of its own, and leaves
nothing behind. Each line is a check: ok, limited (it works, with a loss that is
named) or missing, with what that means and what to do about it. Of a device it
says what is in the way of groups, and what they cost there.

With --measure it finds this machine's own ceiling: packets and bits a second
through the classifier and one HTB, between two devices of that namespace, with
all CPUs for up to 2 s.

It exits with 0 if groups can be enforced, 1 if something needed is missing, 3
if it was not permitted to look.`,
		Example: `  headgate doctor
  headgate doctor eth0 --measure
  headgate doctor -o json`,
		ValidArgsFunction: a.completeDevices(),
	}
	measure := c.Flags().Bool("measure", false, "measure this machine's ceiling, which takes up to 2 s of all CPUs")
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
		case report.Forbidden:
			return fmt.Errorf("not all could be looked at: %w (run it as root)", os.ErrPermission)
		case !report.OK:
			return errSaid
		}
		return nil
	}
	return c
}

// examine runs the doctor with the default engine.
func (a *app) examine(devices []string, measure bool) (doctor.Report, error) {
	engine, err := a.engine(group.HTB)
	if err != nil {
		return doctor.Report{}, err
	}
	return doctor.Examine(doctor.Options{Engine: engine, Observe: a.observe, Devices: devices, Measure: measure})
}

// doctorTable prints checks in a column, each with what it means, and the remedy
// of what is not as it should be below it.
func doctorTable(w io.Writer, r doctor.Report) error {
	about := ""
	var rows [][]string
	flush := func() error {
		err := table(w, "  ", rows)
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
		rows = append(rows, []string{string(c.State), wrap(name, nameWidth), c.Means})
		if c.Remedy != "" {
			rows = append(rows, []string{"", "", "-> " + c.Remedy})
		}
	}
	if err := flush(); err != nil {
		return err
	}
	if m := r.Ceiling; m != nil {
		fmt.Fprintf(w, "ceiling of this machine, %s sending, nobody receiving\n", count(m.Senders, "CPU"))
		rows = [][]string{
			{"", "60-BYTE FRAMES", "64-KB PACKETS"},
			{"with groups", humanCount(m.PacketsPerSecond) + "/s", view.Rate(float64(m.Bandwidth))},
			{"without", humanCount(m.WithoutPPS) + "/s", view.Rate(float64(m.BandwidthWithout))},
		}
		if err := flush(); err != nil {
			return err
		}
	}
	verdict := "groups can be enforced"
	switch {
	case r.Forbidden:
		verdict = "whether groups can be enforced is not known"
	case !r.OK:
		verdict = "groups cannot be enforced as things are"
	}
	_, err := fmt.Fprintln(w, verdict)
	return err
}

const nameWidth = 48

// wrap shortens what a kernel said at length; -o json has all of it.
func wrap(text string, width int) string {
	text = strings.ReplaceAll(text, "\n", "; ")
	if len(text) > width {
		return text[:width-3] + "..."
	}
	return text
}

func humanCount(n float64) string {
	switch {
	case n >= 1e6:
		return view.Digits(n/1e6) + " million"
	case n >= 1e3:
		return view.Digits(n/1e3) + " thousand"
	}
	return view.Digits(n)
}
