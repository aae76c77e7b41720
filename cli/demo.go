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
	"headgate.dev/headgate/relay/host"
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
tenants cannot divide their guarantees.

With --network it is another demo, of about two minutes: two sites of hosts, six OpenFlow
switches (Open vSwitch) and two long paths of different delay and loss. Hosts measure that
a link gives less than its port says; a program reserves bandwidth, takes a counter-offer,
and lends what it leaves unused; relay agents carry an unmodified curl over both paths; and
a link is cut and healed. At the end each promise is compared with what was delivered.
--seed draws another network. With --serve it stays up afterwards.`,
		Example: `  headgate demo
  headgate demo --fast -o json
  headgate demo --serve
  headgate demo --network
  headgate demo --network --seed 7 --serve
  headgate demo --keep
  headgate demo --end`,
		Args: cobra.NoArgs,
	}
	engine := c.Flags().String("engine", string(group.HTB), "the engine that shapes the groups: htb or quantum")
	completeFlag(c, "engine", oneOf(string(group.HTB), string(group.Quantum)))
	fast := c.Flags().Bool("fast", false, "short phases, measured with a larger tolerance")
	keep := c.Flags().Bool("keep", false, "keep the network, the service and the groups at the end")
	serve := c.Flags().Bool("serve", false, "run the service with traffic until it is stopped, and print how to log in")
	network := c.Flags().Bool("network", false, "the demo of a network: two sites, six switches and two long paths")
	seed := c.Flags().Uint64("seed", 1, "draws the rates, delays and losses of the network of --network")
	end := c.Flags().Bool("end", false, "only stop and remove demos that are served, or were kept or killed")
	output := outputFlag(c)
	c.MarkFlagsMutuallyExclusive("keep", "serve", "end")
	for _, other := range []string{"keep", "end", "fast", "engine"} {
		c.MarkFlagsMutuallyExclusive("network", other)
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		name := group.Engine(*engine)
		if _, ok := a.engines[name]; !ok {
			return usageError{fmt.Errorf("--engine %s is unknown: set %s", *engine, joinEngines(a.observer().EngineNames())), c.CommandPath()}
		}
		if c.Flags().Changed("seed") && !*network {
			return usageError{errors.New("--seed draws the network of --network: add --network, or omit --seed"), c.CommandPath()}
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
		o.Seed = *seed
		ready := func(access *demo.Access) error { return a.print(*output, access, access.Write) }
		switch {
		case *network && *serve:
			return demoError(demo.ServeNetwork(ctx, o, ready))
		case *serve:
			return demoError(demo.Serve(ctx, o, ready))
		case *network:
			result, err := demo.RunNetwork(ctx, o)
			if err != nil {
				return demoError(err)
			}
			return a.judged(*output, result, result.Write, result.OK)
		}
		result, err := demo.Run(ctx, o)
		if err != nil {
			return demoError(err)
		}
		return a.judged(*output, result, result.Write, result.OK)
	}
	return c
}

// judged prints a result, and returns errReported if it is not good.
func (a *app) judged(f format, result any, write func(io.Writer) error, ok bool) error {
	if err := a.print(f, result, write); err != nil {
		return err
	}
	if !ok {
		return errReported
	}
	return nil
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
		Env: func(state, relays string) []string {
			return append([]string{stateDirEnv + "=" + state, host.SocketsEnv + "=" + relays}, a.env...)
		},
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
