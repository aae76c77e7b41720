package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"headgate/bench"
	"headgate/internal/awake"
	"headgate/lab"
	"headgate/lab/meter"
	"headgate/lab/traffic"
	"headgate/shaper"
)

// play is a running scenario.
type play struct {
	*app
	demoScenario
	stage demoStage
	lab   *lab.Lab
	dir   string // the directory of all files of the demo

	// The service: its addresses, API clients and processes.
	address, url, pin string
	door              string // the loopback address of the service, if it is served
	operator          *demoClient
	program           *tenantProgram
	stranger          []demoRequest // requests of a tenant for another tenant's group
	changes           []tenantChange
	processes         []*demoProcess
	agents            [len(demoHosts)]*demoProcess

	session *traffic.Session
	began   time.Time // start of the traffic
	meter   *meter.Meter
	// edges has the state and counters of host1 at the beginning and the end of the measured
	// part of each phase; others has those of the other hosts, over all phases except the first.
	edges    [demoPhases][2]shaper.State
	others   map[string]*[2]shaper.State
	returned map[string]float64 // ms until storage had its guarantee again, by direction
}

// Intervals of the demo's measurements.
const (
	// demoEvery is the interval of readings for the view.
	demoEvery = 500 * time.Millisecond
	// demoSampleEvery is the interval of samples of the sockets' counters. Measured parts
	// begin and end at a sample.
	demoSampleEvery = 100 * time.Millisecond
	// demoEdge is how long before the end of a phase its counters are read: before
	// the next phase's traffic starts.
	demoEdge = 20 * time.Millisecond
	// demoConnect is the time for all connections to open before the first phase.
	demoConnect = 400 * time.Millisecond
)

// play creates the network, runs the scenario in it, and removes it.
func (a *app) play(ctx context.Context, s demoScenario, keep bool, stage demoStage) (result *demoResult, err error) {
	sleep, err := awake.Start()
	if err != nil {
		return nil, err
	}
	defer sleep()
	p := &play{app: a, demoScenario: s, stage: stage, others: map[string]*[2]shaper.State{}}
	if err := p.build(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if keep && err == nil {
			result.Kept, result.Service, err = p.lab.Topology.Name, p.url, p.leave()
			return
		}
		stage.status("cleaning up")
		err = errors.Join(err, p.clean(result))
	}()
	// Show the warnings of other packages on the stage.
	old := slog.Default()
	defer slog.SetDefault(old)
	slog.SetDefault(slog.New(newLogLines(stageWriter{stage})))
	if err := p.service(ctx); err != nil {
		return nil, err
	}
	stage.say("", "To watch the groups from another terminal:", "  $ headgate lab exec "+demoHosts[0]+" --lab "+p.lab.Topology.Name+" -- headgate top")
	return p.perform(ctx)
}

// build removes what killed demos left, and creates the network.
func (p *play) build(ctx context.Context, options ...lab.Option) (err error) {
	if err := p.sweepDemos(p.stage.say, false); err != nil {
		return err
	}
	name := lab.UniqueName(demoPrefix)
	p.stage.say("", "Two tenants, media and shop, share three hosts, all in network namespaces of", "this machine. Each host has an agent, configured by one controller:", "")
	p.stage.say(strings.Split(p.picture(), "\n")...)
	p.lab, err = lab.Up(ctx, p.network(name), options...)
	return err
}

// perform runs the traffic through all phases, and judges the result.
func (p *play) perform(ctx context.Context) (*demoResult, error) {
	var err error
	if p.meter, err = meter.New(meter.Options{Flows: len(p.flows), Length: p.length()}); err != nil {
		return nil, err
	}
	defer p.meter.Close()
	start := traffic.MonotonicNow() + int64(demoConnect)
	p.began = time.Now().Add(demoConnect)
	if err := p.meter.Start(start); err != nil {
		return nil, err
	}
	var flows []traffic.Flow
	for _, f := range p.flows {
		flows = append(flows, f.Flow)
	}
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	p.session, err = traffic.Start(running, p.lab.Host, flows, traffic.Options{
		Duration: p.length(), Interval: demoSampleEvery, StartAt: start, OnReceiver: p.meter.Watch,
	})
	if err != nil {
		return nil, err
	}
	machine := bench.Watch()
	var observer sync.WaitGroup
	observer.Go(func() { p.observeAll(running) })
	err = p.phasesOn(ctx)
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

// phasesOn goes through the phases: it announces each, performs its action, and reads
// the counters at the beginning and end of its measured part. The flows follow their own
// schedules meanwhile.
func (p *play) phasesOn(ctx context.Context) (err error) {
	for i, phase := range p.phases {
		if !sleepUntil(ctx, p.began.Add(phase.at)) {
			return ctx.Err()
		}
		if i == phaseReturn+1 {
			p.measureReturn()
		}
		p.stage.phase(i, phase)
		if phase.act != nil {
			if err := phase.act(p, ctx); err != nil {
				return err
			}
		}
		from, to := p.counted(i)
		for edge, at := range []time.Duration{from, to - demoEdge} {
			if !sleepUntil(ctx, p.began.Add(at)) {
				return ctx.Err()
			}
			if p.edges[i][edge], err = p.read(demoHosts[0]); err != nil {
				return err
			}
			if i == phaseOverload && edge == 0 || i == demoPhases-1 && edge == 1 {
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
	for next := time.Now(); sleepUntil(ctx, next); next = next.Add(max(demoEvery, time.Since(next))) {
		state, err := p.read(demoHosts[0])
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
		state, err = p.observe(demoDev)
		return err
	})
	return state, err
}

// readOthers reads the hosts that are judged once, over all phases.
func (p *play) readOthers(edge int) (err error) {
	for _, host := range demoHosts[1:] {
		if p.others[host] == nil {
			p.others[host] = &[2]shaper.State{}
		}
		if p.others[host][edge], err = p.read(host); err != nil {
			return err
		}
	}
	return nil
}

// leave keeps the network and the processes in it when this process exits.
func (p *play) leave() error { return errors.Join(p.lab.Leave(), p.lab.Close()) }
