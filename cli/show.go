package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/view"
)

// devFlag adds the flag --dev with shell completion of devices and of the words in more.
func (a *app) devFlag(c *cobra.Command, value, what string, more ...string) *string {
	dev := c.Flags().String("dev", value, what)
	completeFlag(c, "dev", a.completeDevices(more...))
	return dev
}

func showCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "show [groups|assignments|clients]",
		Short: "Show groups, assignments or clients with their counters",
		Long: `Show prints the kernel's actual state: groups with their counters, the connections that
are assigned at run time, or the active clients of groups with each:. Counters start when
the group is created. Show also lists device settings that Headgate changed, foreign
traffic control, and drift (changes by other programs, which apply would revert).

Rates and drops of clients are those of one second, or of --over. Bytes are counted
since the client appeared. A client without traffic for 4 seconds is not shown.`,
		Example: `  headgate show
  headgate show groups --dev eth0 --over 1s
  headgate show assignments --dev eth0 -o json
  headgate show clients --dev eth0`,
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"groups", "assignments", "clients"},
	}
	dev := a.devFlag(c, "all", "one device, or all that have bandwidth groups", "all")
	over := c.Flags().Duration("over", 0, "measure rates over this time, such as 1s")
	output, at := outputFlag(c), serverFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if *over < 0 || *over > time.Hour {
			return usageError{fmt.Errorf("--over %v is out of range: write a duration up to 1h, such as 1s", *over), c.CommandPath()}
		}
		if at.isSet() {
			if len(args) > 0 && args[0] == "clients" {
				return usageError{errClientsOnServer, c.CommandPath()}
			}
			if len(args) > 0 && args[0] == "assignments" {
				return a.showAssignmentsRemote(c.Context(), at, *dev, *output)
			}
			return a.showRemote(c.Context(), at, *dev, *over, *output)
		}
		if store, err := a.store(); err == nil { // the actual state can be shown without the store
			a.printPending(store)
		}
		states, err := a.states(*dev)
		if err != nil {
			return err
		}
		if len(args) > 0 && args[0] == "assignments" {
			return a.showAssignments(states, *output)
		}
		if len(args) > 0 && args[0] == "clients" {
			return a.showClients(states, *over, *output)
		}
		return a.showGroups(states, *over, *output)
	}
	return c
}

// states observes one device, or for "all" each device that Headgate shapes.
func (a *app) states(dev string) ([]shaper.State, error) {
	if dev == "all" {
		return a.observer().ObserveAll()
	}
	s, err := a.observer().ObserveWithOwner(a.dev(dev))
	return []shaper.State{s}, err
}

func (a *app) showGroups(states []shaper.State, over time.Duration, f format) error {
	var later []shaper.State
	if over > 0 {
		time.Sleep(over)
		for _, s := range states {
			l, err := a.observer().ObserveWithOwner(s.Dev)
			if err != nil {
				return err
			}
			later = append(later, l)
		}
	}
	if later == nil {
		return a.print(f, states, func(w io.Writer) error { return view.WriteGroups(w, states, nil) })
	}
	return a.print(f, later, func(w io.Writer) error { return view.WriteGroups(w, later, states) })
}

func (a *app) showAssignments(states []shaper.State, f format) error {
	all := []view.DeviceAssignments{}
	for _, s := range states {
		list, err := a.observer().Assignments(s.Engine, s.Dev)
		if err != nil {
			return err
		}
		all = append(all, view.DeviceAssignments{Dev: s.Dev, Assignments: append([]shaper.Assignment{}, list...)})
	}
	return a.printAssignments(all, f)
}

func (a *app) printAssignments(all []view.DeviceAssignments, f format) error {
	return a.print(f, all, func(w io.Writer) error { return view.WriteAssignments(w, all) })
}
