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

// watchResult is the result of watching a limiter.
type watchResult struct {
	Host       string                                   `json:"host"`
	Directions map[probe.Direction]*limiter.WatchResult `json:"directions"`
	Failed     string                                   `json:"failed,omitempty"`
}

// watchBudget is the default budget of a watch in each direction.
const watchBudget unit.Bytes = 100_000_000

// probeWatch measures a limiter repeatedly, and prints its periodic extra tokens and its changes.
func (a *app) probeWatch(target string, f probeFlags, auth session.Auth) error {
	server, err := probe.ParseAddress(target)
	if err != nil {
		return usageError{err, "headgate probe limiter"}
	}
	ctx, stop := interrupted()
	defer stop()
	progress := a.progress(*f.output)
	defer progress.clear()
	out := watchResult{Host: target, Directions: map[probe.Direction]*limiter.WatchResult{}}
	var log *probe.Log
	closeLog := func() error { return nil }
	one := func(d probe.Direction) error {
		// Each direction has its own session, because a server limits the duration of a session.
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

// watchedLog is the command name in the log of a watch.
const watchedLog = "limiter --watch"

// watch watches one direction.
func (w *watchResult) watch(ctx context.Context, send sendTrain, d probe.Direction, f probeFlags, say func(string, ...any)) error {
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

// table prints a line with the extra tokens and changes of each direction.
func (w *watchResult) table(to io.Writer) error {
	rows := [][]string{{"DIRECTION", "WATCHED", "SENT", "RATE", "EXTRA TOKENS", "CHANGES"}}
	for _, d := range probe.Directions {
		seen := w.Directions[d]
		if seen == nil {
			continue
		}
		row := []string{string(d), fmt.Sprintf("%.1f s", seen.Took), seen.Bytes.String()}
		if seen.Cannot != "" {
			rows = append(rows, append(row, "cannot estimate: "+seen.Cannot))
			continue
		}
		rate, gifts, changes := "", "none", "none"
		if n := len(seen.Levels); n > 0 {
			rate = bitRate(seen.Levels[n-1].Rate)
		}
		if g := seen.TokenGrants; g != nil {
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
