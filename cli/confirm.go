package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/pending"
)

func confirmCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "confirm",
		Short: "Keep the change of \"apply --confirm-within\"",
		Long: `Confirm keeps the pending change. With --roll-back the change is rolled back at
once.`,
		Example: `  headgate apply -f eth0.yaml --confirm-within 60s
  headgate confirm
  headgate confirm --roll-back`,
		Args: cobra.NoArgs,
	}
	output := outputFlag(c)
	back := c.Flags().Bool("roll-back", false, "roll the change back now instead of keeping it")
	c.RunE = func(*cobra.Command, []string) error {
		store, err := a.store()
		if err != nil {
			return err
		}
		change, stage, err := store.Read()
		switch {
		case err != nil:
			return err
		case stage == pending.None:
			return errors.New("no change is pending: none was made with --confirm-within, or its time expired and it was rolled back (\"headgate show\" prints the state in force)")
		case store.Rebooted(change):
			a.printPending(store)
			return store.Forget()
		case *back:
			return a.rollBackNow(change, *output)
		case stage == pending.RollingBack || stage == pending.Unfinished:
			return errors.New(store.Describe(change, stage))
		}
		ok, err := store.Confirm()
		if err != nil {
			return err
		}
		if !ok {
			return errors.New("cannot confirm: the rollback has begun")
		}
		return a.print(*output, newDecided(change, false), func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "confirmed: the change to %s is kept\n", change.Names())
			return err
		})
	}
	return c
}

// confirmOutput is the output of confirm -o for a change that was confirmed or rolled back.
type confirmOutput struct {
	Devices    []string `json:"devices"`
	RolledBack bool     `json:"rolled_back"`
}

func newDecided(c pending.Change, rolledBack bool) confirmOutput {
	d := confirmOutput{RolledBack: rolledBack}
	for _, dev := range c.Devices {
		d.Devices = append(d.Devices, dev.Dev)
	}
	return d
}

func (a *app) rollBackNow(change pending.Change, f format) error {
	store, unlock, err := a.local().Lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := store.RollBack(change, a.local().Restore); err != nil {
		return err
	}
	return a.print(f, newDecided(change, true), func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "rolled back: %s\n", change.Names())
		return err
	})
}
