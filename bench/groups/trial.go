package groups

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/bench/busy"
	"headgate.dev/headgate/bench/peers"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/meter"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/shaper"
)

// trial is one run of flows through the lab's network with an active limiter.
type trial struct {
	rig     lab.RigOptions
	limiter string
	plan    shaper.Plan
	flows   []traffic.Flow
	probe   *traffic.Probe
	length  time.Duration
	sample  time.Duration // interval between readings of sockets
	bin     time.Duration // of arrivals
	fifo    bool          // HTB by hand gets FIFO leaves in bytes, for measurements of queue delay
	made    limiter       // the active limiter, if not the one of that name
	node    string        // whose device is limited; "" is the server
	busy    *busyPart     // measurement of processor time, if set
}

// busyPart is processor time over a part of a run.
type busyPart struct {
	from, to time.Duration
	// processors is the time that this program and the kernel used, a second.
	processors float64
}

// watch measures; start is the start of the run.
func (b *busyPart) watch(ctx context.Context, start int64) (err error) {
	clock, err := busy.New()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, clock.Close()) }()
	at := func(d time.Duration) (time.Duration, error) {
		if err := bench.Sleep(ctx, time.Duration(start-traffic.MonotonicNow())+d); err != nil {
			return 0, err
		}
		return clock.Total()
	}
	before, err := at(b.from)
	if err != nil {
		return err
	}
	began := time.Now()
	after, err := at(b.to)
	b.processors = (after - before).Seconds() / time.Since(began).Seconds()
	return err
}

// found is the result of a trial.
type found struct {
	traffic  *traffic.Result
	arrivals map[string]meter.Series // by flow
	probe    *traffic.ProbeResult
	// state is the engine's state at the end; nil for peers.
	state *shaper.State
	// offloads that were on for the limited device.
	offloads []string
}

// connectTime is how long flows have to connect before their schedules begin.
const connectTime = 150 * time.Millisecond

// run creates the network, limits it, and runs the flows.
func (t trial) run(ctx context.Context) (f *found, err error) {
	limiter := t.made
	if limiter == nil {
		if limiter, err = newLimiter(t.limiter); err != nil {
			return nil, err
		}
	}
	if t.fifo && t.limiter == htbName {
		limiter = peers.HTB{Leaf: fifoLeaf}
	}
	t.rig.Name = lab.UniqueName("bench")
	l, err := lab.Up(ctx, lab.Rig(t.rig))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if t.rig.RTT > 0 {
		if err := aggregate(ctx, l); err != nil {
			return nil, err
		}
	}
	within := func(fn func() error) error { return l.Node(cmp.Or(t.node, "server")).Do(fn) }
	if err := within(func() error { return limiter.Apply(t.plan) }); err != nil {
		return nil, fmt.Errorf("%s: %w", t.limiter, err)
	}
	defer within(func() error { return limiter.Clear(t.plan.Dev) })
	if f, err = t.observe(ctx, l); err != nil {
		return nil, err
	}
	err = within(func() (err error) { f.offloads, err = bench.Offloads(t.plan.Dev); return err })
	if err != nil {
		return nil, fmt.Errorf("cannot read the offloads of %s: %w", t.plan.Dev, err)
	}
	if e, ok := limiter.(observer); ok {
		err = within(func() error {
			s, err := e.Observe(t.plan.Dev)
			f.state = &s
			return err
		})
	}
	return f, err
}

// aggregate makes the router combine packets from the server into super-packets, as a network card
// does (GRO). The emulator of the delay carries those at 1 Gbit/s, but not 82,000 single frames a
// second, which leave a queue that segments.
func aggregate(ctx context.Context, l *lab.Lab) error {
	out, err := l.Node("router").Command(ctx, "ethtool", "-K", "server", "gro", "on", "rx-udp-gro-forwarding", "on").CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot turn on GRO on the router: %w: %s", err, out)
	}
	return nil
}

// observer is a limiter that counts what it has carried.
type observer interface {
	Observe(dev string) (shaper.State, error)
}

// within runs fn in the server's namespace.
func within(l *lab.Lab, fn func() error) error { return l.Node("server").Do(fn) }

// observe runs the flows in an existing network.
func (t trial) observe(ctx context.Context, l *lab.Lab) (*found, error) {
	m, err := meter.New(meter.Options{Flows: max(len(t.flows), 1), Bin: t.bin, Length: t.length})
	if err != nil {
		return nil, err
	}
	defer m.Close()
	start := traffic.MonotonicNow() + int64(connectTime+t.rig.RTT) // a handshake is one round trip
	if err := m.Start(start); err != nil {
		return nil, err
	}
	var prober *traffic.Prober
	if t.probe != nil {
		if prober, err = traffic.StartProbe(ctx, l.Host, *t.probe); err != nil {
			return nil, err
		}
	}
	watched := make(chan error, 1)
	if t.busy != nil {
		go func() { watched <- t.busy.watch(ctx, start) }()
	} else {
		watched <- nil
	}
	result, err := traffic.Run(ctx, l.Host, t.flows, traffic.Options{
		Duration: t.length, Interval: t.sample, OnReceiver: m.Watch, StartAt: start,
	})
	f := &found{traffic: result, arrivals: map[string]meter.Series{}}
	if prober != nil {
		var probeErr error
		f.probe, probeErr = prober.Stop()
		err = errors.Join(err, probeErr)
	}
	if err = errors.Join(err, ctx.Err()); err != nil {
		return nil, err
	}
	if err := <-watched; err != nil {
		return nil, err
	}
	for _, flow := range result.Flows {
		if flow.Error != "" {
			return nil, fmt.Errorf("flow %s: %s", flow.Name, flow.Error)
		}
		if f.arrivals[flow.Name], err = m.Series(flow.Name); err != nil {
			return nil, err
		}
	}
	return f, nil
}
