package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"headgate/probe"
	"headgate/probe/session"
	"headgate/probe/tune"
	"headgate/shaper"
	"headgate/unit"
)

// recheck is what a direction does with its new limit in force.
type recheck struct {
	// Sent is the rate of what was offered, Rate what arrived at, of layer 2.
	Sent float64 `json:"sent_bps"`
	Rate float64 `json:"rate_bps"`
	// Lost is the part that did not arrive, Own that of it which the device's own
	// queues dropped; the rest was lost on the path.
	Lost float64 `json:"lost"`
	Own  float64 `json:"lost_in_own_queues"`
}

// path is the part that was lost elsewhere than in our own queues.
func (r recheck) path() float64 { return max(0, r.Lost-r.Own) }

// Constants of the recheck, ours.
const (
	// recheckOver: what is offered out is more than the limit, so that the limit shows.
	// What comes in is offered at the limit: a sender beyond the provider who does not
	// yield is not held back by a limit on this side of it.
	recheckOver = 1.05
	// recheckTime is long enough that the rate says more than the burst at its head.
	recheckTime = 500 * time.Millisecond
	// recheckTries: what is wrong with the limit is wrong each time, and what is not is
	// another's burst, or an end that stood still.
	recheckTries = 3
	// recheckMost bounds a train.
	recheckMost unit.Bytes = 40_000_000
)

// recheck offers a train in each direction that has a new limit, and another if
// something was wrong.
func (a *app) recheck(ctx context.Context, o session.Options, dev string, proposals map[probe.Direction]tune.Proposal) (map[probe.Direction]recheck, error) {
	client, err := session.Dial(ctx, o)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	out := map[probe.Direction]recheck{}
	for _, d := range probe.Directions {
		limit := proposals[d].Limit
		if limit == 0 {
			continue
		}
		for range recheckTries {
			c, err := a.recheckOnce(ctx, client, dev, d, limit)
			if err != nil {
				return out, err
			}
			if out[d] = c; c.judge(d, limit) == nil {
				break
			}
		}
	}
	return out, nil
}

// recheckOnce offers one train.
func (a *app) recheckOnce(ctx context.Context, client *session.Client, dev string, d probe.Direction, limit unit.Rate) (recheck, error) {
	rate := float64(limit)
	if d == probe.Out {
		rate *= recheckOver
	}
	bytes := min(unit.Bytes(rate/8*recheckTime.Seconds()), recheckMost)
	size := client.MTU[d]
	count := max(100, int(bytes)/(size+probe.Overhead))
	before, err := a.ownDrops(dev, d)
	if err != nil {
		return recheck{}, err
	}
	s, err := client.Send(ctx, d, probe.Uniform("tune/recheck", count, size, unit.Rate(rate)))
	if err != nil {
		return recheck{}, err
	}
	after, err := a.ownDrops(dev, d)
	if err != nil {
		return recheck{}, err
	}
	n := float64(count)
	return recheck{Sent: s.SendingRate(), Rate: tailRate(&s), Lost: float64(s.Lost()) / n, Own: min(float64(after-before), float64(s.Lost())) / n}, nil
}

// tailRate is the rate of the second half of what arrived: its head is the burst.
func tailRate(s *probe.Sample) float64 {
	tail := *s
	tail.Arrived = s.Arrived[len(s.Arrived)/2:]
	return tail.ArrivalRate()
}

// ownDrops are the packets that a device's own queues have dropped.
func (a *app) ownDrops(dev string, d probe.Direction) (n uint64, err error) {
	s, err := a.observe(dev)
	if err != nil {
		return 0, err
	}
	side := s.Out
	if d == probe.In {
		side = s.In
	}
	if side == nil {
		return 0, fmt.Errorf("%s %s: %w", dev, d, shaper.ErrNotShaped)
	}
	for _, g := range side.Groups {
		n += g.Drops
	}
	return n + side.Control.Drops, nil
}

// judge says what is wrong with what a new limit does.
func (r recheck) judge(d probe.Direction, limit unit.Rate) error {
	const lossBound, rateBound, lessBound = 0.001, 0.01, 0.03
	var errs []error
	if r.path() > lossBound {
		errs = append(errs, fmt.Errorf("%s: %.2f %% is lost on the path, though the limit is below its rate", d, 100*r.path()))
	}
	if r.Rate > float64(limit)*(1+rateBound) {
		errs = append(errs, fmt.Errorf("%s: %s gets through a limit of %v", d, bitRate(r.Rate), limit))
	}
	// A larger bucket behind the one that was measured shows only when it is empty.
	if r.Rate < min(float64(limit), r.Sent)*(1-lessBound) {
		errs = append(errs, fmt.Errorf("%s: only %s of the %v that are the limit get through: the path gives less for long, or others use it; tune again when they do not", d, bitRate(r.Rate), limit))
	}
	return errors.Join(errs...)
}
