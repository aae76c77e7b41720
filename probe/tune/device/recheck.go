package device

import (
	"context"
	"errors"
	"fmt"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/session"
	"headgate.dev/headgate/probe/tune"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// Recheck is a measurement of a direction with the new limit in force.
type Recheck struct {
	// Sent is the offered rate, Rate the received rate, both of layer 2.
	Sent float64 `json:"sent_bps"`
	Rate float64 `json:"rate_bps"`
	// Lost is the share of packets that were lost, QueueLoss the share that the device's own
	// queues dropped. The difference was lost on the path.
	Lost      float64 `json:"lost"`
	QueueLoss float64 `json:"lost_in_own_queues"`
}

// PathLoss returns the share of packets that were lost outside of the device's own queues.
func (r Recheck) PathLoss() float64 { return max(0, r.Lost-r.QueueLoss) }

// Constants of the recheck, chosen by Headgate.
const (
	// recheckOverload is the offered outbound rate relative to the limit: more than the limit, so
	// that the limit takes effect. The inbound rate is the limit itself, because an inbound limit
	// does not slow down a sender without congestion control.
	recheckOverload = 1.05
	// recheckTime is long enough for the rate to matter more than the burst at the start.
	recheckTime = 500 * time.Millisecond
	// recheckTries is the number of tries: a wrong limit fails each time, while cross traffic
	// or a stalled host fails only sometimes.
	recheckTries = 3
	// maxRecheckTrain is the maximum size of a train.
	maxRecheckTrain unit.Bytes = 40_000_000
)

// MeasureAgain sends a train in each direction with a new limit, and retries if the result is
// wrong. observe returns the state of the device.
func MeasureAgain(ctx context.Context, proposals map[probe.Direction]tune.Proposal, observe func() (shaper.State, error), o Options) (map[probe.Direction]Recheck, error) {
	if o.OnProgress != nil {
		o.OnProgress("measuring again")
	}
	client, err := o.Dial(ctx, o.Peer)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	out := map[probe.Direction]Recheck{}
	for _, d := range probe.Directions {
		limit := proposals[d].Limit
		if limit == 0 {
			continue
		}
		for range recheckTries {
			r, err := recheck(ctx, client, observe, d, limit)
			if err != nil {
				return out, err
			}
			if out[d] = r; r.Check(d, limit) == nil {
				break
			}
		}
	}
	return out, nil
}

// recheck sends one train.
func recheck(ctx context.Context, client *session.Client, observe func() (shaper.State, error), d probe.Direction, limit unit.Rate) (Recheck, error) {
	rate := float64(limit)
	if d == probe.Out {
		rate *= recheckOverload
	}
	bytes := min(unit.Bytes(rate/8*recheckTime.Seconds()), maxRecheckTrain)
	size := client.MTU[d]
	count := max(100, int(bytes)/(size+probe.Overhead))
	before, err := ownDrops(observe, d)
	if err != nil {
		return Recheck{}, err
	}
	s, err := client.Send(ctx, d, probe.Uniform("tune/recheck", count, size, unit.Rate(rate)))
	if err != nil {
		return Recheck{}, err
	}
	after, err := ownDrops(observe, d)
	if err != nil {
		return Recheck{}, err
	}
	n := float64(count)
	return Recheck{Sent: s.SendingRate(), Rate: s.TailRate(), Lost: float64(s.Lost()) / n, QueueLoss: min(float64(after-before), float64(s.Lost())) / n}, nil
}

// ownDrops returns the drop counter of a device's own queues.
func ownDrops(observe func() (shaper.State, error), d probe.Direction) (n uint64, err error) {
	s, err := observe()
	if err != nil {
		return 0, err
	}
	side := s.Out
	if d == probe.In {
		side = s.In
	}
	if side == nil {
		return 0, fmt.Errorf("%s %s: %w", s.Dev, d, shaper.ErrNotShaped)
	}
	for _, g := range side.Groups {
		n += g.Drops
	}
	return n + side.Control.Drops, nil
}

// Check returns the problems of a new limit, or nil.
func (r Recheck) Check(d probe.Direction, limit unit.Rate) error {
	const lossBound, rateBound, lessBound = 0.001, 0.01, 0.03
	var errs []error
	if r.PathLoss() > lossBound {
		errs = append(errs, fmt.Errorf("%s: %.2f %% lost on the path, although the limit is below its rate", d, 100*r.PathLoss()))
	}
	if r.Rate > float64(limit)*(1+rateBound) {
		errs = append(errs, fmt.Errorf("%s: received %s through a limit of %v", d, probe.FormatRate(r.Rate), limit))
	}
	// A second, larger bucket has an effect only when it is empty.
	if r.Rate < min(float64(limit), r.Sent)*(1-lessBound) {
		errs = append(errs, fmt.Errorf("%s: received only %s of a limit of %v: the path has a lower sustained rate, or cross traffic: run tune again without cross traffic", d, probe.FormatRate(r.Rate), limit))
	}
	return errors.Join(errs...)
}
