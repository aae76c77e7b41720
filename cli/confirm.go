package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"headgate/cli/pending"
)

func confirmCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "confirm",
		Short: "Keep what \"apply --confirm-within\" changed",
		Long: `Confirm keeps the change that waits for it. With --roll-back the change is
undone at once.`,
		Example: `  headgate apply -f eth0.yaml --confirm-within 60s
  headgate confirm
  headgate confirm --roll-back`,
		Args: cobra.NoArgs,
	}
	output := outputFlag(c)
	back := c.Flags().Bool("roll-back", false, "undo the change now instead of keeping it")
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
			return errors.New("no change waits for confirmation: either none was made with --confirm-within, or its time is over and it was rolled back (\"headgate show\" says what is in force)")
		case store.Gone(change):
			a.tell(store)
			return store.Forget()
		case *back:
			return a.rollBackNow(change, *output)
		case stage == pending.RollingBack || stage == pending.Unfinished:
			return errors.New(pendingSentence(store, change, stage))
		}
		ok, err := store.Confirm()
		if err != nil {
			return err
		}
		if !ok {
			return errors.New("it is too late: the rollback has begun")
		}
		return a.print(*output, newDecided(change, false), func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "confirmed: the change to %s stays\n", change.Names())
			return err
		})
	}
	return c
}

// decided is what -o prints of a change that was confirmed, or rolled back.
type decided struct {
	Devices    []string `json:"devices"`
	RolledBack bool     `json:"rolled_back"`
}

func newDecided(c pending.Change, rolledBack bool) decided {
	d := decided{RolledBack: rolledBack}
	for _, dev := range c.Devices {
		d.Devices = append(d.Devices, dev.Dev)
	}
	return d
}

func (a *app) rollBackNow(change pending.Change, f format) error {
	store, unlock, err := a.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := store.RollBack(change, a.restore); err != nil {
		return err
	}
	return a.print(f, newDecided(change, true), func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "rolled back: %s\n", change.Names())
		return err
	})
}
