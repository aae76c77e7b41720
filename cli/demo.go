package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/demo"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/logtext"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/view"
)

func demoCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show Headgate at work, live, in temporary namespaces",
		Long: `Demo creates a controller, three hosts with an agent each, their clients and a real
bottleneck in network namespaces. Two tenants share the hosts. Seven phases show the
effect on real TCP and UDP: overload, a group that goes idle and returns, a tenant's
program that requests more bandwidth for a deadline and releases it, and a connection
that is assigned to another group. Demo prints each headgate command that it runs and
each request to the API (after >), and at the end tables of the guarantees, the received
rates and the agents' usage records. It takes about 70 seconds, or 30 with --fast.

With --serve the service stays up with changing traffic, for you to change its
configuration: demo prints an address on this machine's loopback, and tokens of the
operator and of each tenant. It stops at Ctrl-C or "demo --end".

This machine's own network is not changed, and everything is removed at the end, also
after Ctrl-C; the next demo removes what a killed demo left. The exit code is 1 if a
guarantee was missed by more than the tolerance that the table states: 5%, or 10% with
--fast. With --engine quantum guarantees are missed: that engine is a faithful
implementation of the older algorithm, for comparison. It has no nested groups, so
tenants cannot divide their guarantees.`,
		Example: `  headgate demo
  headgate demo --fast -o json
  headgate demo --serve
  headgate demo --keep
  headgate demo --end`,
		Args: cobra.NoArgs,
	}
	engine := c.Flags().String("engine", string(group.HTB), "the engine that shapes the groups: htb or quantum")
	completeFlag(c, "engine", oneOf(string(group.HTB), string(group.Quantum)))
	fast := c.Flags().Bool("fast", false, "short phases, measured with a larger tolerance")
	keep := c.Flags().Bool("keep", false, "keep the network, the service and the groups at the end")
	serve := c.Flags().Bool("serve", false, "run the service with traffic until it is stopped, and print how to log in")
	end := c.Flags().Bool("end", false, "only stop and remove demos that are served, or were kept or killed")
	output := outputFlag(c)
	c.MarkFlagsMutuallyExclusive("keep", "serve", "end")
	c.RunE = func(c *cobra.Command, _ []string) error {
		name := group.Engine(*engine)
		if _, ok := a.engines[name]; !ok {
			return usageError{fmt.Errorf("--engine %s is unknown: set %s", *engine, joinEngines(a.observer().EngineNames())), c.CommandPath()}
		}
		if os.Geteuid() != 0 {
			return fmt.Errorf("cannot create network namespaces and load eBPF programs: %w: run demo as root (CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON), for example with sudo", os.ErrPermission)
		}
		if *end {
			return demo.End(a.demoOptions("table"))
		}
		ctx, stop := interrupted()
		defer stop()
		o := a.demoOptions(*output)
		o.Engine, o.Fast, o.Keep = name, *fast, *keep
		if *serve {
			return demoError(demo.Serve(ctx, o, func(access *demo.Access) error { return a.print(*output, access, access.Write) }))
		}
		result, err := demo.Run(ctx, o)
		if err != nil {
			return demoError(err)
		}
		if err := a.print(*output, result, result.Write); err != nil {
			return err
		}
		if !result.OK {
			return errReported
		}
		return nil
	}
	return c
}

func joinEngines(names []group.Engine) (s string) {
	for i, name := range names {
		if i > 0 {
			s += " or "
		}
		s += string(name)
	}
	return s
}

// demoOptions returns what a demo needs of this program. With -o json or yaml, standard output has only
// the result, and the progress goes to standard error.
func (a *app) demoOptions(f format) demo.Options {
	o := demo.Options{
		Out: a.out, In: a.in, Observe: a.observer().Observe, Clear: a.local().Clear,
		Env: func(dir string) []string { return append([]string{stateDirEnv + "=" + dir}, a.env...) },
		Log: func(w io.Writer) slog.Handler { return logtext.NewHandler(w) },
	}
	if f != "table" {
		o.Out = a.err
	} else if width, live := view.Width(a.out); live {
		o.Width = width
	}
	return o
}

// demoError translates the error of a demo for the user.
func demoError(err error) error {
	switch {
	case errors.Is(err, lab.ErrPermission):
		return fmt.Errorf("%w: %w", os.ErrPermission, err)
	case errors.Is(err, context.Canceled):
		return errors.New("demo interrupted")
	}
	return err
}
