package cli

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/pending"
	"headgate.dev/headgate/rollout"
)

func clearCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "clear --dev DEV",
		Short: "Remove all of Headgate's traffic control from a device",
		Long: `Clear removes Headgate's groups, rules, assignments and counters from a device. Foreign
traffic control stays. Clear finds everything in the kernel and needs no record of what
was applied. An unconfirmed change of the device is no longer rolled back. With "--dev
all", objects that were left behind by devices that no longer exist are removed too.
"headgate undo" restores the groups, and --confirm-within does so by itself.`,
		Example: `  headgate clear --dev eth0
  headgate clear --dev eth0 --confirm-within 60s
  headgate clear --dev all`,
		Args: cobra.NoArgs,
	}
	dev := a.devFlag(c, "", "the device, or all for every device that has bandwidth groups", "all")
	within, output := confirmWithinFlag(c), outputFlag(c)
	requireFlags(c, "dev")
	at := serverFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if at.isSet() {
			if err := at.rejectFlags(c, "confirm-within"); err != nil {
				return err
			}
			return a.clearRemote(c.Context(), at, *dev, *output)
		}
		if err := checkConfirmWithin(c, *within); err != nil {
			return err
		}
		store, unlock, err := a.local().Lock()
		if err != nil {
			return err
		}
		defer unlock()
		until, err := a.clearDevices(store, *dev, *within, *output)
		if errors.Is(err, rollout.ErrNoted) {
			return errReported
		}
		if err == nil {
			a.noteDeadline(*output, until)
		}
		return err
	}
	return c
}

// clearDevices clears one device or, for "all", each device that Headgate shapes and what removed devices left behind.
// until is the time of a rollback, zero if there is none.
func (a *app) clearDevices(store *pending.Store, dev string, within time.Duration, f format) (until time.Time, err error) {
	m := a.local()
	devices, swept := []string{a.dev(dev)}, []string{}
	var failed error
	if dev == "all" {
		states, err := m.ObserveAll()
		if err != nil {
			return until, err
		}
		devices = nil
		for _, s := range states {
			devices = append(devices, s.Dev)
		}
		swept, failed = m.Sweep()
	}
	list := []rollout.Cleared{}
	for _, gone := range swept {
		list = append(list, rollout.Cleared{Dev: gone, Cleared: true})
	}
	cleared, until, err := m.ClearDevices(store, devices, within)
	list = append(list, cleared...)
	return until, errors.Join(failed, err, a.print(f, list, func(w io.Writer) error {
		for _, gone := range swept {
			fmt.Fprintf(w, "%s: removed: its device no longer exists\n", gone)
		}
		for _, c := range cleared {
			fmt.Fprintln(w, c)
		}
		if len(devices)+len(swept) == 0 {
			fmt.Fprintln(w, "no device has bandwidth groups")
		}
		return nil
	}))
}
