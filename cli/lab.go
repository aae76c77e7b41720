package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/report"
)

const labExample = `  kind: Lab
  name: demo
  nodes:
    - client
    - {name: router, router: true}
    - {name: server, sysctl: {net.ipv4.tcp_ecn: 1}}
  links:
    - {ends: [client, router], delay: 5ms, loss: 0.01%}   # each way
    - ends: [router, server]                              # its name is router-server
      forward: {rate: 101Mbit, queue: 20ms}               # router to server
  flows:
    - {name: a, from: client, to: server, dport: 5001, rate: 60Mbit}
    - {name: b, from: client, to: server, proto: udp, rate: {0s: 10Mbit, 5s: 80Mbit}}
    - {name: c, from: server, to: client, download: true, sport: 80, congestion: bbr, rate: unlimited}
  timeline:
    - {at: 4s, link: router-server, direction: forward, set: {rate: 50Mbit}}
    - {at: 8s, stop: b}
  duration: 10s`

func labCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "lab",
		Short: "Run a test network of namespaces on this machine, from a file",
		Long: `Lab creates hosts and routers as network namespaces, and OpenFlow switches as
bridges of an Open vSwitch of its own, connects them by links with rates, delays,
losses, queues and limiters, and runs traffic, programs and a timeline in them. Rates
are layer-2 bits per second. docs/lab.md describes all keys. A lab file:

` + labExample,
		Args: cobra.ArbitraryArgs,
		RunE: helpOrUnknown,
	}
	for _, sub := range []func(*app) *cobra.Command{labCheckCommand, labUpCommand, labDownCommand, labExecCommand, labRunCommand} {
		cmd := sub(a)
		run := cmd.RunE
		cmd.RunE = func(c *cobra.Command, args []string) error { return a.labError(run(c, args)) }
		c.AddCommand(cmd)
	}
	return c
}

// labError prints mistakes in a lab file without a prefix, because they name file and line.
func (a *app) labError(err error) error {
	if errors.Is(err, lab.ErrConfig) {
		fmt.Fprintln(a.err, err)
		return errInvalidReported
	}
	return err
}

func labFileFlag(c *cobra.Command) *string {
	return c.Flags().StringP("file", "f", "", "lab file, or - for standard input")
}

func loadLab(c *cobra.Command, file string) (*lab.Topology, error) {
	if file == "" {
		return nil, usageError{errors.New("missing lab file: write -f FILE"), c.CommandPath()}
	}
	return lab.Load(file)
}

func labCheckCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "check -f FILE",
		Short: "Check a lab file; print its addresses and backends",
		Long: `Check reports every mistake in a lab file, with its line and key, and creates
nothing. It prints the devices of the lab, and the backend of each link on this
machine: veth, netem or the emulator.`,
		Example: "  headgate lab check -f lab.yaml",
		Args:    cobra.NoArgs,
	}
	file, output := labFileFlag(c), outputFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		t, err := loadLab(c, *file)
		if err != nil {
			return err
		}
		return a.printLab(*output, t)
	}
	return c
}

// printLab prints every device of a lab.
func (a *app) printLab(f format, t *lab.Topology) error {
	devices := t.Devices()
	return a.print(f, devices, func(w io.Writer) error { return report.WriteDevices(w, devices) })
}

func labUpCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "up -f FILE",
		Short: "Create a lab",
		Long: `Up creates the lab and exits; "headgate lab down" removes the lab. A lab with
emulated links ("headgate lab check" lists them) needs a process to forward their
frames: up then runs until it is interrupted, or until "headgate lab down", and
removes the lab itself.`,
		Example: "  headgate lab up -f lab.yaml",
		Args:    cobra.NoArgs,
	}
	file, output := labFileFlag(c), outputFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		t, err := loadLab(c, *file)
		if err != nil {
			return err
		}
		ctx, stop := interrupted()
		defer stop()
		var options []lab.Option
		if t.NeedsHolder() {
			options = append(options, lab.Held())
		}
		l, err := lab.Up(ctx, t, options...)
		if err != nil {
			return err
		}
		if err := a.printLab(*output, t); err != nil {
			return errors.Join(err, l.Close())
		}
		use := fmt.Sprintf("run programs on its hosts with \"headgate lab exec HOST -- COMMAND\", remove it with \"headgate lab down %s\"", t.Name)
		if !t.NeedsHolder() {
			a.note("lab %s is up: %s", t.Name, use)
			return errors.Join(l.Leave(), l.Close())
		}
		a.note("lab %s is up while this process runs, because the process forwards frames of the emulated links: %s or Ctrl-C", t.Name, use)
		<-ctx.Done()
		return l.Close()
	}
	return c
}

// interrupted returns a context that SIGINT, SIGTERM or SIGHUP cancels: the signals that
// a user, a terminal or "lab down" sends.
func interrupted() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
}

func labDownCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "down NAME... | --leftovers",
		Short: "Remove a lab, including one whose process was killed",
		Long: `Down removes labs with their processes, devices and namespaces, including labs whose
process was killed. With --leftovers it removes every lab whose process was killed, even
if the lab's file under /run/headgate is lost. A lab that a running process uses cannot be
removed, except one that "headgate lab up" holds.`,
		Example: `  headgate lab down demo
  headgate lab down --leftovers`,
		ValidArgsFunction: completeLabs,
	}
	leftovers := c.Flags().Bool("leftovers", false, "all labs whose process was killed")
	c.RunE = func(c *cobra.Command, names []string) error {
		labs, err := lab.Leftovers()
		if err != nil {
			return err
		}
		if len(names) == 0 && !*leftovers {
			text := "no lab on this machine"
			if len(labs) > 0 {
				text = "missing lab name; labs on this machine:"
				for _, l := range labs {
					text += " " + l.Name
				}
			}
			return usageError{errors.New(text), c.CommandPath()}
		}
		for _, l := range labs {
			if *leftovers && !l.InUse && !l.Kept {
				names = append(names, l.Name)
			}
		}
		if len(names) == 0 {
			fmt.Fprintln(a.out, "no labs to remove")
		}
		var errs []error
		for _, name := range names {
			if err := lab.Down(name); err != nil {
				errs = append(errs, err)
				continue
			}
			fmt.Fprintf(a.out, "lab %s removed\n", name)
		}
		return errors.Join(errs...)
	}
	return c
}

// onlyLab returns the name of the only lab that is up, or an error if there is not exactly one.
func onlyLab(labs []lab.Leftover) (string, error) {
	var up, dead []string
	for _, l := range labs {
		if l.InUse || l.Kept {
			up = append(up, l.Name)
		} else {
			dead = append(dead, l.Name)
		}
	}
	switch {
	case len(up) == 0 && len(dead) > 0:
		return "", fmt.Errorf("no lab is up; the process of %s was killed: remove the remains with \"headgate lab down --leftovers\"", strings.Join(dead, ", "))
	case len(up) == 0:
		return "", errors.New("no lab on this machine: create one with \"headgate lab up\"")
	case len(up) == 1:
		return up[0], nil
	}
	return "", fmt.Errorf("%d labs on this machine (%s): select one with --lab NAME", len(up), strings.Join(up, ", "))
}

func labExecCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "exec [--lab NAME] HOST|SWITCH -- COMMAND [ARG...]",
		Short: "Run a command on a host or for a switch of a lab",
		Long: `Exec runs a command on a host of a lab that is up. The exit code is the command's.

For a switch, the command runs in the namespace of the lab's switches. The environment
variable OVS_RUNDIR is set there, by which ovs-ofctl, ovs-vsctl and ovs-appctl find the
lab's Open vSwitch, and OVS_DB, the address of its database.`,
		Example: `  headgate lab exec client -- ping -c 3 10.0.1.2
  headgate lab exec --lab demo server -- iperf3 -s
  headgate lab exec s1 -- ovs-ofctl dump-flows s1`,
		Args: cobra.MinimumNArgs(2),

		DisableFlagsInUseLine: true, // the command comes last
	}
	name := c.Flags().String("lab", "", "the lab, if more than one is up")
	completeFlag(c, "lab", completeLabs)
	c.RunE = func(c *cobra.Command, args []string) error {
		if *name == "" {
			labs, err := lab.Leftovers()
			if err != nil {
				return err
			}
			if *name, err = onlyLab(labs); err != nil {
				return usageError{err, c.CommandPath()}
			}
		}
		l, err := lab.Attach(*name)
		if err != nil {
			return err
		}
		defer l.Close()
		// The command receives the terminal's signals itself, so this process only waits for it.
		ctx, stop := interrupted()
		defer stop()
		cmd, err := l.Command(context.WithoutCancel(ctx), args[0], args[1], args[2:]...)
		if err != nil {
			return err
		}
		cmd.Stdin, cmd.Stdout, cmd.Stderr = a.in, a.out, a.err
		err = cmd.Run()
		var exited *exec.ExitError
		switch {
		case errors.As(err, &exited) && exited.Exited():
			return exitStatus(exited.ExitCode())
		case err != nil:
			return fmt.Errorf("%s: %w", args[1], err)
		}
		return nil
	}
	return c
}
