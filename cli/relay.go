package cli

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/internal/sdnotify"
	"headgate.dev/headgate/metrics"
	"headgate.dev/headgate/relay/host"
)

func relayCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "relay",
		Short: "Carry TCP connections over many streams and several paths",
		Long: `Relay carries the TCP connections of applications between two agents, over many streams and
several paths. An agent acknowledges an application's data before the destination has it.`,
		Args: cobra.ArbitraryArgs,
		RunE: helpOrUnknown,
	}
	c.AddCommand(relayRunCommand(a), keyCommand(a, "relay", "agent"))
	c.AddCommand(relayForwardCommand(a))
	c.AddCommand(relayStatusCommand(a), relayTopCommand(a))
	return c
}

func relayRunCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "run -f FILE",
		Short: "Run the relay agent of a configuration",
		Long: `Run opens the streams to the exits of the document of kind: Relay, accepts streams if the document
says so, and listens for applications. It ends on SIGTERM, and with it the connections that it carries.

On SIGHUP it starts the program again, which may be another version, with the present configuration.
The new process takes over the listeners. The former one carries its connections to their end. If the
new process cannot start, the former one continues.`,
		Example: `  headgate relay key /etc/headgate/relay.key
  headgate relay run -f relay.yaml`,
		Args: cobra.NoArgs,
	}
	files := fileFlag(c)
	listen := c.Flags().String("metrics", "", "serve metrics for Prometheus at this `ADDRESS`, such as 127.0.0.1:9423, under /metrics")
	drain := c.Flags().Duration("drain-timeout", host.DrainTimeout, "`TIME` after which a process that was replaced ends the connections that it still carries")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if len(*files) == 0 {
			return usageError{errors.New("configuration is missing: set -f to a file or directory"), c.CommandPath()}
		}
		if *drain <= 0 {
			return usageError{errors.New("--drain-timeout must be positive"), c.CommandPath()}
		}
		upgrades := make(chan os.Signal, 1)
		if !term.IsTerminal(unix.Stdin) { // a terminal that is closed sends SIGHUP, too
			signal.Notify(upgrades, unix.SIGHUP)
		}
		notify, _ := sdnotify.New()
		upgrade, err := host.NewUpgrade(upgrades, *drain, notify)
		if err != nil {
			return err
		}
		set, err := read(*files, a.in)
		if err != nil {
			return err
		}
		document, err := only("Relay", *files, set.Relays, func(r config.Relay) (string, int) { return r.File, r.Line })
		if err != nil {
			return err
		}
		a.notes(document.Notes)
		p := document.Policy
		auth, err := host.ReadAuth(p)
		if err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(c.Context(), unix.SIGTERM, os.Interrupt)
		defer stop()
		agent := host.NewAgent(p, slog.Default())
		agent.Upgrade = upgrade
		agent.Metrics.Address = *listen
		agent.Metrics.Serve = func(l net.Listener) func() error { return metrics.Serve(l, metrics.NewRelay(agent.Status)) }
		return agent.Run(ctx, auth, func() { a.note("relay agent %s is ready", p.Name) })
	}
	return c
}
