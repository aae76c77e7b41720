package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/demo/scenario"
	"headgate.dev/headgate/internal/awake"
	"headgate.dev/headgate/internal/sleep"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/meter"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/shaper"
)

// play is a running scenario.
type play struct {
	deployment
	scenario scenario.Scenario

	program  *tenantProgram
	stranger []Request // requests of a tenant for another tenant's group
	changes  []Change
	agents   [len(scenario.Hosts)]*process

	session *traffic.Session
	began   time.Time // start of the traffic
	meter   *meter.Meter
	// edges has the state and counters of host1 at the beginning and the end of the measured
	// part of each phase; others has those of the other hosts, over all phases except the first.
	edges    [scenario.PhaseCount][2]shaper.State
	others   map[string]*[2]shaper.State
	returned map[string]float64 // ms until storage had its guarantee again, by direction
}

// Intervals of the demo's measurements.
const (
	// readInterval is the interval of readings for the view.
	readInterval = 500 * time.Millisecond
	// sampleInterval is the interval of samples of the sockets' counters. Measured parts
	// begin and end at a sample.
	sampleInterval = 100 * time.Millisecond
	// edgeMargin is how long before the end of a phase its counters are read: before
	// the next phase's traffic starts.
	edgeMargin = 20 * time.Millisecond
	// connectTime is the time for all connections to open before the first phase.
	connectTime = 400 * time.Millisecond
)

func newPlay(o Options, s stage) *play {
	return &play{deployment: deployment{Options: o, stage: s}, scenario: scenario.New(o.Engine, o.Fast), others: map[string]*[2]shaper.State{}}
}

// Run creates the network, runs the scenario in it, and removes it, also when ctx ends.
func Run(ctx context.Context, o Options) (result *Result, err error) {
	p := newPlay(o, newStage(o))
	err = p.stage.show(ctx, func(ctx context.Context) error {
		var err error
		result, err = p.run(ctx)
		return err
	})
	return result, err
}

func (p *play) run(ctx context.Context) (result *Result, err error) {
	release, err := awake.Start()
	if err != nil {
		return nil, err
	}
	defer release()
	if err := p.build(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if p.Keep && err == nil {
			result.Kept, result.Service, err = p.lab.Topology.Name, p.url, p.leave()
			return
		}
		p.stage.status("cleaning up")
		left, failed := p.clean()
		err = errors.Join(err, failed)
		switch {
		case result != nil:
			result.Left, result.CleanedUp = left, err == nil && len(left) == 0
			result.OK = result.OK && result.CleanedUp
		case len(left) > 0:
			p.stage.say("", "NOT cleaned up: "+strings.Join(left, ", "))
		}
	}()
	// Show the warnings of other packages on the stage.
	old := slog.Default()
	defer slog.SetDefault(old)
	slog.SetDefault(slog.New(p.Log(stageWriter{p.stage})))
	if err := p.service(ctx); err != nil {
		return nil, err
	}
	p.stage.say("", "To watch the groups from another terminal:", "  $ headgate lab exec "+scenario.Hosts[0]+" --lab "+p.lab.Topology.Name+" -- headgate top")
	return p.perform(ctx)
}

// build removes what killed demos left, and creates the network.
func (p *play) build(ctx context.Context, options ...lab.Option) error {
	return p.create(ctx, scenario.Topology(lab.UniqueName(prefix)), []string{"Two tenants, media and shop, share three hosts, all in network namespaces of",
		"this machine. Each host has an agent, configured by one controller:"}, scenario.Picture(), options...)
}

// perform runs the traffic through all phases, and judges the result.
func (p *play) perform(ctx context.Context) (*Result, error) {
	var err error
	if p.meter, err = meter.New(meter.Options{Flows: len(p.scenario.Flows), Length: p.scenario.Length()}); err != nil {
		return nil, err
	}
	defer p.meter.Close()
	start := traffic.MonotonicNow() + int64(connectTime)
	p.began = time.Now().Add(connectTime)
	if err := p.meter.Start(start); err != nil {
		return nil, err
	}
	var flows []traffic.Flow
	for _, f := range p.scenario.Flows {
		flows = append(flows, f.Flow)
	}
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	p.session, err = traffic.Start(running, p.lab.Host, flows, traffic.Options{
		Duration: p.scenario.Length(), Interval: sampleInterval, StartAt: start, OnReceiver: p.meter.Watch,
	})
	if err != nil {
		return nil, err
	}
	machine := bench.Watch()
	var observer sync.WaitGroup
	observer.Go(func() { p.observeAll(running) })
	err = p.runPhases(ctx)
	if err != nil {
		p.session.Stop()
	}
	received := p.session.Wait()
	disturbed := machine.End()
	// The user may interrupt the demo after the last phase, too.
	err = errors.Join(err, ctx.Err())
	cancel()
	observer.Wait()
	if err != nil {
		return nil, err
	}
	result, err := p.judge(received)
	if err != nil {
		return nil, err
	}
	result.Disturbed = disturbed
	if err := p.queryUsage(ctx, result); err != nil {
		return nil, err
	}
	return result, nil
}

// actions change the groups at the beginning of a phase; nil for no change.
var actions = [scenario.PhaseCount]func(*play, context.Context) error{
	scenario.Deadline: (*play).requestMore,
	scenario.Restore:  (*play).restoreGuarantee,
	scenario.Assign:   (*play).assignDownload,
}

// runPhases goes through the phases: it announces each, performs its action, and reads
// the counters at the beginning and end of its measured part. The flows follow their own
// schedules meanwhile.
func (p *play) runPhases(ctx context.Context) (err error) {
	for i, phase := range p.scenario.Phases {
		if !sleep.Until(ctx, p.began.Add(phase.At)) {
			return ctx.Err()
		}
		if i == scenario.Return+1 {
			p.measureReturn()
		}
		p.stage.phase(i, phase)
		if act := actions[i]; act != nil {
			if err := act(p, ctx); err != nil {
				return err
			}
		}
		from, to := p.scenario.Measured(i)
		for edge, at := range []time.Duration{from, to - edgeMargin} {
			if !sleep.Until(ctx, p.began.Add(at)) {
				return ctx.Err()
			}
			if p.edges[i][edge], err = p.read(scenario.Hosts[0]); err != nil {
				return err
			}
			if i == scenario.Overload && edge == 0 || i == scenario.PhaseCount-1 && edge == 1 {
				if err := p.readOthers(edge); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// observeAll reads the state of the groups for the view until ctx ends.
func (p *play) observeAll(ctx context.Context) {
	for next := time.Now(); sleep.Until(ctx, next); next = next.Add(max(readInterval, time.Since(next))) {
		state, err := p.read(scenario.Hosts[0])
		if err != nil {
			p.stage.say(fmt.Sprintf("  cannot read the groups: %v", err))
			continue
		}
		p.stage.state(state)
	}
}

// read reads the state of a host's device.
func (p *play) read(host string) (state shaper.State, err error) {
	err = p.lab.Node(host).Do(func() error {
		state, err = p.Observe(scenario.Dev)
		return err
	})
	return state, err
}

// readOthers reads the hosts that are judged once, over all phases.
func (p *play) readOthers(edge int) (err error) {
	for _, host := range scenario.Hosts[1:] {
		if p.others[host] == nil {
			p.others[host] = &[2]shaper.State{}
		}
		if p.others[host][edge], err = p.read(host); err != nil {
			return err
		}
	}
	return nil
}
