package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"headgate/cli/pending"
	"headgate/shaper"
)

func clearCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "clear --dev DEV",
		Short: "Take away all that is ours, and nothing else",
		Long: `Clear gives a device back as it was before Headgate: groups, rules, assignments
and counters go. Traffic control that is not ours stays. It needs no memory of
what was applied. A change of the device that waits for confirmation is not
rolled back any more. With "--dev all" what devices left that are gone goes, too.`,
		Example: `  headgate clear --dev eth0
  headgate clear --dev all`,
		Args: cobra.NoArgs,
	}
	dev := a.devFlag(c, "", "the device, or all that have bandwidth groups", "all")
	output := outputFlag(c)
	required(c, "dev")
	at := thereFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if at.asked() {
			return a.clearThere(c.Context(), at, *dev, *output)
		}
		store, unlock, err := a.lock()
		if err != nil {
			return err
		}
		defer unlock()
		return a.clearDevices(store, *dev, *output)
	}
	return c
}

// cleared is what -o prints of a device.
type cleared struct {
	Dev     string `json:"dev"`
	Cleared bool   `json:"cleared"` // false: there was nothing to clear
}

func (a *app) clearDevices(store *pending.Store, dev string, f format) error {
	list := []cleared{}
	devices := []string{a.dev(dev)}
	if dev == "all" {
		states, err := a.states(dev)
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
		swept, err = a.sweep()
		failed = append(failed, err)
	}
	for _, gone := range swept {
		list = append(list, cleared{gone, true})
	}
	for _, d := range devices {
		_, before := a.observe(d)
		// Cleared even so: what is left of a broken state, or of a device that is
		// gone, is ours too.
		if err := a.clear(d); err != nil {
			failed = append(failed, err)
			continue
		}
		switch {
		case errors.Is(before, shaper.ErrNoDevice):
			failed = append(failed, before)
		case errors.Is(before, shaper.ErrNotShaped):
			list = append(list, cleared{d, false})
		default:
			list = append(list, cleared{d, true})
			a.warnAgent(clearedByHand, d)
		}
		failed = append(failed, store.Drop(d))
	}
	failed = append(failed, a.print(f, list, func(w io.Writer) error {
		for i, c := range list {
			text := "nothing to clear"
			switch {
			case i < len(swept):
				text = "removed: the device that it was made for is gone"
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

// sweep has the engines remove what devices left that are gone, and names the devices
// among it.
func (a *app) sweep() (removed []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(a.engines)) {
		if e, ok := a.engines[name].(interface{ Sweep() ([]string, error) }); ok {
			names, failed := e.Sweep()
			removed, err = append(removed, names...), errors.Join(err, failed)
		}
	}
	return removed, err
}
