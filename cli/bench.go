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

	"headgate.dev/headgate/bench"
	collectivebench "headgate.dev/headgate/bench/collective"
	"headgate.dev/headgate/bench/dashboard"
	fabricbench "headgate.dev/headgate/bench/fabric"
	"headgate.dev/headgate/bench/groups"
	"headgate.dev/headgate/bench/inmemory"
	labbench "headgate.dev/headgate/bench/lab"
	"headgate.dev/headgate/bench/loop"
	"headgate.dev/headgate/bench/probing"
	relaybench "headgate.dev/headgate/bench/relay"
	reservationsbench "headgate.dev/headgate/bench/reservations"
	servicebench "headgate.dev/headgate/bench/service"
	"headgate.dev/headgate/bench/switching"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/lab"
)

// benches lists every benchmark. The randomly drawn cases may change what a benchmark
// measures, but not its name and its claims' IDs.
var benches = []func(*bench.Draw) bench.Bench{groups.Bench, labbench.Bench, switching.Bench, probing.Bench, collectivebench.Bench, servicebench.Bench, dashboard.Bench, relaybench.Bench, fabricbench.Bench, reservationsbench.Bench, loop.Bench}

func benchCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "bench NAME",
		Short: "Run a benchmark: a paper's experiment, or a comparison with other programs",
		Long: `Bench measures Headgate's claims in temporary network namespaces on this machine, and
compares the results with the paper's figures and with other programs in the same run.
Every claim has a target that was fixed before the measurement. A claim that misses its
target, or was not measured, is reported as such and does not fail the command (see
--strict).

Some cases are drawn at random, from ranges that their claims name. The seed is printed
with the results, and --seed repeats them.

Nothing else should load the machine meanwhile. Ctrl-C stops the benchmark and cleans up.

Benches:
` + benchNames(),
		Example: `  headgate bench groups --quick
  headgate bench groups --only latency --only spare/priority
  headgate bench groups --runs 3 --report docs/results
  headgate bench collective --runs 3 --journal collective.journal --report docs/results
  headgate bench groups --only ramp-out/drawn-1 --seed 42`,
		Args: cobra.ExactArgs(1),
	}
	c.AddCommand(&cobra.Command{
		Use: inmemory.ChildCommand[1], Short: "Run switches in memory for a benchmark", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return inmemory.Child(a.in, a.out) },
	})
	var o bench.Options
	flags := c.Flags()
	flags.BoolVar(&o.Quick, "quick", false, "a smoke run: every claim, with few and short cases, in at most 3 minutes")
	flags.IntVar(&o.Runs, "runs", 1, "measure each case `N` times and take medians")
	flags.StringArrayVar(&o.Only, "only", nil, "only claims with this `ID` or below it, such as ramp-out/100Mbit (may be repeated)")
	flags.DurationVar(&o.Patience, "patience", 0, "total time to wait for an idle machine and to repeat measurements that other programs disturbed")
	report := flags.String("report", "", "write a Markdown report with plots into the directory `DIR`")
	flags.StringVar(&o.Journal, "journal", "", "append each measurement to `FILE`, and resume from the measurements in it: a long benchmark may be stopped at any time. A result names the commit of measurements that another commit made")
	list := flags.Bool("list", false, "only list the claims and their targets")
	seed := flags.Uint64("seed", 0, "draw the cases of seed `N`, to repeat a run (default 0: a new seed each time, which is printed)")
	strict := flags.Bool("strict", false, "exit with 1 if a claim misses its target or was not measured")
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
			return usageError{fmt.Errorf("--runs %d is out of range: set 1 or more", o.Runs), c.CommandPath()}
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
			return fmt.Errorf("cannot create network namespaces and load eBPF programs: %w: run bench as root", os.ErrPermission)
		}
		ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		o.Progress = a.note
		a.note("%s: %d claims, about %v, seed %d", b.Title, len(claims), b.Takes(o), b.Seed)
		if left := b.LeftOut(); left != "" {
			a.note("%s", left)
		}
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
			return errors.New("benchmark interrupted: the remaining claims were not measured")
		}
		if short := len(result.Short()); short > 0 && *strict {
			return fmt.Errorf("%d of %d claims miss their targets", short, len(result.Claims))
		}
		return nil
	}
	return c
}

func benchNames() string {
	var b strings.Builder
	for _, make := range benches {
		known := make(bench.NewDraw(1))
		fmt.Fprintf(&b, "  %-12s %s\n", known.Name, known.Title)
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
	return bench.Bench{}, fmt.Errorf("unknown benchmark %q: choose %s", name, strings.Join(known, " or "))
}

// listBench prints the claims and their targets without measuring.
func (a *app) listBench(b bench.Bench, o bench.Options, claims []bench.Claim, f format) error {
	return a.print(f, claims, func(w io.Writer) error {
		rows := [][]string{{"CLAIM", "TARGET", "UNIT", "METRIC"}}
		for _, c := range claims {
			what := c.Metric
			if c.Drawn != "" {
				what += "; drawn at random: " + c.Drawn
			}
			rows = append(rows, []string{c.ID, c.Target.String(), c.Unit, what})
		}
		if err := text.Table(w, "", rows); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w, "\n%d claims; about %v, or %v with --quick\nThe cases were drawn with seed %d: --seed %[4]d repeats them.\n",
			len(claims), b.Takes(o), b.Takes(bench.Options{Quick: true, Only: o.Only}), b.Seed)
		return err
	})
}
