package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"headgate/config"
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
confirming: they are applied at boot as they are.

With --server a host of a service is to have it, whose agent makes it so; warnings are those
of check --server. What was before is in the service's history: "headgate rollback" goes back
to it, also from elsewhere.`,
		Example: `  headgate apply -f eth0.yaml
  headgate apply -f /etc/headgate --ignore-missing
  headgate apply -f eth0.yaml --confirm-within 60s
  headgate apply --server default --host web1 -f web1.yaml`,
		Args: cobra.NoArgs,
	}
	files, missing := fileFlag(c), ignoreMissingFlag(c)
	within := c.Flags().Duration("confirm-within", 0, "roll back unless \"headgate confirm\" is run within this time, such as 60s")
	dryRun := c.Flags().Bool("dry-run", false, "only say what would be changed, as plan does")
	output, at := outputFlag(c), thereFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if at.asked() {
			if c.Flags().Changed("confirm-within") {
				return usageError{errors.New("--confirm-within is for a change that may cut this machine off: a service remembers what was, and \"headgate rollback\" goes back to it"), c.CommandPath()}
			}
			if err := at.nothing(c, "ignore-missing"); err != nil {
				return err
			}
			return a.applyThere(c, at, *files, *dryRun, *output)
		}
		if c.Flags().Changed("confirm-within") && (*within < minConfirm || *within > maxConfirm) {
			return usageError{fmt.Errorf("--confirm-within %v is not possible: write %v to %v", *within, minConfirm, maxConfirm), c.CommandPath()}
		}
		if *dryRun {
			return a.plan(c, *files, *missing, *output)
		}
		return a.apply(c, *files, *missing, *within, *output)
	}
	return c
}

func (a *app) apply(c *cobra.Command, files []string, ignoreMissing bool, within time.Duration, f format) error {
	// First, because mistakes need no lock and no rights to be found.
	set, err := a.loadInterfaces(c, files, true)
	if err != nil {
		return err
	}
	// People see each device as it is done, which may be a thousand.
	said, notes := []step{}, a.err
	say := func(s step) { said = append(said, s) }
	if f == "table" {
		say, notes = func(s step) { printSteps(a.out, []step{s}) }, a.out
	}
	until, err := a.carryOut(set, ignoreMissing, within, say)
	if err == nil && f != "table" {
		err = a.print(f, said, nil)
	}
	if err == nil && !until.IsZero() {
		fmt.Fprintf(notes, "in force until %s: run \"headgate confirm\" by then, or it is rolled back\n", until.Local().Format(time.TimeOnly))
	}
	return err
}

// carryOut makes a configuration so, as apply does; until is when it is rolled back.
func (a *app) carryOut(set config.Set, ignoreMissing bool, within time.Duration, say func(step)) (until time.Time, err error) {
	store, unlock, err := a.lock()
	if err != nil {
		return until, err
	}
	defer unlock()
	if err := a.supersede(store); err != nil {
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

// applySteps applies one device after the other. It stops at the first that
// fails, and says how far it came.
func (a *app) applySteps(steps []step, say func(step)) error {
	for i, s := range steps {
		if err := a.applyStep(s, say); err != nil {
			if i > 0 || i+1 < len(steps) {
				err = fmt.Errorf("%w (%d of %d devices have their new state: the next apply goes on)", err, i, len(steps))
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
	if _, err := engine.Apply(*b.Plan); err != nil {
		return ignoreGone(err)
	}
	// Those whose groups the change took away followed the rules since.
	if len(b.Assigned) > 0 {
		if err := engine.Assign(b.Dev, b.Assigned); ignoreGone(err) != nil {
			return fmt.Errorf("its groups are back, but not the connections that were assigned to them: %w", err)
		}
	}
	return nil
}

// ignoreGone: a device that is gone took its state along.
func ignoreGone(err error) error {
	if errors.Is(err, shaper.ErrNoDevice) {
		return nil
	}
	return err
}
