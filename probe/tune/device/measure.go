package device

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/config/diff"
	"headgate.dev/headgate/internal/route"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/measure"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/tune"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// Options of the measurement.
type Options struct {
	measure.Options
	// Peer is the host to which the path is measured.
	Peer measure.Host
	// Margin is the fraction of the measured rate by which a limit is lower.
	Margin unit.Share
	// Bytes and Time bound the measurement of each direction.
	Bytes unit.Bytes
	Time  time.Duration
	// Capacity is the known capacity of the path, or 0.
	Capacity unit.Rate
	// Burst returns the burst that a limit passes at once; nil means unknown.
	Burst func(limit unit.Rate) unit.Bytes
	// Compare returns the changes of a configuration, and Apply applies it and returns the time of the rollback,
	// which is Within later; nil only proposes limits. Observe returns the state of the device.
	Compare func(config.Set) ([]diff.Entry, error)
	Apply   func(config.Set) (until time.Time, err error)
	Within  time.Duration
	Observe func() (shaper.State, error)
}

// Measure measures the directions that a target limits, and proposes their limits. Each limit is verified
// with a long train.
func Measure(ctx context.Context, t *Target, o Options) (path.Report, map[probe.Direction]tune.Proposal, error) {
	client, err := o.Dial(ctx, o.Peer)
	if err != nil {
		return path.Report{}, nil, err
	}
	defer client.Close()
	if err := checkRoute(t.Dev, client.Peer.Addr()); err != nil {
		return path.Report{}, nil, err
	}
	log, closeLog, err := o.CreateLog("tokenrate", o.Peer.Name, client)
	if err != nil {
		return path.Report{}, nil, err
	}
	v := verifier{send: measure.Logged(client, log), propose: func(d probe.Direction, a *path.Answer) tune.Proposal { return o.propose(t, d, a) }, budget: o.Bytes, notes: map[probe.Direction]string{}}
	method := path.Method{Parts: path.Parts{TokenRate: true}, KnownCapacity: o.Capacity, Budget: o.Bytes}
	j := measure.Job{
		Method: method, Time: o.Time, OnProgress: o.OnProgress, Send: v.send,
		Enough: func(samples []probe.Sample) bool { return tune.Agreed(method, samples) },
		Verify: func(deadline time.Time, d probe.Direction, samples []probe.Sample, a *path.Answer) error {
			if o.OnProgress != nil {
				o.OnProgress(fmt.Sprintf("%s: verifying the rate", d))
			}
			return v.verify(ctx, deadline, d, samples, a)
		},
	}
	for _, d := range probe.Directions {
		if t.Limits(d) {
			j.Directions = append(j.Directions, d)
		}
	}
	measured, err := j.Run(ctx, client, o.Peer.Name)
	if err = errors.Join(err, closeLog()); err != nil {
		return path.Report{}, nil, err
	}
	proposals := map[probe.Direction]tune.Proposal{}
	for d, a := range measured.Directions {
		p := o.propose(t, d, a)
		p.Before = t.Limit(d)
		if note := v.notes[d]; p.Limit > 0 && note != "" {
			p.Notes = append(p.Notes, note)
		}
		proposals[d] = p
	}
	return measured, proposals, nil
}

// propose derives the limit of a direction from its answer.
func (o Options) propose(t *Target, d probe.Direction, a *path.Answer) tune.Proposal {
	return tune.Direction{
		Dev: t.Dev, DeviceLimit: t.InForce[d], Margin: o.Margin, Bytes: o.Bytes, Burst: o.Burst,
		WithoutLimitHint: fmt.Sprintf("run \"headgate clear --dev %s\"", t.Dev),
		LargerBudgetHint: func(bytes unit.Bytes) string { return fmt.Sprintf("write --bytes %s", bytes) },
	}.Propose(a)
}

// checkRoute returns an error if packets to an address do not pass through a device.
func checkRoute(dev string, to netip.Addr) error {
	if _, err := net.InterfaceByName(dev); err != nil {
		return fmt.Errorf("%s: %w", dev, shaper.ErrNoDevice)
	}
	through, err := route.Devices(to)
	if err != nil || slices.Contains(through, dev) {
		return err
	}
	return fmt.Errorf("%s is reached through %s, not %s: choose a peer that is reached through the device", to, through[0], dev)
}
