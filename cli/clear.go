package cli

import (
	"errors"
	"fmt"
	"io"

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
all", objects that were left behind by devices that no longer exist are removed too.`,
		Example: `  headgate clear --dev eth0
  headgate clear --dev all`,
		Args: cobra.NoArgs,
	}
	dev := a.devFlag(c, "", "the device, or all for every device that has bandwidth groups", "all")
	output := outputFlag(c)
	requireFlags(c, "dev")
	at := serverFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if at.isSet() {
			return a.clearRemote(c.Context(), at, *dev, *output)
		}
		store, unlock, err := a.local().Lock()
		if err != nil {
			return err
		}
		defer unlock()
		return a.clearDevices(store, *dev, *output)
	}
	return c
}

// clearDevices clears one device or, for "all", each device that Headgate shapes and what removed devices left behind.
func (a *app) clearDevices(store *pending.Store, dev string, f format) error {
	m := a.local()
	devices, swept := []string{a.dev(dev)}, []string{}
	var failed error
	if dev == "all" {
		states, err := m.ObserveAll()
		if err != nil {
			return err
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
	cleared, err := m.ClearDevices(store, devices)
	list = append(list, cleared...)
	return errors.Join(failed, err, a.print(f, list, func(w io.Writer) error {
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
