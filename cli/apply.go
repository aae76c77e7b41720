package cli

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/config/diff"
	"headgate.dev/headgate/rollout"
)

// Bounds on --confirm-within: below minConfirm no user can confirm in time; above maxConfirm no user waits.
const (
	minConfirm = time.Second
	maxConfirm = 24 * time.Hour
)

func applyCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Apply the configuration",
		Long: `Apply changes the kernel's traffic control to the configuration, and changes only what
differs: applying the same file again changes nothing. Everything is validated first, on
all devices: if there is any error, or foreign traffic control on a device, nothing is
changed.

With --confirm-within, the state before the apply is restored unless "headgate confirm"
is run in time ("headgate undo" restores it later). The rollback happens even if the session that ran apply is disconnected,
so a change that cuts off the machine undoes itself. Edit files under /etc/headgate only
after confirming: those files are applied at boot.

With --server, the configuration is sent to the controller, and the host's agent applies
it; the warnings are those of check --server. With --wait, apply fails unless the host
enforces it in time, and says why not ("headgate host show" has the same). The service keeps the former versions, and
"headgate rollback" restores one, from any machine.`,
		Example: `  headgate apply -f eth0.yaml
  headgate apply -f /etc/headgate --ignore-missing
  headgate apply -f eth0.yaml --confirm-within 60s
  headgate apply --server default --host web1 -f web1.yaml --wait 30s`,
		Args: cobra.NoArgs,
	}
	files, missing := fileFlag(c), ignoreMissingFlag(c)
	wait := c.Flags().Duration("wait", 0, "with --server: wait for as long as this, such as 30s, until the host enforces the configuration; 0 does not wait")
	within := confirmWithinFlag(c)
	dryRun := c.Flags().Bool("dry-run", false, "only show the changes, as plan does")
	output, at := outputFlag(c), serverFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if at.isSet() {
			if c.Flags().Changed("confirm-within") {
				return usageError{errors.New("--confirm-within is not supported with --server: undo a change with \"headgate rollback\""), c.CommandPath()}
			}
			if err := at.rejectFlags(c, "ignore-missing"); err != nil {
				return err
			}
			return a.applyRemote(c, at, *files, *dryRun, *wait, *output)
		}
		if c.Flags().Changed("wait") {
			return usageError{errors.New("--wait is for --server: without it apply returns when the configuration is in force"), c.CommandPath()}
		}
		if err := checkConfirmWithin(c, *within); err != nil {
			return err
		}
		if *dryRun {
			return a.plan(c, *files, *missing, *output)
		}
		return a.apply(c, *files, *missing, *within, *output)
	}
	return c
}

func (a *app) apply(c *cobra.Command, files []string, ignoreMissing bool, within time.Duration, f format) error {
	// Validated first, because this needs no lock and no privileges.
	set, err := a.loadHere(c, files)
	if err != nil {
		return err
	}
	// A table shows each device as soon as it is done, because there may be a thousand.
	changes := []diff.Entry{}
	done := func(s rollout.Step) { changes = append(changes, s.Entry) }
	if f == "table" {
		done = func(s rollout.Step) { diff.Write(a.out, []diff.Entry{s.Entry}) }
	}
	until, err := a.applyConfig(set, ignoreMissing, within, done)
	if err == nil && f != "table" {
		err = a.print(f, changes, nil)
	}
	if err == nil {
		a.noteDeadline(f, until)
	}
	return err
}

// applyConfig applies a configuration; until is the time of its rollback, zero if there is none.
func (a *app) applyConfig(set config.Set, ignoreMissing bool, within time.Duration, done func(rollout.Step)) (until time.Time, err error) {
	until, err = a.local().Apply(func() ([]rollout.Step, error) { return a.steps(set, ignoreMissing) }, within, done)
	if errors.Is(err, rollout.ErrNoted) {
		err = errReported
	}
	return until, err
}
