package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headgate/probe"
	"headgate/probe/available"
	"headgate/probe/limiter"
	"headgate/probe/path"
	"headgate/probe/session"
	"headgate/unit"
)

// measure measures a path and prints the report. After an error the report is partial.
func (a *app) measure(target string, m measurement, f probeFlags, auth session.Auth) error {
	server, err := probe.ParseAddress(target)
	if err != nil {
		return usageError{err, "headgate probe " + m.name}
	}
	ctx, stop := interrupted()
	defer stop()
	progress := a.progress(*f.output)
	defer progress.clear()
	client, err := f.dial(ctx, server, auth, progress)
	if err != nil {
		return err
	}
	defer client.Close()
	log, closeLog, err := probeLog(f.log, m.name, target, client)
	if err != nil {
		return err
	}
	j := measurementJob{directions: f.directions(), method: f.methodFor(m), limit: f.time, say: progress.say, send: logged(client, log)}
	if f.plots != "" {
		j.done = func(d probe.Direction, samples []probe.Sample, answer *path.Answer) error {
			return plotProbe(f.plots, d, samples, answer)
		}
	}
	out, failure := j.run(ctx, client, target)
	progress.clear()
	err = a.print(*f.output, out, func(w io.Writer) error { return reportTable(w, &out) })
	return errors.Join(failure, err, closeLog())
}

// dial opens a session with a server, and shows the progress while other clients measure.
func (f probeFlags) dial(ctx context.Context, server probe.Address, auth session.Auth, progress *progress) (*session.Client, error) {
	return session.Dial(ctx, session.Options{Host: server.Host, Port: server.Port, Network: f.network(), Auth: auth, OnWait: func(n int) {
		progress.say("waiting: %d measurements ahead", n)
	}})
}

// measurementJob is a measurement of a path.
type measurementJob struct {
	directions []probe.Direction
	method     path.Method
	limit      time.Duration // of each direction
	say        func(format string, args ...any)
	// enough reports whether a direction can end before its method ends. It may be nil.
	enough func([]probe.Sample) bool
	// verify checks a direction's answer until a deadline, and can change the answer. It may be nil.
	verify func(time.Time, probe.Direction, []probe.Sample, *path.Answer) error
	// send sends one train.
	send sendTrain
	// done is called after each direction. It may be nil.
	done func(probe.Direction, []probe.Sample, *path.Answer) error
}

// run measures. With an error, the report has the results until then.
func (j measurementJob) run(ctx context.Context, client *session.Client, target string) (out path.Report, failure error) {
	out = path.Report{Host: target, Peer: client.Peer.String(), RTT: client.RTT, Directions: map[probe.Direction]*path.Answer{}}
	for _, d := range j.directions {
		begun := time.Now()
		spent := unit.Bytes(0)
		next := j.method.Next
		if j.enough != nil {
			next = func(samples []probe.Sample) (probe.Train, bool) {
				if j.enough(samples) {
					return probe.Train{}, false
				}
				return j.method.Next(samples)
			}
		}
		samples, err := path.Run(ctx, next, func(ctx context.Context, t probe.Train) (probe.Sample, error) {
			j.say("%s: %s, %d packets, %s sent", d, t.Purpose, t.Count(), spent)
			return j.send(ctx, d, t)
		}, j.limit, func(s *probe.Sample) { spent += s.Bytes() })
		answer := j.method.Estimate(samples)
		if err == nil && j.verify != nil {
			err = j.verify(begun.Add(j.limit), d, samples, &answer)
		}
		answer.Seconds = time.Since(begun).Seconds()
		out.Directions[d] = &answer
		if j.done != nil {
			failure = errors.Join(failure, j.done(d, samples, &answer))
		}
		if err != nil {
			out.Failed = err.Error()
			failure = errors.Join(failure, err)
			break
		}
	}
	_, _, out.Control = client.Spent()
	return out, failure
}

// sendTrain sends one train in a direction and waits for the sample.
type sendTrain func(context.Context, probe.Direction, probe.Train) (probe.Sample, error)

// logged returns a sendTrain that uses a client, and writes the samples to log unless log is nil.
func logged(c *session.Client, log *probe.Log) sendTrain {
	if log == nil {
		return c.Send
	}
	return func(ctx context.Context, d probe.Direction, t probe.Train) (probe.Sample, error) {
		s, err := c.Send(ctx, d, t)
		if err == nil {
			err = log.Add(d, &s)
		}
		return s, err
	}
}

// probeLog creates the log file that a flag names. The log is nil without the flag.
func probeLog(file, command, host string, c *session.Client) (*probe.Log, func() error, error) {
	if file == "" {
		return nil, func() error { return nil }, nil
	}
	w, err := os.Create(file)
	if err != nil {
		return nil, nil, err
	}
	log, err := probe.NewLog(w, probe.LogHeader{Started: time.Now(), Host: host, Command: command, MTU: max(c.MTU[probe.Out], c.MTU[probe.In]), RTT: c.RTT})
	if err != nil {
		w.Close()
		return nil, nil, err
	}
	return log, w.Close, nil
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
		r, err := probe.ReadLog(f)
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		if r.Head.Command == tickLogCommand {
			samples := make([]probe.JointSample, len(r.Joint))
			for i := range r.Joint {
				samples[i] = r.Joint[i].Sample
			}
			out := tickReport(r.Head.Host, r.Head.RTT, available.PacketTick{Highest: float64(capacity)}, samples)
			return a.print(*output, out, func(w io.Writer) error { return reportTable(w, &out) })
		}
		if r.Head.Command == watchedLog {
			out := watchResult{Host: r.Head.Host, Directions: map[probe.Direction]*limiter.WatchResult{}}
			for d, samples := range r.Samples {
				w := limiter.Watch{}.Estimate(samples)
				out.Directions[d] = &w
			}
			return a.print(*output, out, func(w io.Writer) error { return out.table(w) })
		}
		if len(r.Joint) > 0 {
			return a.printCompared(*output, replayCompared(r.Joint, method))
		}
		out := path.Report{Host: r.Head.Host, RTT: r.Head.RTT, Directions: map[probe.Direction]*path.Answer{}}
		m := path.Method{Parts: wantedOf(r.Head.Command), KnownCapacity: unit.Rate(capacity), Seed: method == "seed"}
		for d, samples := range r.Samples {
			answer := m.Estimate(samples)
			out.Directions[d] = &answer
			if *plots != "" {
				if err := plotProbe(*plots, d, samples, &answer); err != nil {
					return err
				}
			}
		}
		return a.print(*output, out, func(w io.Writer) error { return reportTable(w, &out) })
	}
	return c
}

// wantedOf returns what the command with this name measures.
func wantedOf(command string) path.Parts {
	for _, m := range measurements {
		if m.name == command {
			return m.estimates
		}
	}
	return path.AllParts
}

// progress is a status line on a terminal, which each update overwrites. It prints nothing
// elsewhere.
type progress struct {
	w     io.Writer
	shown int
}

func (a *app) progress(f format) *progress {
	if _, live := a.terminalWidth(); live && f == "table" {
		return &progress{w: a.err}
	}
	return &progress{}
}

func (p *progress) say(format string, args ...any) {
	if p.w == nil {
		return
	}
	p.clear()
	line := fmt.Sprintf(format, args...)
	p.shown = len(line)
	fmt.Fprint(p.w, line)
}

func (p *progress) clear() {
	if p.w != nil && p.shown > 0 {
		fmt.Fprint(p.w, "\r"+strings.Repeat(" ", p.shown)+"\r")
		p.shown = 0
	}
}
