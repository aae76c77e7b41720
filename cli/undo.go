package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/pending"
	"headgate.dev/headgate/rollout"
)

func undoCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "undo [--change NUMBER]",
		Short: "Return devices of this machine to the state before a change",
		Long: `Undo returns devices to the state before the newest apply, clear or undo on this machine, with their
groups, engines and assigned connections. "headgate history" lists these changes; the last 20 are kept.
With --change it returns to the state before an earlier one. An undo can itself be undone.

It changes what the kernel enforces, and no file. On a host of a service use "headgate rollback".`,
		Example: `  headgate history
  headgate undo
  headgate undo --change 7 --dev eth0 --confirm-within 60s`,
		Args: cobra.NoArgs,
	}
	number := c.Flags().Int("change", 0, "the `NUMBER` of a change in \"headgate history\"; 0 is the newest")
	devs := c.Flags().StringArray("dev", nil, "only this device of the change (may be repeated)")
	completeFlag(c, "dev", a.completeDevices())
	within, output := confirmWithinFlag(c), outputFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *number < 0 {
			return usageError{fmt.Errorf("--change %d is not a number of \"headgate history\": write one from 1 on", *number), c.CommandPath()}
		}
		if err := checkConfirmWithin(c, *within); err != nil {
			return err
		}
		for i, dev := range *devs {
			(*devs)[i] = a.dev(dev)
		}
		restored, until, err := a.local().Undo(*number, *devs, *within)
		switch {
		case errors.Is(err, pending.ErrNoChange) && *number == 0:
			return errors.New("no change is in the history: apply, clear and undo add one")
		case errors.Is(err, rollout.ErrNoted):
			return errReported
		case err != nil:
			return err
		}
		list := make([]undone, len(restored))
		for i, s := range restored {
			list[i] = undone{s.Dev, s.Plan != nil}
		}
		if err := a.print(*output, list, func(w io.Writer) error {
			for _, u := range list {
				fmt.Fprintln(w, u)
			}
			return nil
		}); err != nil {
			return err
		}
		a.noteDeadline(*output, until)
		return nil
	}
	return c
}

// undone is a device that was returned to a former state.
type undone struct {
	Dev    string `json:"dev"`
	Shaped bool   `json:"shaped"` // it has groups again
}

func (u undone) String() string {
	if u.Shaped {
		return u.Dev + ": restored"
	}
	return u.Dev + ": restored: it has no groups, as before"
}

// confirmWithinFlag adds the flag --confirm-within.
func confirmWithinFlag(c *cobra.Command) *time.Duration {
	return c.Flags().Duration("confirm-within", 0, "roll back unless \"headgate confirm\" is run within this time, such as 60s")
}

func checkConfirmWithin(c *cobra.Command, within time.Duration) error {
	if c.Flags().Changed("confirm-within") && (within < minConfirm || within > maxConfirm) {
		return usageError{fmt.Errorf("--confirm-within %v is out of range: set %v to %v", within, minConfirm, maxConfirm), c.CommandPath()}
	}
	return nil
}

// noteDeadline says until when a change must be confirmed, unless until is zero.
func (a *app) noteDeadline(f format, until time.Time) {
	if until.IsZero() {
		return
	}
	notes := a.err
	if f == "table" {
		notes = a.out
	}
	fmt.Fprintf(notes, "rolls back at %s: run \"headgate confirm\" before then to keep the change\n", until.Local().Format(time.TimeOnly))
}

// invoker returns the name of the user who runs the command, also with sudo.
func invoker() string {
	if name := os.Getenv("SUDO_USER"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return fmt.Sprint("user ", os.Getuid())
}

// localChange is a change of this machine as history prints it.
type localChange struct {
	Number  int       `json:"number"`
	At      time.Time `json:"at"`
	By      string    `json:"by"`
	Command string    `json:"command"`
	Devices []string  `json:"devices"`
}

// localHistory returns the changes of this machine, the newest first: those of one device, or of all for "".
func (a *app) localHistory(dev string) ([]localChange, error) {
	store, err := a.store()
	if err != nil {
		return nil, err
	}
	all, err := store.History()
	if err != nil {
		return nil, err
	}
	list := []localChange{}
	for _, d := range all {
		if names := d.Names(); dev == "" || slices.Contains(names, dev) {
			list = append(list, localChange{d.Number, d.At, d.By, d.Command, names})
		}
	}
	return list, nil
}

var localChanges = resource[localChange]{
	columns: []string{"CHANGE", "AT", "BY", "COMMAND", "DEVICES"},
	row: func(c localChange) []string {
		return []string{fmt.Sprint(c.Number), c.At.Local().Format(time.DateTime), c.By, c.Command, strings.Join(c.Devices, ", ")}
	},
}
