package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/spf13/cobra"

	"headgate/cli/view"
	"headgate/lab"
)

// labRunFlags are the flags of "lab run".
type labRunFlags struct {
	interval    time.Duration
	trace, keep string
	output      *format
}

func labRunCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "run -f FILE",
		Short: "Create a lab, run its traffic and timeline, print the results",
		Long: `Run creates the lab, runs its flows, programs and timeline for the file's duration
(by default until 5 s after the last event and the end of all transfers), shows rates
during the run, and removes the lab.

The result goes to standard output: flows with their requests and transfers, links,
programs and events. During the run, a terminal shows a live view (q stops the run);
otherwise run prints a line for each interval to standard error. With --trace every
emulated link writes a line for each segment into DIR/LINK.forward.csv and
DIR/LINK.back.csv.

If an emulated link released segments too late, run reports it and exits with 1: the
results are printed, but must not be used (docs/lab.md).`,
		Example: `  headgate lab run -f lab.yaml
  headgate lab run -f lab.yaml -o json > result.json
  headgate lab run -f lab.yaml --interval 100ms --trace log --keep log`,
		Args: cobra.NoArgs,
	}
	var o labRunFlags
	file := labFileFlag(c)
	o.output = outputFlag(c)
	c.Flags().DurationVar(&o.interval, "interval", time.Second, "time between samples")
	c.Flags().StringVar(&o.trace, "trace", "", "folder for the release logs of emulated links")
	c.Flags().StringVar(&o.keep, "keep", "", "folder for the output of programs (default: a new temporary folder)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if o.interval < 10*time.Millisecond {
			return usageError{fmt.Errorf("--interval %v is too short: write at least 10ms", o.interval), c.CommandPath()}
		}
		t, err := loadLab(c, *file)
		if err != nil {
			return err
		}
		if len(t.Flows)+len(t.Programs)+len(t.Timeline) == 0 {
			return usageError{fmt.Errorf("%s has no flows, programs or timeline: add some, or use \"headgate lab up\"", *file), c.CommandPath()}
		}
		return a.labRun(t, o)
	}
	return c
}

func (a *app) labRun(t *lab.Topology, o labRunFlags) (err error) {
	ctx, stop := interrupted()
	defer stop()
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
	if err := a.print(*o.output, r, func(w io.Writer) error { return labTables(w, r) }); err != nil {
		return err
	}
	if r.Interrupted {
		a.note("run interrupted after %.1f s", r.Seconds)
	}
	if len(r.Unusable) > 0 {
		return fmt.Errorf("results are unusable: %s: repeat the run on a less loaded machine or with lower rates, or raise late_bound of the link", strings.Join(r.Unusable, "; "))
	}
	return r.Failure()
}

// labRunWithProgress runs a lab and shows the progress: a live view on a terminal, else lines.
func (a *app) labRunWithProgress(ctx context.Context, l *lab.Lab, o labRunFlags) (*lab.RunResult, error) {
	options := lab.RunOptions{Interval: o.interval, Folder: o.keep}
	if *o.output != "table" {
		return l.Run(ctx, options)
	}
	if _, live := a.terminalWidth(); !live {
		options.OnSample = a.labProgress(l.Topology)
		return l.Run(ctx, options)
	}
	return a.labRunScreen(ctx, l, options)
}

// labRunScreen runs a lab under a live view.
func (a *app) labRunScreen(ctx context.Context, l *lab.Lab, options lab.RunOptions) (*lab.RunResult, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	t := l.Topology
	length := t.RunTime().Seconds()
	if t.UntilDone() {
		length = 0
	}
	screen := view.NewLabScreen(t.Name, length, view.NewTheme(a.out), stop)
	program := tea.NewProgram(screen, tea.WithInput(a.in), tea.WithOutput(a.out), tea.WithAltScreen(), tea.WithoutSignalHandler())
	options.OnSample = func(s lab.Sample) { program.Send(labFrame(t, length, s)) }
	var r *lab.RunResult
	var runErr error
	done := make(chan struct{})
	go func() {
		defer close(done)
		r, runErr = l.Run(ctx, options)
		program.Send(view.LabDone{})
	}()
	_, err := program.Run()
	if err != nil {
		stop() // the view failed, so the user cannot stop the run
	}
	<-done
	return r, errors.Join(runErr, err)
}

// labFrame converts a sample for the live view.
func labFrame(t *lab.Topology, length float64, s lab.Sample) view.LabFrame {
	f := view.LabFrame{Lab: t.Name, Seconds: s.Seconds, Length: length}
	for i, flow := range s.Flows {
		f.Flows = append(f.Flows, view.LabFlow{
			Name: flow.Name, Direction: t.Flows[i].From + " > " + t.Flows[i].To,
			Offered: flow.OfferedRate(), Delivered: flow.DeliveredRate(),
			Lost: flow.Retransmits + flow.LostDatagrams, SRTTus: flow.SRTTus,
			Cwnd: flow.CwndSegments, Jitter: microseconds(flow.JitterUs),
		})
		if q := flow.Requests; q != nil {
			f.Requests = append(f.Requests, view.LabRequests{
				Name: flow.Name, Done: float64(q.Done) / flow.Seconds, Refused: q.Refused, Failed: q.Failed,
				UnderWay: q.UnderWay, Backlog: q.Backlog, P50: microseconds(q.Latency.P50Us), P99: microseconds(q.Latency.P99Us),
			})
		}
		if p, spec := flow.Transfer, t.Flows[i].Transfer; p != nil {
			f.Transfers = append(f.Transfers, view.LabTransfer{
				Name: flow.Name, Completed: p.Completed, Times: max(spec.Times, 1), Failed: p.Failed,
				Last: microseconds(p.LastSeconds * 1e6), Arrived: float64(p.ArrivedBytes) / float64(spec.Size),
			})
		}
	}
	for i, l := range s.Links {
		a, b := t.Links[i].Ends[0], t.Links[i].Ends[1]
		f.Links = append(f.Links,
			view.LabLink{Name: l.Name, Way: a + " > " + b, Rate: l.Forward.Rate(), Dropped: l.Forward.Dropped},
			view.LabLink{Name: l.Name, Way: b + " > " + a, Rate: l.Back.Rate(), Dropped: l.Back.Dropped})
	}
	for _, e := range s.Events {
		f.Events = append(f.Events, fmt.Sprintf("%.1f s, %s", e.HappenedSeconds, e.What))
	}
	return f
}

// labProgress returns a function that prints events, and a line of delivered rates for each
// sample. The rates are those of flows or, without flows, of the links' forward direction.
func (a *app) labProgress(t *lab.Topology) func(lab.Sample) {
	heading := "seconds"
	for _, f := range t.Flows {
		heading += fmt.Sprintf(" %12s", f.Name)
	}
	if len(t.Flows) == 0 {
		for _, name := range t.LinkNames() {
			heading += fmt.Sprintf(" %12s", name)
		}
	}
	a.note("%s", heading)
	told := 0
	return func(s lab.Sample) {
		for _, e := range s.Events[told:] {
			a.note("%7.1f %s", e.HappenedSeconds, e.What)
		}
		told = len(s.Events)
		line := fmt.Sprintf("%7.1f", s.Seconds)
		for _, f := range s.Flows {
			line += fmt.Sprintf(" %12s", view.Rate(f.DeliveredRate()))
		}
		if len(s.Flows) == 0 {
			for _, l := range s.Links {
				line += fmt.Sprintf(" %12s", view.Rate(l.Forward.Rate()))
			}
		}
		a.note("%s", line)
	}
}
