package cli

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/agent/remote"
	agentservice "headgate.dev/headgate/agent/service"
	"headgate.dev/headgate/api/local"
	"headgate.dev/headgate/config"
)

// agentDir is the default state directory of a host that has joined a service.
const agentDir = "/var/lib/headgate/agent"

func agentCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "agent [-f FILE]",
		Short: "Apply a configuration and keep it applied as devices and services appear and disappear",
		Long: `Agent applies the configuration and keeps it applied until the agent is stopped:
on devices that appear later or reappear, after a change of MTU or name, when a
service's cgroup is created again, and when another program removes the shaping.
The shaping stays in the kernel when the agent stops or is killed.

The agent owns the devices that its files name. A device that is removed from the
files is cleared. A "headgate apply" on such a device holds until the agent reloads
its files (SIGHUP, a restart) or the device is created again; a "headgate clear"
there is undone at once.

SIGHUP reloads the files; if they have errors, the configuration loaded before stays
in force. A rule that names a cgroup takes effect once the cgroup exists.

Programs assign their own connections through the agent's socket, to groups that name
the program's user under "join" ("headgate assign --fd", docs/service.md).

On a host that has joined a service ("headgate agent join"), the controller configures
the devices that the local files do not name. While disconnected, the agent keeps the
last configuration that it received. The directory given with -f may be empty there.`,
		Example: `  headgate agent -f /etc/headgate
  headgate agent
  systemctl reload headgate`,
		Args: cobra.NoArgs,
	}
	files := fileFlag(c)
	level := logLevel(slog.LevelInfo)
	c.Flags().Var(&level, "log-level", "minimum level of log messages")
	completeFlag(c, "log-level", oneOf("debug", "info", "warn", "error"))
	dir := c.Flags().String("dir", agentDir, "the state `DIR` of a host that has joined a service")
	listen := c.Flags().String("metrics", "", "serve the groups' metrics to Prometheus at this `ADDRESS`, such as 127.0.0.1:9422, under /metrics")
	socket := socketFlag(c, "the `PATH` of the socket at which programs assign their connections to groups (join); \"\" disables the socket")
	c.AddCommand(agentJoinCommand(a))
	c.RunE = func(c *cobra.Command, _ []string) error {
		switch {
		case len(*files) == 0 && remote.HasJoined(*dir):
		case len(*files) == 0:
			return usageError{errors.New("configuration is missing: set -f to a file or directory"), c.CommandPath()}
		case slices.Contains(*files, "-"):
			return usageError{errors.New("cannot reload standard input: set -f to a file or directory"), c.CommandPath()}
		}
		slog.SetDefault(slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.Level(level), ReplaceAttr: dropTimeInJournal})))
		ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		reload := make(chan struct{}, 1)
		defer forwardHangup(reload)()
		return agentservice.Run(ctx, agentservice.Options{
			Files: *files, Read: readOfAgent, Reload: reload,
			Dir: *dir, State: a.state, Engines: a.engines, Speed: a.speed, Metrics: *listen,
			Socket: *socket, SocketRequired: c.Flags().Changed("socket"), Version: version, Command: thisProgram,
		})
	}
	return c
}

// thisProgram prepares a run of this program.
func thisProgram(ctx context.Context, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, self, args...), nil
}

func socketFlag(c *cobra.Command, usage string) *string {
	return c.Flags().String("socket", local.Socket, usage)
}

// forwardHangup forwards SIGHUP to reload until the returned function is called.
// Signals that arrive while a reload is pending are merged into that reload.
func forwardHangup(reload chan<- struct{}) (stop func()) {
	hangup, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangup, syscall.SIGHUP)
	go func() {
		for {
			select {
			case <-hangup:
			case <-done:
				return
			}
			select {
			case reload <- struct{}{}:
			default:
			}
		}
	}()
	return func() { signal.Stop(hangup); close(done) }
}

// dropTimeInJournal removes the time attribute under systemd, whose journal records the
// time of each message.
func dropTimeInJournal(groups []string, attr slog.Attr) slog.Attr {
	if len(groups) == 0 && attr.Key == slog.TimeKey && os.Getenv("JOURNAL_STREAM") != "" {
		return slog.Attr{}
	}
	return attr
}

// logLevel is the value of --log-level.
type logLevel slog.Level

func (l *logLevel) String() string { return strings.ToLower(slog.Level(*l).String()) }
func (l *logLevel) Type() string   { return "debug|info|warn|error" }

// Set implements pflag.Value.
func (l *logLevel) Set(s string) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s)); err != nil {
		return errors.New("must be debug, info, warn or error")
	}
	*l = logLevel(level)
	return nil
}

// readOfAgent reads the agent's files.
func readOfAgent(files []string) (config.Set, error) {
	set, err := read(files, nil)
	if err == nil {
		err = tenantsNot(set, "headgate agent")
	}
	return set, err
}
