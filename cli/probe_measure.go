package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/internal/peerauth"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/available"
	"headgate.dev/headgate/probe/limiter"
	"headgate.dev/headgate/probe/measure"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/plots"
	"headgate.dev/headgate/probe/report"
	"headgate.dev/headgate/probe/session"
	"headgate.dev/headgate/unit"
	"headgate.dev/headgate/view"
)

// measure measures a path and prints the report. After an error the report is partial.
func (a *app) measure(command, target string, f probeFlags, auth peerauth.Credentials) error {
	host, err := parseHosts(command, target)
	if err != nil {
		return err
	}
	ctx, stop := interrupted()
	defer stop()
	progress := a.progress(*f.output)
	defer progress.Clear()
	o := f.options(auth, progress)
	if f.watch > 0 {
		out, failure := measure.Watch(ctx, host[0], f.directions(), limiter.Watch{Budget: unit.Bytes(f.bytes), Time: f.watch}, o)
		progress.Clear()
		return errors.Join(a.print(*f.output, out, func(w io.Writer) error { return report.WriteWatch(w, &out) }), failure)
	}
	var out *path.Report
	var failure error
	if f.ticks != "" {
		clock, err := parseHosts(command, f.ticks)
		if err != nil {
			return err
		}
		out, failure = measure.Ticks(ctx, host[0], clock[0], available.PacketTick{Highest: float64(f.capacity), Budget: unit.Bytes(f.bytes)}, f.time, o)
	} else {
		out, failure = measure.Path(ctx, host[0], command, f.job(command), o)
	}
	progress.Clear()
	if out == nil {
		return failure
	}
	return errors.Join(failure, a.print(*f.output, out, func(w io.Writer) error { return report.Write(w, out) }))
}

// parseHosts returns the hosts that a command names.
func parseHosts(command string, names ...string) (out []measure.Host, err error) {
	for _, name := range names {
		h, err := measure.ParseHost(name)
		if err != nil {
			return nil, usageError{err, "headgate probe " + command}
		}
		out = append(out, h)
	}
	return out, nil
}

// options returns the options of a measurement.
func (f *probeFlags) options(auth peerauth.Credentials, progress *view.StatusLine) measure.Options {
	return measure.Options{Session: session.Options{Network: f.network(), Auth: auth}, Log: f.log, OnProgress: progress.Show}
}

// job returns the job of a command.
func (f *probeFlags) job(command string) measure.Job {
	parts, _ := path.PartsOf(command)
	return measure.Job{
		Directions: f.directions(),
		Method:     path.Method{Parts: parts, KnownCapacity: unit.Rate(f.capacity), Seed: f.method == "seed", Budget: unit.Bytes(f.bytes)},
		Time:       f.time,
		Done:       savePlots(f.plots),
	}
}

// savePlots returns a function that writes the plots of a direction into a folder, or nil without a folder.
func savePlots(dir string) func(probe.Direction, []probe.Sample, *path.Answer) error {
	if dir == "" {
		return nil
	}
	return func(d probe.Direction, samples []probe.Sample, answer *path.Answer) error {
		return plots.Save(dir, d, samples, answer)
	}
}

func probeReplayCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "replay LOG",
		Short: "Repeat estimates from a log, without a network",
		Long: `Replay reads the samples of a log that --log wrote and repeats the estimates, for example
with another method or a known capacity.`,
		Example: "  headgate probe replay probe.log\n  headgate probe replay probe.log --capacity 1Gbit --plots pictures -o json",
		Args:    cobra.ExactArgs(1),
	}
	var capacity rateFlag
	method := ""
	c.Flags().Var(&capacity, "capacity", "the known capacity of the path")
	methodFlag(c, &method, "ours, or the methods of the estimation seed")
	plots := c.Flags().String("plots", "", plotsHelp)
	output := outputFlag(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		f, err := os.Open(args[0])
		if err != nil {
			return err
		}
		defer f.Close()
		log, err := probe.ReadLog(f)
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		r, err := measure.Replay(log, unit.Rate(capacity), method == "seed", savePlots(*plots))
		switch {
		case err != nil:
			return err
		case r.Report != nil:
			return a.print(*output, r.Report, func(w io.Writer) error { return report.Write(w, r.Report) })
		case r.Watch != nil:
			return a.print(*output, r.Watch, func(w io.Writer) error { return report.WriteWatch(w, r.Watch) })
		}
		return a.printCompared(*output, r.Comparisons)
	}
	return c
}

// progress returns the status line of a measurement. It prints nothing if standard output is not a terminal.
func (a *app) progress(f format) *view.StatusLine {
	if _, live := view.Width(a.out); live && f == "table" {
		return view.NewStatusLine(a.err)
	}
	return &view.StatusLine{}
}
