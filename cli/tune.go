package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headgate/config"
	"headgate/probe"
	"headgate/probe/path"
	"headgate/probe/session"
	"headgate/probe/tune"
	"headgate/shaper"
	"headgate/unit"
)

func tuneCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "tune DEV --peer HOST[:PORT]",
		Short: "Propose limits for a device from what the path really gives",
		Long: `Tune measures the path to a host on which "headgate probe serve" runs, through DEV and
in both directions, and proposes limits for DEV a little under the token rates: by
--margin under the lower end of what each may be. Then the queue is here, where
groups divide it, and not with the provider, who drops.

It prints a configuration, which "headgate check -f -" takes, and in comments what was
measured and what "headgate plan" would say. With -f it is that of the file with other
limits and nothing else changed: guarantees in percent follow, and directions that the
file does not limit stay so.

With --apply it puts the limits in force as "headgate apply --confirm-within" does,
measures again, and says what arrives and what is lost. They stay if "headgate
confirm" is run in time. The file is not changed.

Where the token rate cannot be told nothing is proposed, and it says what is missing. A
bucket hides the rate until it is empty: so before a limit is proposed it is tried with
a train that would empty one of 5 MB. --bytes bounds all that. While DEV has a limit in force that is below
the path's, that is all that can be measured: it says so.

What comes in is limited after it has come: TCP and other senders that yield keep to
it, one that does not is still the provider's to limit.

With --server nothing is measured: it proposes limits for a device of a host of a service,
from the newest token rates that "headgate probe schedule" had measured. What it prints
is for "headgate apply --server".`,
		Example: `  headgate tune eth0 --peer server.example.org > eth0.yaml
  headgate tune eth0 --peer server.example.org -f /etc/headgate/eth0.yaml
  headgate tune eth0 --peer server.example.org -f /etc/headgate/eth0.yaml --apply && headgate confirm
  headgate tune eth0 --server default --host web1 > web1.yaml`,
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.completeDevices()(c, args, begun)
		},
	}
	var f tuneFlags
	f.margin, f.bytes = shareFlag(tune.Margin), bytesFlag(tuneBudget)
	c.Flags().StringVar(&f.peer, "peer", "", "host to measure to, on which \"headgate probe serve\" runs")
	c.Flags().StringArrayVarP(&f.files, "file", "f", nil, "configuration that has DEV's groups: a file, a directory, or - (may be repeated)")
	c.Flags().Var(&f.margin, "margin", "how far under the measured rate")
	c.Flags().Var(&f.bytes, "bytes", "send no more than this in each direction")
	c.Flags().DurationVar(&f.time, "time", 30*time.Second, "take no longer than this in each direction")
	c.Flags().Var(&f.capacity, "capacity", "the capacity of the path, if it is known: it is not measured then")
	c.Flags().StringVar(&f.log, "log", "", "write the samples to a file, for \"headgate probe replay\"")
	c.Flags().BoolVar(&f.apply, "apply", false, "put the limits in force, and measure again")
	c.Flags().DurationVar(&f.within, "confirm-within", time.Minute, "with --apply: roll back unless \"headgate confirm\" is run within this time")
	f.auth.add(c)
	f.output = outputFlag(c)
	at := thereFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		margin := unit.Share(f.margin)
		if margin >= unit.Whole/2 {
			return usageError{fmt.Errorf("a margin of %v gives most of the path away: write for example 1%%", margin), c.CommandPath()}
		}
		if at.asked() {
			if err := at.nothing(c, localTuneFlags...); err != nil {
				return err
			}
			return a.tuneThere(c.Context(), at, args[0], margin, *f.output)
		}
		if f.peer == "" {
			return usageError{errors.New("--peer is missing: " + c.Flag("peer").Usage), c.CommandPath()}
		}
		peer, err := probe.ParseAddress(f.peer)
		switch {
		case err != nil:
		case f.bytes == 0 || f.time <= 0:
			err = errors.New("a measurement needs bytes and time: write more than 0")
		case f.within < minConfirm || f.within > maxConfirm:
			err = fmt.Errorf("--confirm-within %v is not possible: write %v to %v", f.within, minConfirm, maxConfirm)
		}
		if err != nil {
			return usageError{err, c.CommandPath()}
		}
		auth, err := f.auth.client()
		if err != nil {
			return err
		}
		t, err := a.tunable(c, a.dev(args[0]), f.files)
		if err != nil {
			return err
		}
		return a.tune(t, session.Options{Host: peer.Host, Port: peer.Port, Auth: auth}, f)
	}
	return c
}

type tuneFlags struct {
	auth     authFlags
	peer     string
	files    []string
	margin   shareFlag
	bytes    bytesFlag
	time     time.Duration
	capacity rateFlag
	log      string
	apply    bool
	within   time.Duration
	output   *format
}

// tuneReport is what tune prints.
type tuneReport struct {
	Dev       string                            `json:"dev"`
	Measured  path.Report                       `json:"measured"`
	Proposals map[probe.Direction]tune.Proposal `json:"proposals"`
	// Document is the configuration with the limits, Steps what they change.
	Document string `json:"document,omitempty"`
	Steps    []step `json:"steps,omitempty"`
	// Until is when what was applied is rolled back, and Rechecked what came of it.
	Until     *time.Time                  `json:"in_force_until,omitempty"`
	Rechecked map[probe.Direction]recheck `json:"rechecked,omitempty"`
	// Failed is what is wrong with it.
	Failed string `json:"failed,omitempty"`
}

func (a *app) tune(t *tuned, o session.Options, f tuneFlags) error {
	ctx, stop := interrupted()
	defer stop()
	progress := a.progress(*f.output)
	defer progress.clear()
	o.Waiting = func(n int) { progress.say("waiting: %d measure before us", n) }
	r := &tuneReport{Dev: t.dev, Proposals: map[probe.Direction]tune.Proposal{}}
	measured, notes, err := a.tuneMeasure(ctx, t, o, f, progress)
	if err != nil {
		return err
	}
	r.Measured = measured
	progress.clear()
	limits := 0
	for d, answer := range r.Measured.Directions {
		p := propose(answer, t.dev, t.own[d], unit.Share(f.margin), unit.Bytes(f.bytes))
		if side := *t.side(d); side != nil {
			p.Before = side.Limit
		}
		if p.Limit > 0 {
			if notes[d] != "" {
				p.Notes = append(p.Notes, notes[d])
			}
			t.with(d, p.Limit)
			limits++
		}
		r.Proposals[d] = p
	}
	show := func(err error) error {
		return errors.Join(a.print(*f.output, r, r.table), err)
	}
	if limits == 0 {
		if err := show(nil); err != nil {
			return err
		}
		return errSaid
	}
	var set config.Set
	if r.Document, set, err = t.document(); err != nil {
		return err
	}
	if r.Steps, err = a.steps(set, false); err != nil || !f.apply {
		return show(err)
	}
	return show(a.tuneApply(ctx, r, set, o, f.within, progress))
}

// tuneMeasure measures what the configuration limits. It tells notes on what it found beside, by direction.
func (a *app) tuneMeasure(ctx context.Context, t *tuned, o session.Options, f tuneFlags, progress *progress) (path.Report, map[probe.Direction]string, error) {
	client, err := session.Dial(ctx, o)
	if err != nil {
		return path.Report{}, nil, err
	}
	defer client.Close()
	if err := leadsTo(t.dev, client.Peer.Addr()); err != nil {
		return path.Report{}, nil, err
	}
	log, closeLog, err := probeLog(f.log, "tokenrate", f.peer, client)
	if err != nil {
		return path.Report{}, nil, err
	}
	send := logged(client, log)
	j := job{method: path.Method{Wanted: path.Wanted{TokenRate: true}, Known: unit.Rate(f.capacity), Budget: unit.Bytes(f.bytes)}, limit: f.time, say: progress.say, send: send}
	j.enough = func(samples []probe.Sample) bool { return agreed(j.method, samples) }
	v := verifier{send, unit.Share(f.margin), unit.Bytes(f.bytes), t.own, t.dev, map[probe.Direction]string{}}
	j.verify = func(until time.Time, d probe.Direction, samples []probe.Sample, a *path.Answer) error {
		progress.say("%s: whether that gets through for long", d)
		return v.verify(ctx, until, d, samples, a)
	}
	for _, d := range probe.Directions {
		if t.wants(d) {
			j.directions = append(j.directions, d)
		}
	}
	r, err := j.run(ctx, client, f.peer)
	return r, v.notes, errors.Join(err, closeLog())
}

// tuneApply puts the limits in force and measures again. What it finds out is in r.
func (a *app) tuneApply(ctx context.Context, r *tuneReport, set config.Set, o session.Options, within time.Duration, progress *progress) error {
	until, err := a.carryOut(set, false, within, func(step) {})
	if err != nil {
		return err
	}
	if !until.IsZero() {
		r.Until = &until
	}
	progress.say("measuring again")
	r.Rechecked, err = a.recheck(ctx, o, r.Dev, r.Proposals)
	progress.clear()
	switch {
	case errors.Is(err, shaper.ErrNotShaped):
		err = fmt.Errorf("the limits were rolled back before they were measured again: --confirm-within %v was too short", within)
	case err != nil:
		err = fmt.Errorf("the limits are in force, but could not be measured again: %w", err)
	}
	for d, c := range r.Rechecked {
		err = errors.Join(err, c.judge(d, r.Proposals[d].Limit))
	}
	if err != nil {
		r.Failed = err.Error()
	}
	return err
}

// table prints the configuration, all else in comments: so it is one in any case.
func (r *tuneReport) table(w io.Writer) error {
	comment := func(format string, args ...any) {
		for line := range strings.Lines(fmt.Sprintf(format, args...)) {
			fmt.Fprintln(w, strings.TrimRight("# "+line, "\n "))
		}
	}
	comment("%s to %s, round trip %v", r.Dev, r.Measured.Host, r.Measured.RTT.Round(10*time.Microsecond))
	for _, d := range slices.Backward(slices.Sorted(maps.Keys(r.Proposals))) { // out, in
		p, answer := r.Proposals[d], r.Measured.Directions[d]
		if p.Limit == 0 {
			comment("%s: no limit is proposed: %s", d, p.Cannot)
			continue
		}
		before := ""
		if p.Before > 0 {
			before = fmt.Sprintf(" (it is %v)", p.Before)
		}
		comment("%s: token rate %s, bucket %s: limit %v%s", d, rateText(answer.TokenRate.Rate), estimateText(answer.TokenRate.Bucket, sizeText), p.Limit, before)
		for _, n := range p.Notes {
			comment("%s: %s", d, n)
		}
	}
	fmt.Fprint(w, r.Document)
	var plan strings.Builder
	printSteps(&plan, r.Steps)
	comment("%s", plan.String())
	for _, d := range slices.Backward(slices.Sorted(maps.Keys(r.Rechecked))) {
		c := r.Rechecked[d]
		comment("%s, measured again: %s of %s arrive, %.2f %% lost on the path, %.2f %% in our own queue", d, bitRate(c.Rate), bitRate(c.Sent), 100*c.path(), 100*c.Own)
	}
	if r.Until != nil {
		comment("in force until %s: run \"headgate confirm\" by then, or it is rolled back", r.Until.Local().Format(time.TimeOnly))
	}
	return nil
}
