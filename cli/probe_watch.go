package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"headgate/probe"
	"headgate/probe/limiter"
	"headgate/probe/path"
	"headgate/probe/session"
	"headgate/unit"
)

// watched is a limiter that was looked at for a while.
type watched struct {
	Host       string                               `json:"host"`
	Directions map[probe.Direction]*limiter.Watched `json:"directions"`
	Failed     string                               `json:"failed,omitempty"`
}

// watchBudget is what a watch may send in each direction, unless it is told otherwise.
const watchBudget unit.Bytes = 100_000_000

// probeWatch looks at a limiter again and again, and prints what it gave besides and how
// it changed.
func (a *app) probeWatch(target string, f probeFlags, auth session.Auth) error {
	server, err := probe.ParseAddress(target)
	if err != nil {
		return usageError{err, "headgate probe limiter"}
	}
	ctx, stop := interrupted()
	defer stop()
	progress := a.progress(*f.output)
	defer progress.clear()
	out := watched{Host: target, Directions: map[probe.Direction]*limiter.Watched{}}
	var log *probe.Log
	closeLog := func() error { return nil }
	one := func(d probe.Direction) error {
		// One session each: a server bounds how long one lasts.
		client, err := f.dial(ctx, server, auth, progress)
		if err != nil {
			return err
		}
		defer client.Close()
		if log == nil {
			if log, closeLog, err = probeLog(f.log, watchedLog, target, client); err != nil {
				return err
			}
		}
		return out.watch(ctx, logged(client, log), d, f, progress.say)
	}
	var failure error
	for _, d := range f.directions() {
		if failure = one(d); failure != nil {
			out.Failed = failure.Error()
			break
		}
	}
	progress.clear()
	return errors.Join(a.print(*f.output, out, func(w io.Writer) error { return out.table(w) }), failure, closeLog())
}

// watchedLog is the command that the log of a watch names.
const watchedLog = "limiter --watch"

// watch looks at one direction.
func (w *watched) watch(ctx context.Context, send sendTrain, d probe.Direction, f probeFlags, say func(string, ...any)) error {
	m := limiter.Watch{Budget: unit.Bytes(f.bytes), Time: f.watch}
	begun := time.Now()
	samples, err := path.Run(ctx, m.Next, func(ctx context.Context, t probe.Train) (probe.Sample, error) {
		say("%s: watching for %v of %v", d, time.Since(begun).Round(time.Second), f.watch)
		return send(ctx, d, t)
	}, f.watch+time.Minute, func(*probe.Sample) {})
	if len(samples) > 0 {
		r := m.Estimate(samples)
		w.Directions[d] = &r
	}
	return err
}

// table prints what was seen: a line for each direction's gifts and changes.
func (w *watched) table(to io.Writer) error {
	rows := [][]string{{"DIRECTION", "WATCHED", "SENT", "RATE", "GIFTS", "CHANGES"}}
	for _, d := range probe.Directions {
		seen := w.Directions[d]
		if seen == nil {
			continue
		}
		row := []string{string(d), fmt.Sprintf("%.1f s", seen.Took), seen.Bytes.String()}
		if seen.Cannot != "" {
			rows = append(rows, append(row, "cannot tell: "+seen.Cannot))
			continue
		}
		rate, gifts, changes := "", "none", "none"
		if n := len(seen.Levels); n > 0 {
			rate = bitRate(seen.Levels[n-1].Rate)
		}
		if g := seen.Gifts; g != nil {
			gifts = fmt.Sprintf("%s every %s", estimateText(g.Size, sizeText), estimateText(g.Every, func(v float64) string { return fmt.Sprintf("%.2f s", v) }))
		}
		for i, c := range seen.Changes {
			if i == 0 {
				changes = ""
			} else {
				changes += "; "
			}
			changes += fmt.Sprintf("at %.1f s from %s to %s", c.At, bitRate(c.From), bitRate(c.To))
		}
		rows = append(rows, append(row, rate, gifts, changes))
	}
	fmt.Fprintln(to, w.Host)
	return table(to, "", rows)
}
