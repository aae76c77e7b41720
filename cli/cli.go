package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/hostsurvey/placement"
	"headgate.dev/headgate/internal/ifname"
	"headgate.dev/headgate/internal/logtext"
	"headgate.dev/headgate/internal/netdev"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/attach"
	"headgate.dev/headgate/shaper/engines"
	"headgate.dev/headgate/unit"
)

// commands lists every command, in the order of the help text. Each function creates
// a command and its flags and must not do anything else.
var commands = []func(*app) *cobra.Command{
	demoCommand,
	checkCommand,
	planCommand,
	applyCommand,
	confirmCommand,
	undoCommand,
	showCommand,
	topCommand,
	explainCommand,
	assignCommand,
	unassignCommand,
	clearCommand,
	agentCommand,
	controllerCommand,
	loginCommand,
	logoutCommand,
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
	relayCommand,
	networkCommand,
	reserveCommand,
	labCommand,
	benchCommand,
	versionCommand,
	awaitCommand,
	manCommand,
}

// Exit codes.
const (
	exitOK           = 0
	exitFailed       = 1
	exitUsage        = 2 // usage or configuration; nothing was changed
	exitNotPermitted = 3
)

// app has the state that all commands share.
type app struct {
	in       io.Reader
	out, err io.Writer

	engines map[group.Engine]shaper.Shaper
	devices func() ([]string, error) // of this network namespace
	// alternatives returns the devices' alternative names; nil if there are none.
	alternatives    func() (map[string][]string, error)
	machine         func() *placement.Machine // nil if nothing is known of the devices
	speed           func(dev string) (unit.Rate, bool)
	foreignPrograms func(dev string) ([2][]string, error) // attach.TCXPrograms
	state           string                                // directory of the pending change and the agent's state file
	env             []string                              // additional environment of the wait process, in tests
}

// note prints a line on standard error, beside the command's output.
func (a *app) note(format string, args ...any) {
	fmt.Fprintf(a.err, format+"\n", args...)
}

// Run runs the program and returns its exit code. The arguments args are the command
// line without the program's name.
func Run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	slog.SetDefault(slog.New(logtext.NewHandler(stderr)))
	a := &app{in: stdin, out: stdout, err: stderr, engines: engines.New(), devices: netdev.Names, alternatives: ifname.Alternatives, machine: placement.Read, speed: netdev.Speed, foreignPrograms: attach.TCXPrograms, state: stateDir()}
	return a.run(args)
}

func (a *app) run(args []string) int {
	root := a.root()
	if c, word := misspelled(root, args); word != "" {
		return a.exit(unknownCommand(c, word))
	}
	root.SetArgs(args)
	return a.exit(root.Execute())
}

// misspelled returns the word in the place of a command that is none, and the command that it would be below; "" without one. Flags after it would be reported instead of it.
func misspelled(root *cobra.Command, args []string) (*cobra.Command, string) {
	c, rest, _ := root.Find(args)
	if c == nil || len(rest) == 0 || !c.HasSubCommands() || strings.HasPrefix(rest[0], "-") || strings.HasPrefix(rest[0], "__") { // cobra adds __complete later
		return nil, ""
	}
	if onlySubcommands := reflect.ValueOf(c.RunE).Pointer() == reflect.ValueOf(helpOrUnknown).Pointer(); !onlySubcommands && c.ValidateArgs(rest[:1]) == nil {
		return nil, ""
	}
	return c, rest[0]
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:     "headgate",
		Version: thisVersion().String(),
		Short:   "Divide, measure and reserve bandwidth",
		Long: `Headgate divides a link by guarantee: a group with demand gets its guarantee whatever
the other groups do, and unused bandwidth is lent to other groups at once.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration (nothing was
changed), 3 not permitted.`,
		SilenceErrors:              true,
		SuggestionsMinimumDistance: 2,
		SilenceUsage:               true,
		Args:                       cobra.ArbitraryArgs,
		RunE:                       helpOrUnknown,
	}
	cobra.EnableCommandSorting = false // keep the order of commands
	root.SetVersionTemplate("{{.Version}}\n")
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

// helpOn returns the run function of "headgate help": it prints the help of the command that words name.
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

// helpOrUnknown is the run function of a command that has only subcommands.
func helpOrUnknown(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return unknownCommand(c, args[0])
	}
	return c.Help()
}

// usageError is an invalid command line.
type usageError struct {
	error
	command string
}

func (u usageError) Unwrap() error { return u.error }

// usageErrors makes every error about flags and arguments a usageError.
func usageErrors(c *cobra.Command) {
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		err = plainFlagError(err)
		if strings.Contains(c.Use, " -- ") {
			err = fmt.Errorf("%w: put -- before the inner command if the flag belongs to it", err)
		}
		return usageError{err, c.CommandPath()}
	})
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := c.ValidateFlagGroups(); err != nil {
				return usageError{plainGroupError(err), c.CommandPath()}
			}
			if check(c, args) == nil {
				return nil
			}
			what := "missing argument"
			if n := len(args); n > 0 && check(c, append(slices.Clone(args), "x")) != nil {
				what = fmt.Sprintf("unexpected argument %q", args[n-1])
			}
			return usageError{fmt.Errorf("%s: usage: %s", what, strings.TrimSuffix(c.UseLine(), " [flags]")), c.CommandPath()}
		}
	}
	for _, sub := range c.Commands() {
		usageErrors(sub)
	}
}

// requireFlags makes flags mandatory.
func requireFlags(c *cobra.Command, flags ...string) {
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		for _, name := range flags {
			if f := c.Flag(name); !f.Changed {
				_, usage := pflag.UnquoteUsage(f)
				return usageError{fmt.Errorf("--%s is missing: %s", name, usage), c.CommandPath()}
			}
		}
		return nil
	}
}

func unknownCommand(c *cobra.Command, word string) error {
	err := fmt.Errorf("unknown command %q", word)
	if near := c.SuggestionsFor(word); len(near) > 0 {
		err = fmt.Errorf("%w: did you mean %s?", err, near[0])
	}
	return usageError{err, c.CommandPath()}
}

// exitStatus is the exit status of a program that was run on the user's behalf. The program has
// printed its own error.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// exit prints the error, if any, and returns the exit code.
func (a *app) exit(err error) int {
	var mistakes config.Errors
	var usage usageError
	var status exitStatus
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &status):
		return int(status)
	case errors.Is(err, errReported):
		return exitFailed
	case errors.Is(err, errInvalidReported):
		return exitUsage
	case errors.As(err, &mistakes):
		fmt.Fprintln(a.err, err)
		return exitUsage
	case errors.Is(err, api.ErrInvalid):
		fmt.Fprintf(a.err, "service: %v\n", err)
		return exitUsage
	case errors.As(err, &usage):
		a.note("headgate: %v\nRun \"%s --help\" for usage.", err, usage.command)
		return exitUsage
	}
	a.note("headgate: %v", err)
	if notPermittedError(err) {
		return exitNotPermitted
	}
	return exitFailed
}

// Errors that the command has printed already.
var (
	errReported        = errors.New("failed")
	errInvalidReported = errors.New("configuration is invalid")
)

func notPermittedError(err error) bool {
	return errors.Is(err, shaper.ErrPermission) || errors.Is(err, os.ErrPermission) ||
		errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES)
}

// withRootRemedy adds the remedy to a permission error.
func withRootRemedy(err error) error { return fmt.Errorf("%w: run it as root", err) }

// plainFlagError replaces the errors of packages time and strconv for an invalid value by ones that say which format is
// valid.
func plainFlagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	name, value := invalid.GetFlag().Name, invalid.GetValue()
	switch kind := invalid.GetFlag().Value.Type(); {
	case kind == "duration":
		return fmt.Errorf("--%s: %q is not a duration: set for example 500ms, 60s, 5m or 48h", name, value)
	case strings.HasPrefix(kind, "uint"):
		return fmt.Errorf("--%s: %q is not a number that it can have: set a whole number from 0", name, value)
	case strings.HasPrefix(kind, "int"):
		return fmt.Errorf("--%s: %q is not a number that it can have: set a whole number", name, value)
	}
	return err
}

// groupError matches cobra's errors for flags that exclude or need each other.
var groupError = regexp.MustCompile(`^if any flags in the group \[([^]]*)\] are set (?:none of the others can be; \[([^]]*)\] were all set|they must all be set; missing \[([^]]*)\])$`)

// plainGroupError replaces cobra's errors for flags that exclude or need each other by ones that say what to do.
func plainGroupError(err error) error {
	m := groupError.FindStringSubmatch(err.Error())
	if m == nil {
		return err
	}
	names := func(words []string) string { return "--" + strings.Join(words, " and --") }
	if m[2] != "" {
		return fmt.Errorf("%s exclude each other: omit all but one of them", names(strings.Fields(m[2])))
	}
	missing := strings.Fields(m[3])
	set := slices.DeleteFunc(strings.Fields(m[1]), func(name string) bool { return slices.Contains(missing, name) })
	return fmt.Errorf("%s cannot be used without %s", names(set), names(missing))
}
