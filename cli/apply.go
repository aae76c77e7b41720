package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"headgate/shaper"
)

// Bounds on --confirm-within: below, nobody could confirm; above, nobody waits.
const (
	minConfirm = time.Second
	maxConfirm = 24 * time.Hour
)

func applyCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Make the configuration so",
		Long: `Apply makes the kernel have what the configuration says, and touches only what
differs: the same file twice changes nothing. Everything is checked first, on
all devices; with any mistake, or traffic control that is not Headgate's, nothing
is changed.

With --confirm-within, what was in force before comes back unless "headgate
confirm" is run in time. That happens also if the session that ran apply is cut
off, which is what the flag is for. Edit files under /etc/headgate only after
confirming: they are applied at boot as they are.`,
		Example: `  headgate apply -f eth0.yaml
  headgate apply -f /etc/headgate --ignore-missing
  headgate apply -f eth0.yaml --confirm-within 60s`,
		Args: cobra.NoArgs,
	}
	files, missing := fileFlag(c), ignoreMissingFlag(c)
	within := c.Flags().Duration("confirm-within", 0, "roll back unless \"headgate confirm\" is run within this time, such as 60s")
	dryRun := c.Flags().Bool("dry-run", false, "only say what would be changed, as plan does")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if c.Flags().Changed("confirm-within") && (*within < minConfirm || *within > maxConfirm) {
			return usageError{fmt.Errorf("--confirm-within %v is not possible: write %v to %v", *within, minConfirm, maxConfirm), c.CommandPath()}
		}
		if *dryRun {
			return a.plan(c, *files, *missing, "table")
		}
		return a.apply(c, *files, *missing, *within)
	}
	return c
}

func (a *app) apply(c *cobra.Command, files []string, ignoreMissing bool, within time.Duration) error {
	// First, because mistakes need no lock and no rights to be found.
	set, err := a.load(c, files, true)
	if err != nil {
		return err
	}
	store, unlock, err := a.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := a.supersede(store); err != nil {
		return err
	}
	steps, err := a.steps(set, ignoreMissing)
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	var todo []step
	for _, s := range steps {
		if len(s.Changes) == 0 {
			fmt.Fprintf(a.out, "%s: up to date\n", s.Dev)
			continue
		}
		todo = append(todo, s)
	}
	if len(todo) == 0 {
		return nil
	}
	if within == 0 {
		return a.applySteps(todo)
	}
	return a.applyPending(store, todo, within)
}

// applySteps applies one device after the other. It stops at the first that
// fails, and says how far it came.
func (a *app) applySteps(steps []step) error {
	for i, s := range steps {
		if err := a.applyStep(s); err != nil {
			if i > 0 || i+1 < len(steps) {
				err = fmt.Errorf("%w (%d of %d devices have their new state: the next apply goes on)", err, i, len(steps))
			}
			return err
		}
	}
	return nil
}

func (a *app) applyStep(s step) error {
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
	fmt.Fprintf(a.out, "%s: %s\n", s.Dev, count(len(changes), "change"))
	for _, change := range changes {
		fmt.Fprintf(a.out, "  %v\n", change)
	}
	a.warnAgent(appliedByHand, s.Dev)
	return nil
}

// restore brings a device back to a snapshot.
func (a *app) restore(b pendingSnapshot) error {
	if b.Plan == nil {
		return ignoreGone(a.clear(b.Dev))
	}
	engine, err := a.engine(b.Engine)
	if err != nil {
		return err
	}
	for _, name := range a.engineNames() {
		if name != b.Engine {
			if err := a.engines[name].Clear(b.Dev); ignoreGone(err) != nil {
				return err
			}
		}
	}
	_, err = engine.Apply(*b.Plan)
	return ignoreGone(err)
}

// ignoreGone: a device that is gone took its state along.
func ignoreGone(err error) error {
	if errors.Is(err, shaper.ErrNoDevice) {
		return nil
	}
	return err
}
