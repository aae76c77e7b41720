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

// recheck is a measurement of a direction with the new limit in force.
type recheck struct {
	// Sent is the offered rate, Rate the received rate, both of layer 2.
	Sent float64 `json:"sent_bps"`
	Rate float64 `json:"rate_bps"`
	// Lost is the share of packets that were lost, Own the share that the device's own
	// queues dropped. The difference was lost on the path.
	Lost float64 `json:"lost"`
	Own  float64 `json:"lost_in_own_queues"`
}

// path returns the share of packets that were lost outside of the device's own queues.
func (r recheck) path() float64 { return max(0, r.Lost-r.Own) }

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
	// recheckMost is the maximum size of a train.
	recheckMost unit.Bytes = 40_000_000
)

// recheck sends a train in each direction with a new limit, and retries if the result is
// wrong.
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
			if out[d] = c; c.check(d, limit) == nil {
				break
			}
		}
	}
	return out, nil
}

// recheckOnce sends one train.
func (a *app) recheckOnce(ctx context.Context, client *session.Client, dev string, d probe.Direction, limit unit.Rate) (recheck, error) {
	rate := float64(limit)
	if d == probe.Out {
		rate *= recheckOverload
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

// tailRate returns the arrival rate of the second half of a train, without the burst at the
// start.
func tailRate(s *probe.Sample) float64 {
	tail := *s
	tail.Arrived = s.Arrived[len(s.Arrived)/2:]
	return tail.ArrivalRate()
}

// ownDrops returns the drop counter of a device's own queues.
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

// check returns the problems of a new limit, or nil.
func (r recheck) check(d probe.Direction, limit unit.Rate) error {
	const lossBound, rateBound, lessBound = 0.001, 0.01, 0.03
	var errs []error
	if r.path() > lossBound {
		errs = append(errs, fmt.Errorf("%s: %.2f %% lost on the path, although the limit is below its rate", d, 100*r.path()))
	}
	if r.Rate > float64(limit)*(1+rateBound) {
		errs = append(errs, fmt.Errorf("%s: received %s through a limit of %v", d, bitRate(r.Rate), limit))
	}
	// A second, larger bucket has an effect only when it is empty.
	if r.Rate < min(float64(limit), r.Sent)*(1-lessBound) {
		errs = append(errs, fmt.Errorf("%s: received only %s of a limit of %v: the path has a lower sustained rate, or cross traffic: run tune again without cross traffic", d, bitRate(r.Rate), limit))
	}
	return errors.Join(errs...)
}
