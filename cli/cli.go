package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"headgate/config"
	"headgate/group"
	"headgate/internal/ifname"
	"headgate/shaper"
	"headgate/shaper/attach"
	"headgate/unit"
)

// commands is every command, in the order of the help text. A function makes
// its command and its flags; it must not do any work.
var commands = []func(*app) *cobra.Command{
	demoCommand,
	checkCommand,
	planCommand,
	applyCommand,
	confirmCommand,
	showCommand,
	topCommand,
	explainCommand,
	assignCommand,
	unassignCommand,
	clearCommand,
	agentCommand,
	controllerCommand,
	loginCommand,
	tenantCommand,
	hostCommand,
	tokenCommand,
	historyCommand,
	rollbackCommand,
	auditCommand,
	eventsCommand,
	reportCommand,
	doctorCommand,
	initCommand,
	probeCommand,
	tuneCommand,
	collectiveCommand,
	labCommand,
	benchCommand,
	versionCommand,
	waitCommand,
	manCommand,
}

// Exit codes.
const (
	done         = 0
	failed       = 1
	wrong        = 2 // usage or configuration; nothing was changed
	notPermitted = 3
)

// app is what all commands share.
type app struct {
	in       io.Reader
	out, err io.Writer

	engines map[group.Engine]shaper.Shaper
	devices func() ([]string, error) // of this network namespace
	// alternatives are the devices' alternative names; nil is that there are none.
	alternatives func() (map[string][]string, error)
	around       func() *surroundings // nil is that nothing is known of devices
	speed        func(dev string) (unit.Rate, bool)
	sooner       func(dev string) ([2][]string, error) // attach.Sooner
	state        string                                // directory of what is pending
	env          []string                              // more environment for the process that waits, in tests
}

// note prints a line for the user that is not what the command was asked for.
func (a *app) note(format string, args ...any) {
	fmt.Fprintf(a.err, format+"\n", args...)
}

// Run is the whole program: args are the command line without the program's
// name. It returns the exit code.
func Run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	slog.SetDefault(slog.New(newLogLines(stderr)))
	a := &app{in: stdin, out: stdout, err: stderr, engines: newEngines(), devices: allDevices, alternatives: ifname.Alternatives, around: readSurroundings, speed: linkSpeed, sooner: attach.Sooner, state: stateDir()}
	return a.run(args)
}

func (a *app) run(args []string) int {
	root := a.root()
	root.SetArgs(args)
	return a.exit(root.Execute())
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "headgate",
		Short: "Divide, measure and reserve bandwidth",
		Long: `Headgate divides a link by guarantee: each group gets its share when it wants
it, whatever the others do, and what is idle is lent at once.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration (nothing was
changed), 3 not permitted.`,
		SilenceErrors:              true,
		SuggestionsMinimumDistance: 2,
		SilenceUsage:               true,
		Args:                       cobra.ArbitraryArgs,
		RunE:                       helpOrUnknown,
	}
	cobra.EnableCommandSorting = false // the order of commands says what comes first
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	for _, command := range commands {
		root.AddCommand(command(a))
	}
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Run, c.RunE = nil, helpOn(root)
		case "completion":
			c.Args, c.RunE = cobra.ArbitraryArgs, helpOrUnknown
		}
	}
	usageErrors(root)
	return root
}

// helpOn prints the help of the command that words name.
func helpOn(root *cobra.Command) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, words []string) error {
		c, rest, err := root.Find(words)
		if err != nil || len(rest) > 0 && c.HasSubCommands() {
			return unknownCommand(c, words[len(words)-len(rest)])
		}
		c.InitDefaultHelpFlag()
		return c.Help()
	}
}

// helpOrUnknown is what a command does that has only commands below it.
func helpOrUnknown(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return unknownCommand(c, args[0])
	}
	return c.Help()
}

// usageError is a command line that cannot be meant.
type usageError struct {
	error
	command string
}

func (u usageError) Unwrap() error { return u.error }

// usageErrors makes every complaint about flags and arguments a usageError.
func usageErrors(c *cobra.Command) {
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		err = plainFlagError(err)
		if strings.Contains(c.Use, " -- ") {
			err = fmt.Errorf("%w: if it is for the command inside, write -- before that", err)
		}
		return usageError{err, c.CommandPath()}
	})
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := c.ValidateFlagGroups(); err != nil {
				return usageError{err, c.CommandPath()}
			}
			if check(c, args) == nil {
				return nil
			}
			what := "something is missing"
			if n := len(args); n > 0 && check(c, append(slices.Clone(args), "x")) != nil {
				what = fmt.Sprintf("%q is not understood here", args[n-1])
			}
			return usageError{fmt.Errorf("%s: write %s", what, strings.TrimSuffix(c.UseLine(), " [flags]")), c.CommandPath()}
		}
	}
	for _, sub := range c.Commands() {
		usageErrors(sub)
	}
}

// required makes the command ask for flags that it cannot do without.
func required(c *cobra.Command, flags ...string) {
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		for _, name := range flags {
			if f := c.Flag(name); !f.Changed {
				return usageError{fmt.Errorf("--%s is missing: %s", name, f.Usage), c.CommandPath()}
			}
		}
		return nil
	}
}

func unknownCommand(c *cobra.Command, word string) error {
	err := fmt.Errorf("there is no command %q", word)
	if near := c.SuggestionsFor(word); len(near) > 0 {
		err = fmt.Errorf("%w: did you mean %s?", err, near[0])
	}
	return usageError{err, c.CommandPath()}
}

// exitStatus is that of a program that was run on the user's behalf: it has said
// itself what was wrong.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// exit prints the error, if any, and gives the exit code.
func (a *app) exit(err error) int {
	var mistakes config.Mistakes
	var usage usageError
	var status exitStatus
	switch {
	case err == nil:
		return done
	case errors.As(err, &status):
		return int(status)
	case errors.Is(err, errSaid):
		return failed
	case errors.Is(err, errMistakesSaid):
		return wrong
	case errors.As(err, &mistakes):
		fmt.Fprintln(a.err, err)
		return wrong
	case errors.As(err, &usage):
		a.note("headgate: %v\nRun \"%s --help\" for how to use it.", err, usage.command)
		return wrong
	}
	a.note("headgate: %v", err)
	if notPermittedError(err) {
		return notPermitted
	}
	return failed
}

// Errors of commands that have told the user already.
var (
	errSaid         = errors.New("failed")
	errMistakesSaid = errors.New("the configuration has mistakes")
)

func notPermittedError(err error) bool {
	return errors.Is(err, shaper.ErrPermission) || errors.Is(err, os.ErrPermission) ||
		errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES)
}

// plainFlagError says of a length of time what to write: package time's own words
// are for programmers.
func plainFlagError(err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) && invalid.GetFlag().Value.Type() == "duration" {
		return fmt.Errorf("--%s: %q is not a length of time: write for example 500ms, 60s or 5m", invalid.GetFlag().Name, invalid.GetValue())
	}
	return err
}
