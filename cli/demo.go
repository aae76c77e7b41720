package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"headgate/group"
	"headgate/lab"
)

func demoCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "demo",
		Short: "The main job, live, in throwaway namespaces",
		Long: `Demo makes a controller, three hosts with an agent each, their clients and a real
bottleneck out of network namespaces. Two tenants share the hosts. In seven phases
it shows what that does to real TCP and UDP: overload, a group that goes idle and
returns, a tenant's program that asks for more as its deadline nears and gives it
back, a connection that moves. It prints each headgate command that it runs and
each request to the API (after >), and at the end tables of what was guaranteed,
what was received, and what the agents have on record. It takes about 70 seconds,
with --fast 30.

With --serve the service stays up, with traffic that changes all the time, and you are
the one who changes things: demo prints an address of this machine's loopback, and
tokens of the operator and of each tenant, and ends at Ctrl-C or at "demo --end".

Nothing of this machine's own network is touched, and all is removed at the end,
also after Ctrl-C; what a killed demo left is removed by the next. The exit code
is 1 if a guarantee was missed by more than the tolerance that the table states:
5%, with --fast 10%. With --engine quantum it will be: that engine is the older
algorithm, faithful, to compare with. It has no groups in groups, so that tenants
cannot divide what they have.`,
		Example: `  headgate demo
  headgate demo --fast -o json
  headgate demo --serve
  headgate demo --keep
  headgate demo --end`,
		Args: cobra.NoArgs,
	}
	engine := c.Flags().String("engine", string(group.HTB), "what enforces the groups: htb or quantum")
	completeFlag(c, "engine", oneOf(string(group.HTB), string(group.Quantum)))
	fast := c.Flags().Bool("fast", false, "short phases, measured with a larger tolerance")
	keep := c.Flags().Bool("keep", false, "leave the network, the service and the groups up at the end")
	serve := c.Flags().Bool("serve", false, "leave the service up with traffic, say how to get in, and wait to be ended")
	end := c.Flags().Bool("end", false, "only end and remove demos that are served, or were kept or killed")
	output := outputFlag(c)
	c.MarkFlagsMutuallyExclusive("keep", "serve", "end")
	c.RunE = func(c *cobra.Command, _ []string) error {
		name := group.Engine(*engine)
		if _, ok := a.engines[name]; !ok {
			return usageError{fmt.Errorf("--engine %s is not possible: write %s", *engine, joinEngines(a.engineNames())), c.CommandPath()}
		}
		if os.Geteuid() != 0 {
			return fmt.Errorf("demo makes network namespaces and loads eBPF programs: %w; run it as root (CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON), for example with sudo", os.ErrPermission)
		}
		if *end {
			return a.endDemos()
		}
		if *serve {
			return a.serveDemo(newScenario(name, *fast), *output)
		}
		return a.demo(newScenario(name, *fast), *keep, *output)
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

// endDemos ends and removes those that are served, or were kept or killed.
func (a *app) endDemos() error {
	ended := false
	say := func(lines ...string) {
		ended = true
		fmt.Fprintln(a.out, strings.Join(lines, "\n"))
	}
	if err := endServed(say); err != nil {
		return err
	}
	err := a.sweepDemos(say, true)
	if err == nil && !ended {
		fmt.Fprintln(a.out, "No demo is served, or was kept or killed.")
	}
	return err
}

// demo shows a scenario, and reports.
func (a *app) demo(s scenario, keep bool, f format) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var result *demoResult
	stage := a.demoStage(f)
	err := stage.show(ctx, func(ctx context.Context) error {
		var err error
		result, err = a.play(ctx, s, keep, stage)
		return err
	})
	if err != nil {
		return demoError(err)
	}
	if err := a.print(f, result, func(w io.Writer) error { return result.write(w) }); err != nil {
		return err
	}
	if !result.OK {
		return errSaid
	}
	return nil
}

// demoError is why a demo could not go on, for the user.
func demoError(err error) error {
	switch {
	case errors.Is(err, lab.ErrPermission):
		return fmt.Errorf("%w: %w", os.ErrPermission, err)
	case errors.Is(err, context.Canceled):
		return errors.New("the demo was interrupted")
	}
	return err
}
