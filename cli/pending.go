package cli

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/observe"
	"headgate.dev/headgate/pending"
	"headgate.dev/headgate/rollout"
)

// stateDirEnv is the environment variable with the directory for pending changes. The default is
// pending.DefaultDir.
const stateDirEnv = "HEADGATE_STATE"

func stateDir() string {
	if dir := os.Getenv(stateDirEnv); dir != "" {
		return dir
	}
	return pending.DefaultDir
}

// observer returns an observer of this machine, for commands that read the state of its devices.
func (a *app) observer() *observe.Observer {
	return &observe.Observer{Engines: a.engines, Devices: a.devices, Foreign: a.foreignPrograms, State: a.state}
}

// local returns this machine, for commands that change its devices.
func (a *app) local() *rollout.Machine {
	return &rollout.Machine{Observer: *a.observer(), Note: a.note, User: invoker(), Wait: a.startRollback}
}

func (a *app) store() (*pending.Store, error) { return pending.Open(a.state) }

// printPending prints the pending change, if there is one, and the commands for it.
func (a *app) printPending(store *pending.Store) {
	c, stage, err := store.Read()
	if err != nil {
		a.note("headgate: %v", err)
		return
	}
	if s := store.Describe(c, stage); s != "" {
		a.note("headgate: %s", s)
	}
}

const rollbackName = "await"

// startRollback starts the process that rolls back a change unless it is confirmed in time.
func (a *app) startRollback(id string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, rollbackName, id)
	cmd.Env = append(append(os.Environ(), stateDirEnv+"="+a.state), a.env...)
	return pending.StartWaiter(cmd, a.state)
}

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
			return store.Wait(ctx, args[0], func() { fmt.Fprintln(a.out, pending.Ready) }, a.local().Restore)
		},
	}
}
