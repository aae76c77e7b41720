package cli

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/pending"
	"headgate.dev/headgate/shaper"
)

type pendingSnapshot = pending.Snapshot

// stateDirEnv is the environment variable with the directory for pending changes. The default is
// pending.DefaultDir.
const stateDirEnv = "HEADGATE_STATE"

func stateDir() string {
	if dir := os.Getenv(stateDirEnv); dir != "" {
		return dir
	}
	return pending.DefaultDir
}

func (a *app) store() (*pending.Store, error) { return pending.Open(a.state) }

// lock excludes other processes from changing shaping in this network namespace.
func (a *app) lock() (*pending.Store, func(), error) {
	store, err := a.store()
	if err != nil {
		return nil, nil, err
	}
	unlock, err := store.Lock()
	return store, unlock, shaper.WithPermission(err)
}

// printPending prints the pending change, if there is one, and the commands for it.
func (a *app) printPending(store *pending.Store) {
	c, stage, err := store.Read()
	if err != nil {
		a.note("headgate: %v", err)
		return
	}
	if s := describePending(store, c, stage); s != "" {
		a.note("headgate: %s", s)
	}
}

func describePending(store *pending.Store, c pending.Change, stage pending.Stage) string {
	when := c.Began.Local().Format(time.DateTime)
	switch {
	case stage == pending.None:
		return ""
	case store.Rebooted(c):
		return fmt.Sprintf("the machine was restarted before the change of %s to %s was confirmed; the change is lost", when, c.Names())
	case stage == pending.Waiting:
		return fmt.Sprintf("the change of %s to %s is rolled back at %s unless you run \"headgate confirm\"",
			when, c.Names(), c.Deadline().Local().Format(time.TimeOnly))
	case stage == pending.RollingBack:
		return fmt.Sprintf("the change of %s to %s was not confirmed and is being rolled back", when, c.Names())
	case stage == pending.Unfinished:
		return fmt.Sprintf("the change of %s to %s was not confirmed, and its rollback did not finish: run \"headgate confirm --roll-back\" to finish it, or apply a configuration", when, c.Names())
	}
	return fmt.Sprintf("the change of %s to %s was not confirmed, and the process that rolls it back has died: run \"headgate confirm\" to keep it, or \"headgate confirm --roll-back\"", when, c.Names())
}

// replacePending prepares for a new change. It returns an error while a former change waits for
// confirmation or is being rolled back, and deletes the record of a former change without a
// waiting process.
func (a *app) replacePending(store *pending.Store) error {
	c, stage, err := store.Read()
	if err != nil {
		return err
	}
	switch stage {
	case pending.None:
		return nil
	case pending.Waiting, pending.RollingBack:
		return fmt.Errorf("%s (\"headgate confirm --roll-back\" does so now)", describePending(store, c, stage))
	}
	a.note("headgate: %s; this replaces it", describePending(store, c, stage))
	return store.Forget()
}

// applyPending applies steps that are rolled back unless the user confirms in time. The
// process that rolls back is started before the first change.
func (a *app) applyPending(store *pending.Store, steps []step, within time.Duration, say func(step)) (until time.Time, err error) {
	var before []pending.Snapshot
	for _, s := range steps {
		if s.before.Plan != nil {
			if s.before.Assigned, err = a.assignments(s.before.Engine, s.Dev); err != nil {
				return until, fmt.Errorf("nothing was changed: cannot read the assignments of %s for the rollback: %w", s.Dev, err)
			}
		}
		before = append(before, s.before)
	}
	change := store.New(within, before)
	if err := store.Write(change); err != nil {
		return until, err
	}
	if err := a.detach(rollbackName, change.ID); err != nil {
		return until, errors.Join(fmt.Errorf("nothing was changed: cannot start the rollback process: %w", err), store.Forget())
	}
	if err := a.applySteps(steps, say); err != nil {
		a.note("headgate: %v", err)
		if err := store.RollBack(change, a.restore); err != nil {
			return until, err
		}
		a.note("headgate: what was changed has been rolled back")
		return until, errReported
	}
	return change.Deadline(), nil
}

const (
	rollbackName = "await"
	ready        = "ready"
)

// awaitCommand is the rollback process that apply --confirm-within starts.
func awaitCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    rollbackName + " ID",
		Short:  "Wait for a confirmation, and roll back without it",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			store, err := a.store()
			if err != nil {
				return err
			}
			// The end of the terminal session must not end the wait. SIGTERM is handled
			// by pending.Store.Wait.
			signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE)
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGTERM)
			defer stop()
			return store.Wait(ctx, args[0], func() { fmt.Fprintln(a.out, ready) }, a.restore)
		},
	}
}

// detach starts this program with args in a new session, so that the process outlives the
// caller's session. It returns when the process is ready.
func (a *app) detach(args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(a.state, "rollback.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(self, args...)
	cmd.Dir = "/"
	cmd.Env = append(append(os.Environ(), stateDirEnv+"="+a.state), a.env...)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != ready+"\n" {
		err := cmd.Wait()
		return fmt.Errorf("the process exited early (%v): see %s", err, log.Name())
	}
	return cmd.Process.Release()
}
