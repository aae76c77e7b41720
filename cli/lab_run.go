package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/report"
	"headgate.dev/headgate/view"
)

// labRunFlags are the flags of "lab run".
type labRunFlags struct {
	interval    time.Duration
	trace, keep string
	output      *format
}

func labRunCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "run -f FILE...",
		Short: "Create a lab, run its traffic and timeline, print the results",
		Long: `Run creates the lab, runs its flows, programs and timeline for the file's duration
(by default until 5 s after the last event and the end of all transfers), shows rates
during the run, and removes the lab.

The result goes to standard output: flows with their requests and transfers, links,
programs and events. During the run, a terminal shows a live view (q stops the run);
otherwise run prints a line for each interval to standard error. With --trace every
emulated link writes a line for each segment into DIR/LINK.forward.csv and
DIR/LINK.back.csv.

With several files run runs one lab after the other, also after one that failed, and says in the end
which did. With -o json it then prints one object after the other. --trace and --keep have a
folder for each lab, by its name.

If an emulated link released segments too late, run reports it and exits with 1: the
results are printed, but must not be used (docs/lab.md).`,
		Example: `  headgate lab run -f lab.yaml
  headgate lab run -f lab.yaml -o json > result.json
  headgate lab run -f lab.yaml --interval 100ms --trace log --keep log
  headgate lab run -f lab.yaml -f switched.yaml -o json | jq '.links'`,
		Args: cobra.NoArgs,
	}
	var o labRunFlags
	files := c.Flags().StringArrayP("file", "f", nil, "lab file, or - for standard input (may be repeated)")
	o.output = outputFlag(c)
	c.Flags().DurationVar(&o.interval, "interval", time.Second, "time between samples")
	c.Flags().StringVar(&o.trace, "trace", "", "folder for the release logs of emulated links")
	c.Flags().StringVar(&o.keep, "keep", "", "folder for the output of programs (default: a new temporary folder)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if o.interval < 10*time.Millisecond {
			return usageError{fmt.Errorf("--interval %v is too short: write at least 10ms", o.interval), c.CommandPath()}
		}
		all, err := labsToRun(c, *files)
		if err != nil {
			return err
		}
		ctx, stop := interrupted()
		defer stop()
		if len(all) > 1 {
			return a.labRunAll(ctx, all, o)
		}
		return a.labRun(ctx, all[0], o)
	}
	return c
}

// labsToRun loads all labs, so that a mistake in one is reported before the first one runs.
func labsToRun(c *cobra.Command, files []string) (all []*lab.Topology, err error) {
	if len(files) == 0 {
		files = []string{""}
	}
	names := map[string]string{}
	for _, file := range files {
		t, err := loadLab(c, file)
		switch {
		case err != nil:
			return nil, err
		case len(t.Flows)+len(t.Programs)+len(t.Timeline) == 0:
			return nil, usageError{fmt.Errorf("%s has no flows, programs or timeline: add some, or use \"headgate lab up\"", file), c.CommandPath()}
		case names[t.Name] != "":
			return nil, usageError{fmt.Errorf("%s and %s both have the name %q: give each lab its own", names[t.Name], file, t.Name), c.CommandPath()}
		}
		names[t.Name] = file
		all = append(all, t)
	}
	return all, nil
}

// labRunAll runs one lab after the other.
func (a *app) labRunAll(ctx context.Context, all []*lab.Topology, o labRunFlags) error {
	var failed []string
	for _, t := range all {
		if ctx.Err() != nil {
			break
		}
		if *o.output == "table" {
			fmt.Fprintf(a.out, "== %s\n", t.Name)
		}
		own := o
		if o.trace != "" {
			own.trace = filepath.Join(o.trace, t.Name)
		}
		if o.keep != "" {
			own.keep = filepath.Join(o.keep, t.Name)
		}
		if err := a.labRun(ctx, t, own); err != nil {
			a.note("%s: %v", t.Name, err)
			failed = append(failed, t.Name)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d labs failed: %s", len(failed), len(all), strings.Join(failed, ", "))
	}
	return nil
}

func (a *app) labRun(ctx context.Context, t *lab.Topology, o labRunFlags) (err error) {
	var options []lab.Option
	if o.trace != "" {
		options = append(options, lab.Trace(o.trace))
		for i, b := range t.Backends() {
			if b != lab.Emulator {
				a.note("link %s has no release log, because its backend is %s: write backend: emulator", t.LinkNames()[i], b)
			}
		}
	}
	l, err := lab.Up(ctx, t, options...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	r, err := a.labRunWithProgress(ctx, l, o)
	if err != nil {
		return err
	}
	if err := a.print(*o.output, r, func(w io.Writer) error { return report.Write(w, r) }); err != nil {
		return err
	}
	if r.Interrupted {
		a.note("run interrupted after %.1f s", r.Seconds)
	}
	if *o.output == "table" {
		a.note("to use the lab yourself, create it with \"headgate lab up -f FILE\", and run commands on its hosts with \"headgate lab exec HOST -- COMMAND\"")
	}
	if len(r.Unusable) > 0 {
		return fmt.Errorf("results are unusable: %s: repeat the run on a less loaded machine or with lower rates, or raise late_bound of the link", strings.Join(r.Unusable, "; "))
	}
	return r.Failure()
}

// labRunWithProgress runs a lab and shows the progress: a live view on a terminal, else lines.
func (a *app) labRunWithProgress(ctx context.Context, l *lab.Lab, o labRunFlags) (r *lab.RunResult, err error) {
	options := lab.RunOptions{Interval: o.interval, Folder: o.keep}
	if *o.output != "table" {
		return l.Run(ctx, options)
	}
	if _, live := view.Width(a.out); !live {
		options.OnSample = report.Progress(a.err, l.Topology)
		return l.Run(ctx, options)
	}
	err = view.RunLab(ctx, l.Topology.Name, report.Length(l.Topology), a.in, a.out, func(ctx context.Context, show func(report.Frame)) error {
		options.OnSample = func(s lab.Sample) { show(report.NewFrame(l.Topology, s)) }
		var failed error
		r, failed = l.Run(ctx, options)
		return failed
	})
	return r, err
}
