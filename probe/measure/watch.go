package measure

import (
	"cmp"
	"context"
	"errors"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/limiter"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/unit"
)

// WatchReport is the result of watching a limiter.
type WatchReport struct {
	Host       string                                   `json:"host"`
	Directions map[probe.Direction]*limiter.WatchResult `json:"directions"`
	Failed     string                                   `json:"failed,omitempty"`
}

// WatchBudget is the default budget of a watch in each direction.
const WatchBudget unit.Bytes = 100_000_000

// watchCommand is the command name in the log of a watch.
const watchCommand = "limiter --watch"

// Watch measures a limiter repeatedly, to find its periodic extra tokens and its changes. With an error,
// the report has the results until then.
func Watch(ctx context.Context, h Host, directions []probe.Direction, m limiter.Watch, o Options) (WatchReport, error) {
	out := WatchReport{Host: h.Name, Directions: map[probe.Direction]*limiter.WatchResult{}}
	var log *probe.Log
	closeLog := func() error { return nil }
	one := func(d probe.Direction) error {
		// Each direction has its own session, because a server limits the duration of a session.
		client, err := o.Dial(ctx, h)
		if err != nil {
			return err
		}
		defer client.Close()
		if log == nil {
			l, closer, err := o.CreateLog(watchCommand, h.Name, client)
			if err != nil {
				return err
			}
			log, closeLog = l, closer
		}
		send, left := Logged(client, log), cmp.Or(m.Budget, WatchBudget)
		return out.watch(ctx, m, func(ctx context.Context, d probe.Direction, t probe.Train) (probe.Sample, error) {
			client.Limit(max(left, 1))
			s, err := send(ctx, d, t)
			left -= min(left, s.Bytes()+s.Again)
			return s, err
		}, d, o)
	}
	var failure error
	for _, d := range directions {
		if failure = one(d); failure != nil {
			out.Failed = failure.Error()
			break
		}
	}
	return out, errors.Join(failure, closeLog())
}

// watch watches one direction.
func (w *WatchReport) watch(ctx context.Context, m limiter.Watch, send SendTrain, d probe.Direction, o Options) error {
	begun := time.Now()
	samples, err := path.Run(ctx, m.Next, func(ctx context.Context, t probe.Train) (probe.Sample, error) {
		o.progress("%s: watching for %v of %v", d, time.Since(begun).Round(time.Second), m.Time)
		return send(ctx, d, t)
	}, m.Time+time.Minute, func(*probe.Sample) {})
	if len(samples) > 0 {
		r := m.Estimate(samples)
		w.Directions[d] = &r
	}
	return err
}
