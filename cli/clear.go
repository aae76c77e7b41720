package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/pending"
	"headgate.dev/headgate/rollout"
	"headgate.dev/headgate/shaper"
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

// clearOutput is the output of clear -o for one device.
type clearOutput struct {
	Dev     string `json:"dev"`
	Cleared bool   `json:"cleared"` // false if there was nothing to clear
}

func (a *app) clearDevices(store *pending.Store, dev string, f format) error {
	list, m := []clearOutput{}, a.local()
	devices := []string{a.dev(dev)}
	if dev == "all" {
		states, err := m.ObserveAll()
		if err != nil {
			return err
		}
		devices = nil
		for _, s := range states {
			devices = append(devices, s.Dev)
		}
	}
	var failed []error
	swept := []string{}
	if dev == "all" {
		var err error
		swept, err = m.Sweep()
		failed = append(failed, err)
	}
	for _, gone := range swept {
		list = append(list, clearOutput{gone, true})
	}
	for _, d := range devices {
		_, before := m.Observe(d)
		// Clear also if the state cannot be read: the remains of a broken state, or of a
		// removed device, are Headgate's too.
		if err := m.Clear(d); err != nil {
			failed = append(failed, err)
			continue
		}
		switch {
		case errors.Is(before, shaper.ErrNoDevice):
			failed = append(failed, before)
		case errors.Is(before, shaper.ErrNotShaped):
			list = append(list, clearOutput{d, false})
		default:
			list = append(list, clearOutput{d, true})
			m.NoteOwner(rollout.ClearUndoneByAgent, d)
		}
		failed = append(failed, store.Drop(d))
	}
	failed = append(failed, a.print(f, list, func(w io.Writer) error {
		for i, c := range list {
			text := "nothing to clear"
			switch {
			case i < len(swept):
				text = "removed: its device no longer exists"
			case c.Cleared:
				text = "cleared"
			}
			fmt.Fprintf(w, "%s: %s\n", c.Dev, text)
		}
		if len(devices)+len(swept) == 0 {
			fmt.Fprintln(w, "no device has bandwidth groups")
		}
		return nil
	}))
	return errors.Join(failed...)
}
