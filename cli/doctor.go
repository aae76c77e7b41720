package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/doctor"
	"headgate.dev/headgate/fabric/ovsdb"
	"headgate.dev/headgate/group"
)

func doctorCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor [DEV...]",
		Short: "Check which features this kernel and machine support",
		Long: `Doctor tries the kernel features that Headgate needs, in a network namespace of its own,
and leaves nothing behind. Each line is a check: ok, limited (works with the stated
restriction) or missing, with its consequence and the remedy. For a device it shows
what conflicts with groups, and what limits their throughput.

Under fabric it shows what keeps bridges of this machine's Open vSwitch from being switches
of a network (docs/fabric.md). Bridges without a controller are left out.

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
		if err := a.print(*output, report, report.Write); err != nil {
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
	engine, err := a.observer().Engine(group.HTB)
	if err != nil {
		return doctor.Report{}, err
	}
	return doctor.Run(doctor.Options{Engine: engine, Observe: a.observer().Observe, Devices: devices, OpenVSwitch: ovsdb.LocalAddress(), Measure: measure})
}
