package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"headgate/cli/pending"
	"headgate/shaper"
)

type pendingSnapshot = pending.Snapshot

// stateEnv is where the files of pending changes are kept instead of
// pending.DefaultDir.
const stateEnv = "HEADGATE_STATE"

func stateDir() string {
	if dir := os.Getenv(stateEnv); dir != "" {
		return dir
	}
	return pending.DefaultDir
}

func (a *app) store() (*pending.Store, error) { return pending.Open(a.state) }

// lock keeps other processes from changing shaping in this namespace.
func (a *app) lock() (*pending.Store, func(), error) {
	store, err := a.store()
	if err != nil {
		return nil, nil, err
	}
	unlock, err := store.Lock()
	return store, unlock, needsRights(err)
}

// needsRights says what a file that is only root's would ask for next.
func needsRights(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: %w", shaper.ErrPermission, err)
	}
	return err
}

// tell says what is pending, if anything, and what can be done about it.
func (a *app) tell(store *pending.Store) {
	c, stage, err := store.Read()
	if err != nil {
		a.note("headgate: %v", err)
		return
	}
	if s := pendingSentence(store, c, stage); s != "" {
		a.note("headgate: %s", s)
	}
}

func pendingSentence(store *pending.Store, c pending.Change, stage pending.Stage) string {
	when := c.Began.Local().Format(time.DateTime)
	switch {
	case stage == pending.None:
		return ""
	case store.Gone(c):
		return fmt.Sprintf("the machine was restarted before the change of %s to %s was confirmed; nothing of it is left", when, c.Names())
	case stage == pending.Waiting:
		return fmt.Sprintf("the change of %s to %s is rolled back at %s unless you run \"headgate confirm\"",
			when, c.Names(), c.Deadline().Local().Format(time.TimeOnly))
	case stage == pending.RollingBack:
		return fmt.Sprintf("the change of %s to %s was not confirmed and is being rolled back", when, c.Names())
	case stage == pending.Unfinished:
		return fmt.Sprintf("the change of %s to %s was not confirmed, and its rollback did not finish: run \"headgate confirm --roll-back\" to finish it, or apply a configuration", when, c.Names())
	}
	return fmt.Sprintf("the change of %s to %s was not confirmed, and the process that was to roll it back is gone: run \"headgate confirm\" to keep it, or \"headgate confirm --roll-back\"", when, c.Names())
}

// supersede makes way for a new change. One that still waits is in the way; one
// that nobody waits for any more is told of and forgotten.
func (a *app) supersede(store *pending.Store) error {
	c, stage, err := store.Read()
	if err != nil {
		return err
	}
	switch stage {
	case pending.None:
		return nil
	case pending.Waiting, pending.RollingBack:
		return fmt.Errorf("%s (\"headgate confirm --roll-back\" does so now)", pendingSentence(store, c, stage))
	}
	a.note("headgate: %s; this replaces it", pendingSentence(store, c, stage))
	return store.Forget()
}

// applyPending applies what is undone unless it is confirmed in time. The
// process that waits is at its post before anything is changed.
func (a *app) applyPending(store *pending.Store, steps []step, within time.Duration, say func(step)) (until time.Time, err error) {
	var before []pending.Snapshot
	for _, s := range steps {
		if s.before.Plan != nil {
			if s.before.Assigned, err = a.assignments(s.before.Engine, s.Dev); err != nil {
				return until, fmt.Errorf("nothing was changed: what is assigned on %s cannot be saved for the rollback: %w", s.Dev, err)
			}
		}
		before = append(before, s.before)
	}
	change := store.New(within, before)
	if err := store.Write(change); err != nil {
		return until, err
	}
	if err := a.detach(waitName, change.ID); err != nil {
		return until, errors.Join(fmt.Errorf("nothing was changed: the process that would roll back does not start: %w", err), store.Forget())
	}
	if err := a.applySteps(steps, say); err != nil {
		a.note("headgate: %v", err)
		if err := store.RollBack(change, a.restore); err != nil {
			return until, err
		}
		a.note("headgate: what was changed has been rolled back")
		return until, errSaid
	}
	return change.Deadline(), nil
}

const (
	waitName = "await"
	ready    = "ready"
)

// waitCommand is the process that apply --confirm-within leaves behind.
func waitCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    waitName + " ID",
		Short:  "Wait for a confirmation, and roll back without it",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			store, err := a.store()
			if err != nil {
				return err
			}
			// A terminal that goes away must not end the wait. Being told to stop
			// is another matter: see pending.Store.Wait.
			signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE)
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGTERM)
			defer stop()
			return store.Wait(ctx, args[0], func() { fmt.Fprintln(a.out, ready) }, a.restore)
		},
	}
}

// detach runs this program again with args, in a session of its own, so that it
// outlives the session that runs us. It returns when the process is ready.
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
	cmd.Env = append(append(os.Environ(), stateEnv+"="+a.state), a.env...)
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
		return fmt.Errorf("it ended early (%v): see %s", err, log.Name())
	}
	return cmd.Process.Release()
}
