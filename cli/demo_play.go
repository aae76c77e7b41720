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

// play is a scenario that runs.
type play struct {
	*app
	scenario
	stage demoStage
	lab   *lab.Lab
	dir   string // of all that the demo writes

	// The service: where it is, who is in it, and what of it runs.
	address, url, pin string
	door              string // the address of this machine at which it is found, too
	operator          *demoCaller
	program           *tenantProgram
	stranger          []demoRequest // of a tenant, for what is another's
	changes           []tenantChange
	processes         []*demoProcess
	agents            [len(demoHosts)]*demoProcess

	session *traffic.Session
	began   time.Time // of the traffic
	meter   *meter.Meter
	// What was in force, and had been counted, on host1 at the beginning and the end of
	// the counted part of each phase, and on the other hosts of all phases but the first.
	edges    [demoPhases][2]shaper.State
	others   map[string]*[2]shaper.State
	returned map[string]float64 // ms until storage had its guarantee back, by direction
}

// Ours.
const (
	// demoEvery is the time between observations for the view.
	demoEvery = 500 * time.Millisecond
	// demoSampleEvery is the time between samples of what sockets count. What is
	// counted begins and ends at one of them.
	demoSampleEvery = 100 * time.Millisecond
	// demoEdge is how long before the end of a phase its counters are read: before
	// the next phase's traffic comes.
	demoEdge = 20 * time.Millisecond
	// demoConnect is how long all connections have before the first phase.
	demoConnect = 400 * time.Millisecond
)

// play makes the network, runs the scenario in it, and removes it.
func (a *app) play(ctx context.Context, s scenario, keep bool, stage demoStage) (result *demoResult, err error) {
	sleep, err := awake.Keep()
	if err != nil {
		return nil, err
	}
	defer sleep()
	p := &play{app: a, scenario: s, stage: stage, others: map[string]*[2]shaper.State{}}
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
	// Warnings of the packages below are part of what is shown.
	old := slog.Default()
	defer slog.SetDefault(old)
	slog.SetDefault(slog.New(newLogLines(stageWriter{stage})))
	if err := p.service(ctx); err != nil {
		return nil, err
	}
	stage.say("", "To watch it from another terminal:", "  $ headgate lab exec "+demoHosts[0]+" --lab "+p.lab.Topology.Name+" -- headgate top")
	return p.perform(ctx)
}

// build makes the network, and first removes what killed demos left.
func (p *play) build(ctx context.Context, options ...lab.Option) (err error) {
	if err := p.sweepDemos(p.stage.say, false); err != nil {
		return err
	}
	name := lab.UniqueName(demoPrefix)
	p.stage.say("", "Two tenants, media and shop, share three hosts, all in network namespaces of", "this machine. Each host has an agent, which does what the controller says:", "")
	p.stage.say(strings.Split(p.picture(), "\n")...)
	p.lab, err = lab.Up(ctx, p.network(name), options...)
	return err
}

// perform lets the traffic flow through all phases, and judges what came of it.
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
	// Whoever ends it may do so after the last phase, too.
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
	if err := p.prove(ctx, result); err != nil {
		return nil, err
	}
	return result, nil
}

// phasesOn goes through the phases: announces each, does what is to be done, and
// reads counters at the edges of what is counted. The flows follow their own
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

// observeAll reads what the groups do, for the view, until ctx ends.
func (p *play) observeAll(ctx context.Context) {
	for next := time.Now(); sleepUntil(ctx, next); next = next.Add(max(demoEvery, time.Since(next))) {
		state, err := p.read(demoHosts[0])
		if err != nil {
			p.stage.say(fmt.Sprintf("  the groups cannot be read: %v", err))
			continue
		}
		p.stage.state(state)
	}
}

// read observes a host's device.
func (p *play) read(host string) (state shaper.State, err error) {
	err = p.lab.Node(host).Do(func() error {
		state, err = p.observe(demoDev)
		return err
	})
	return state, err
}

// readOthers reads the hosts that are judged once.
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

// leave lets the network, and what runs in it, stay when this process ends.
func (p *play) leave() error { return errors.Join(p.lab.Leave(), p.lab.Close()) }
