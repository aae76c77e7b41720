package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"headgate/bench"
	collectivebench "headgate/bench/collective"
	"headgate/bench/dashboard"
	"headgate/bench/groups"
	labbench "headgate/bench/lab"
	"headgate/bench/probing"
	servicebench "headgate/bench/service"
	"headgate/bench/switching"
	"headgate/lab"
)

// benches is every bench: what it measures may depend on what is drawn, its name
// and its claims' ids never do.
var benches = []func(*bench.Draw) bench.Bench{groups.Bench, labbench.Bench, switching.Bench, probing.Bench, collectivebench.Bench, servicebench.Bench, dashboard.Bench}

func benchCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "bench NAME",
		Short: "Run one paper's experiment, or a comparison with a peer",
		Long: `Bench measures what Headgate promises, in throwaway namespaces on this machine,
beside the paper's figures and beside others in the same run. Every claim has a
target that was fixed beforehand; one that falls short, or was not measured, is
said so and is no failure of the command (see --strict).

Some cases are drawn at random, from ranges that their claims name; the seed is
printed with the results, and --seed repeats it.

Nothing else should load the machine meanwhile. Ctrl-C ends it and cleans up.

Benches:
` + benchNames(),
		Example: `  headgate bench groups --quick
  headgate bench groups --only latency --only spare/priority
  headgate bench groups --runs 3 --report docs/results
  headgate bench collective --runs 3 --journal collective.journal --report docs/results
  headgate bench groups --only ramp-out/drawn-1 --seed 42`,
		Args: cobra.ExactArgs(1),
	}
	var o bench.Options
	flags := c.Flags()
	flags.BoolVar(&o.Quick, "quick", false, "a smoke run: every claim, on few cases and shortly, in at most 3 minutes")
	flags.IntVar(&o.Runs, "runs", 1, "measure each case `N` times and take medians")
	flags.StringArrayVar(&o.Only, "only", nil, "only claims with this `ID` or below it, such as ramp-out/100Mbit (may be repeated)")
	flags.DurationVar(&o.Patience, "patience", 0, "how long in all to wait for other programs to leave the machine alone, and to measure again what they disturbed")
	report := flags.String("report", "", "write a Markdown report with plots into the folder `DIR`")
	flags.StringVar(&o.Journal, "journal", "", "keep in `FILE` what is measured, as it is measured, and go on from there if it has something: a bench of hours may be ended at any time")
	list := flags.Bool("list", false, "only list the claims and their targets")
	seed := flags.Uint64("seed", 0, "the drawn cases of seed `N`, to repeat a run (default 0: a new one each time, which is printed)")
	strict := flags.Bool("strict", false, "exit with 1 if a claim falls short or is missing")
	output := outputFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if *seed == 0 && o.Journal != "" {
			var err error
			if *seed, err = bench.JournalSeed(o.Journal); err != nil {
				return err
			}
		}
		if *seed == 0 {
			*seed = bench.NewSeed()
		}
		b, err := benchNamed(args[0], *seed)
		if err != nil {
			return usageError{err, c.CommandPath()}
		}
		if o.Runs < 1 {
			return usageError{fmt.Errorf("--runs %d is not possible: write 1 or more", o.Runs), c.CommandPath()}
		}
		claims, err := b.Declared(o.Only)
		if err != nil {
			return usageError{err, c.CommandPath()}
		}
		if *list {
			return a.listBench(b, o, claims, *output)
		}
		if *report != "" {
			if err := b.CheckReport(*report, o); err != nil {
				return usageError{err, c.CommandPath()}
			}
		}
		if os.Geteuid() != 0 {
			return fmt.Errorf("bench makes network namespaces and loads eBPF programs: %w (run it as root)", os.ErrPermission)
		}
		ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		o.Progress = a.note
		a.note("%s: %d claims, about %v, seed %d", b.Title, len(claims), b.Takes(o), b.Seed)
		result, err := b.Run(ctx, o)
		if err != nil {
			if errors.Is(err, lab.ErrPermission) {
				return fmt.Errorf("%w: %w", os.ErrPermission, err)
			}
			return err
		}
		if *output == "json" {
			err = result.WriteJSON(a.out)
		} else {
			err = a.print(*output, result, result.WriteTable)
		}
		if err != nil {
			return err
		}
		if *report != "" {
			if err := result.WriteReport(*report, b); err != nil {
				return err
			}
			a.note("report: %s/%s.md", strings.TrimSuffix(*report, "/"), b.Name)
		}
		if ctx.Err() != nil {
			return errors.New("the bench was interrupted: what was not measured is missing")
		}
		if short := len(result.Short()); short > 0 && *strict {
			return fmt.Errorf("%d of %d claims are not reached", short, len(result.Claims))
		}
		return nil
	}
	return c
}

func benchNames() string {
	var b strings.Builder
	for _, make := range benches {
		known := make(bench.NewDraw(1))
		fmt.Fprintf(&b, "  %-10s %s\n", known.Name, known.Title)
	}
	return b.String()
}

func benchNamed(name string, seed uint64) (bench.Bench, error) {
	var known []string
	for _, make := range benches {
		b := make(bench.NewDraw(seed))
		if b.Name == name {
			return b, nil
		}
		known = append(known, b.Name)
	}
	return bench.Bench{}, fmt.Errorf("there is no bench %q: write %s", name, strings.Join(known, " or "))
}

// listBench prints the claims without measuring.
func (a *app) listBench(b bench.Bench, o bench.Options, claims []bench.Claim, f format) error {
	return a.print(f, claims, func(w io.Writer) error {
		rows := [][]string{{"CLAIM", "TARGET", "UNIT", "WHAT"}}
		for _, c := range claims {
			what := c.Metric
			if c.Drawn != "" {
				what += "; drawn: " + c.Drawn
			}
			rows = append(rows, []string{c.ID, c.Target.String(), c.Unit, what})
		}
		if err := table(w, "", rows); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w, "\n%d claims; about %v, or %v with --quick\nThe drawn cases are those of seed %d: --seed %[4]d repeats them.\n",
			len(claims), b.Takes(o), b.Takes(bench.Options{Quick: true, Only: o.Only}), b.Seed)
		return err
	})
}
