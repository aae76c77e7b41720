package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/shaper"
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
is run in time. The rollback happens even if the session that ran apply is disconnected,
so a change that cuts off the machine undoes itself. Edit files under /etc/headgate only
after confirming: those files are applied at boot.

With --server, the configuration is sent to the controller, and the host's agent applies
it; the warnings are those of check --server. The service keeps the former versions, and
"headgate rollback" restores one, from any machine.`,
		Example: `  headgate apply -f eth0.yaml
  headgate apply -f /etc/headgate --ignore-missing
  headgate apply -f eth0.yaml --confirm-within 60s
  headgate apply --server default --host web1 -f web1.yaml`,
		Args: cobra.NoArgs,
	}
	files, missing := fileFlag(c), ignoreMissingFlag(c)
	within := c.Flags().Duration("confirm-within", 0, "roll back unless \"headgate confirm\" is run within this time, such as 60s")
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
			return a.applyRemote(c, at, *files, *dryRun, *output)
		}
		if c.Flags().Changed("confirm-within") && (*within < minConfirm || *within > maxConfirm) {
			return usageError{fmt.Errorf("--confirm-within %v is out of range: set %v to %v", *within, minConfirm, maxConfirm), c.CommandPath()}
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
	set, err := a.loadInterfaces(c, files, true)
	if err != nil {
		return err
	}
	// A table shows each device as soon as it is done, because there may be a thousand.
	said, notes := []step{}, a.err
	say := func(s step) { said = append(said, s) }
	if f == "table" {
		say, notes = func(s step) { printSteps(a.out, []step{s}) }, a.out
	}
	until, err := a.applyConfig(set, ignoreMissing, within, say)
	if err == nil && f != "table" {
		err = a.print(f, said, nil)
	}
	if err == nil && !until.IsZero() {
		fmt.Fprintf(notes, "rolls back at %s: run \"headgate confirm\" before then to keep the change\n", until.Local().Format(time.TimeOnly))
	}
	return err
}

// applyConfig applies a configuration; until is the time of its rollback, zero if there is none.
func (a *app) applyConfig(set config.Set, ignoreMissing bool, within time.Duration, say func(step)) (until time.Time, err error) {
	store, unlock, err := a.lock()
	if err != nil {
		return until, err
	}
	defer unlock()
	if err := a.replacePending(store); err != nil {
		return until, err
	}
	steps, err := a.steps(set, ignoreMissing)
	if err != nil {
		return until, fmt.Errorf("nothing was changed: %w", err)
	}
	var todo []step
	for _, s := range steps {
		if len(s.Changes) == 0 {
			say(s)
		} else {
			todo = append(todo, s)
		}
	}
	if within == 0 || len(todo) == 0 {
		return until, a.applySteps(todo, say)
	}
	return a.applyPending(store, todo, within, say)
}

// applySteps applies one device after the other. It stops at the first failure;
// the error has the number of devices that were applied.
func (a *app) applySteps(steps []step, say func(step)) error {
	for i, s := range steps {
		if err := a.applyStep(s, say); err != nil {
			if i > 0 || i+1 < len(steps) {
				err = fmt.Errorf("%w (applied %d of %d devices: apply again to continue)", err, i, len(steps))
			}
			return err
		}
	}
	return nil
}

func (a *app) applyStep(s step, say func(step)) error {
	engine, err := a.engine(s.Engine)
	if err != nil {
		return err
	}
	if s.before.Plan != nil && s.before.Engine != s.Engine {
		if err := a.engines[s.before.Engine].Clear(s.Dev); err != nil {
			return err
		}
	}
	changes, err := engine.Apply(s.plan)
	if err != nil {
		return err
	}
	s.Changes = append([]shaper.Change{}, changes...)
	say(s)
	a.warnManualChange(applyUndoneAtReload, s.Dev)
	return nil
}

// restore returns a device to a snapshot.
func (a *app) restore(b pendingSnapshot) error {
	if b.Plan == nil {
		return ignoreNoDevice(a.clear(b.Dev))
	}
	engine, err := a.engine(b.Engine)
	if err != nil {
		return err
	}
	for _, name := range a.engineNames() {
		if name != b.Engine {
			if err := a.engines[name].Clear(b.Dev); ignoreNoDevice(err) != nil {
				return err
			}
		}
	}
	if _, err := engine.Apply(*b.Plan); err != nil {
		return ignoreNoDevice(err)
	}
	// Assign the connections again: those in groups that the change removed follow the rules since.
	if len(b.Assigned) > 0 {
		if err := engine.Assign(b.Dev, b.Assigned); ignoreNoDevice(err) != nil {
			return fmt.Errorf("cannot assign the connections again; the groups are restored: %w", err)
		}
	}
	return nil
}

// ignoreNoDevice returns nil for a device that does not exist any more, because its state is gone with it.
func ignoreNoDevice(err error) error {
	if errors.Is(err, shaper.ErrNoDevice) {
		return nil
	}
	return err
}
