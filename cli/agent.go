package cli

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"headgate/agent"
	"headgate/cli/pending"
	"headgate/config"
	"headgate/metrics"
	"headgate/shaper"
	"headgate/usage"
)

func agentCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "agent [-f FILE]",
		Short: "Keep a configuration in force as devices and services come and go",
		Long: `Agent applies the configuration and keeps it in force until it is told to stop:
on devices that appear later or return, after a change of MTU or name, when a
service's cgroup is made again, and when another program takes shaping away.
What is in force stays so when the agent stops, or is killed.

The agent owns the devices that its files name; a device that is taken out of
them is given back. What "headgate apply" does by hand on such a device stays
until the agent reads its files again (SIGHUP, a restart) or the device comes
anew; what "headgate clear" takes away there comes back at once.

SIGHUP reads the files again; with mistakes in them, what they said before
holds. A rule that names a cgroup waits until there is one.

Programs put connections of theirs in groups that name their users under "join" at the
agent's socket ("headgate assign --fd", docs/service.md).

On a host that has joined a service ("headgate agent join") its controllers say what
devices are to have that its files do not name. Cut off, the agent goes on with what it
has. A directory without files is good enough there.`,
		Example: `  headgate agent -f /etc/headgate
  headgate agent
  systemctl reload headgate`,
		Args: cobra.NoArgs,
	}
	files := fileFlag(c)
	level := logLevel(slog.LevelInfo)
	c.Flags().Var(&level, "log-level", "log what is at least this important")
	completeFlag(c, "log-level", oneOf("debug", "info", "warn", "error"))
	dir := c.Flags().String("dir", agentDir, "the `DIR` in which a host that has joined a service keeps everything")
	listen := c.Flags().String("metrics", "", "serve metrics of the groups for Prometheus at this `ADDRESS`, such as 127.0.0.1:9422, under /metrics")
	socket := socketFlag(c, "let programs put connections of theirs in groups (join) at this `PATH`; \"\" is nowhere")
	c.AddCommand(agentJoinCommand(a))
	c.RunE = func(c *cobra.Command, _ []string) error {
		switch {
		case len(*files) == 0 && joined(*dir):
		case len(*files) == 0:
			return usageError{errors.New("there is no configuration: write -f and a file or directory"), c.CommandPath()}
		case slices.Contains(*files, "-"):
			return usageError{errors.New("standard input cannot be read again: write -f and a file or directory"), c.CommandPath()}
		}
		return a.agent(c.Context(), *files, *dir, *listen, agentSocket{*socket, c.Flags().Changed("socket")}, slog.Level(level))
	}
	return c
}

func (a *app) agent(ctx context.Context, files []string, dir, listen string, socket agentSocket, level slog.Level) error {
	load := func() (config.Set, error) {
		if joined(dir) && config.NoFiles(files) {
			return config.Set{}, nil
		}
		return read(files, nil)
	}
	if _, err := load(); err != nil {
		return err // before anything that needs rights
	}
	var last atomic.Pointer[[]shaper.State]
	var meter usage.Meter
	if listen != "" {
		l, err := metrics.Listen(listen)
		if err != nil {
			return err
		}
		last.Store(&[]shaper.State{})
		defer metrics.Serve(l, metrics.Groups(func() []shaper.State { return *last.Load() }, meter.Unmet))()
	}
	store, err := a.store()
	if err != nil {
		return err
	}
	claim, err := agent.NewClaim(a.state, files)
	if err != nil {
		return needsRights(err)
	}
	defer claim.Close()
	kernel, err := agent.OpenLinux()
	if err != nil {
		return err
	}
	defer kernel.Close()

	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	reload := make(chan struct{}, 1)
	defer onHangup(reload)()
	log := slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level, ReplaceAttr: withoutTime}))
	slog.SetDefault(log) // the engines' warnings too
	notify, beat := agent.Notifier()
	ag := &agent.Agent{
		Load: load, Engines: a.engines, Kernel: kernel, Reload: reload, Claim: claim,
		Lock: store.Lock, Pending: func() []string { return waiting(store) },
		Notify: notify, Beat: beat, Log: log,
	}
	closeSocket, err := socket.open(ag)
	if err != nil {
		return err
	}
	defer closeSocket()
	if listen != "" {
		ag.MeterEvery = time.Second
		ag.Metered = func(_ time.Time, states []shaper.State) {
			last.Store(&states)
			groups := map[string][]usage.Group{}
			for _, s := range states {
				groups[s.Dev] = groupsOf(s)
			}
			meter.Take(groups)
		}
	}
	if !joined(dir) {
		return ag.Run(ctx)
	}
	remote, err := a.openRemote(dir, kernel, load)
	if err != nil {
		return err
	}
	return remote.run(ctx, ag)
}

// waiting are the devices whose change waits for confirmation, or is being
// undone.
func waiting(store *pending.Store) (devs []string) {
	c, stage, err := store.Read()
	if err != nil || stage != pending.Waiting && stage != pending.RollingBack {
		return nil
	}
	for _, d := range c.Devices {
		devs = append(devs, d.Dev)
	}
	return devs
}

// onHangup passes SIGHUP on until what it returns is called. A second one that
// comes before the first is taken in asks for nothing more.
func onHangup(reload chan<- struct{}) (stop func()) {
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

// withoutTime leaves the time to the journal.
func withoutTime(groups []string, attr slog.Attr) slog.Attr {
	if len(groups) == 0 && attr.Key == slog.TimeKey && os.Getenv("JOURNAL_STREAM") != "" {
		return slog.Attr{}
	}
	return attr
}

// logLevel is the value of --log-level.
type logLevel slog.Level

func (l *logLevel) String() string { return strings.ToLower(slog.Level(*l).String()) }
func (l *logLevel) Type() string   { return "debug|info|warn|error" }

// Set is for package pflag.
func (l *logLevel) Set(s string) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s)); err != nil {
		return errors.New("write debug, info, warn or error")
	}
	*l = logLevel(level)
	return nil
}

// warnAgent tells that an agent that runs has these devices in its files, and so
// what will become of a change by hand.
func (a *app) warnAgent(what string, devs ...string) {
	for _, dev := range devs {
		pid, source, ok := agent.Owner(a.state, dev)
		if !ok {
			continue
		}
		a.note("headgate: warning: %s is the agent's (process %d, for %s): %s", dev, pid, source, what)
	}
}

// What becomes of a change by hand on a device that is an agent's.
const (
	clearedByHand = "what is cleared comes back at once: stop the agent, or take the device out of its files and reload it"
	appliedByHand = "this stays until the agent reads its files again: change them too"
)
