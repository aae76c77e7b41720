package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"headgate.dev/headgate/internal/awake"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/lab/wire"
)

// RunOptions are the options of a run.
type RunOptions struct {
	// Interval between samples; 0 is 1 s.
	Interval time.Duration
	// Folder is for the output of programs; "" is a new temporary directory, if there are programs.
	Folder string
	// OnSample, if set, is called after each interval, on a goroutine of the run.
	OnSample func(Sample)
}

// Sample has the measurements of one interval.
type Sample struct {
	Seconds float64 // since the start of the run
	Flows   []traffic.FlowInterval
	Links   []LinkSample
	// Events are all events until now.
	Events []EventResult
}

// LinkSample has both directions of a link in one interval.
type LinkSample struct {
	Name          string
	Forward, Back LinkInterval
}

// RunResult is the result of a run.
type RunResult struct {
	Lab string `json:"lab"`
	// Unusable has the reasons why the results of this run are not valid: emulated links that were
	// late, or that lost frames which they should not lose (distrust).
	Unusable []string `json:"unusable,omitempty"`
	// Interrupted: the run ended early.
	Interrupted bool `json:"interrupted,omitempty"`
	// The flows, their start and the stalls of their sender.
	*traffic.Result
	Links    []LinkResult    `json:"links"`
	Programs []ProgramResult `json:"programs,omitempty"`
	Events   []EventResult   `json:"events,omitempty"`
}

// LinkResult is the result of one link.
type LinkResult struct {
	Name    string    `json:"name"`
	Ends    [2]string `json:"ends"`
	Backend Backend   `json:"backend"`
	// Seed of the random numbers of the emulator or netem; with it in the file they are the same
	// again.
	Seed    uint64          `json:"seed,omitempty"`
	Forward DirectionResult `json:"forward"`
	Back    DirectionResult `json:"back"`
}

// DirectionResult is one direction of a link.
type DirectionResult struct {
	Intervals []LinkInterval `json:"intervals"`
	Total     LinkInterval   `json:"total"`
	// Emulator has the emulator's counters since the lab was created.
	Emulator *wire.Stats `json:"emulator,omitempty"`
}

// EventResult is an event of the timeline that happened.
type EventResult struct {
	// AtSeconds is the planned time, HappenedSeconds the actual one.
	AtSeconds       float64 `json:"at_s"`
	HappenedSeconds float64 `json:"happened_s"`
	What            string  `json:"what"`
	Error           string  `json:"error,omitempty"`
}

// Failure returns the first error of a flow, a program or an event, or nil. It does not report that
// the run is unusable.
func (r *RunResult) Failure() error {
	for _, f := range r.Flows {
		if f.Error != "" {
			return fmt.Errorf("flow %s: %s", f.Name, f.Error)
		}
	}
	for _, e := range r.Events {
		if e.Error != "" {
			return fmt.Errorf("at %gs, %s: %s", e.AtSeconds, e.What, e.Error)
		}
	}
	for _, p := range r.Programs {
		switch {
		case !p.failed():
		case p.Error != "":
			return fmt.Errorf("program %s: %s", p.Name, p.Error)
		case p.Signal != "":
			return fmt.Errorf("program %s was terminated by %s: see %s", p.Name, p.Signal, p.Errors)
		default:
			return fmt.Errorf("program %s exited with status %d: see %s", p.Name, p.ExitStatus, p.Errors)
		}
	}
	return nil
}

// run is a run in progress.
type run struct {
	lab     *Lab
	options RunOptions
	start   int64 // CLOCK_MONOTONIC ns
	names   []string
	before  [][2]linkCounts // at the start
	last    [][2]linkCounts // at the last sample

	stops sync.WaitGroup // waits for programs that the timeline stops

	mu       sync.Mutex // guards the following
	lastAt   float64
	links    []LinkResult
	events   []EventResult
	programs []*running
	failure  error
}

// Run runs the topology's programs, flows and timeline for its RunTime, or until ctx ends. Programs
// without a start in the timeline start first; times count from when the flows are connected.
// Everything has ended when Run returns. Errors of a flow, a program or an event are in the result
// (RunResult.Failure); Run itself returns an error only if the run could not start.
func (l *Lab) Run(ctx context.Context, o RunOptions) (_ *RunResult, err error) {
	if !l.own {
		return nil, configErrorf("lab %q belongs to another process; only that process can run it", l.Topology.Name)
	}
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	t := l.Topology
	if o.Folder == "" && len(t.Programs) > 0 {
		if o.Folder, err = os.MkdirTemp("", "headgate-lab-"+t.Name+"-"); err != nil {
			return nil, err
		}
	}
	if o.Folder != "" {
		if err := os.MkdirAll(o.Folder, 0o755); err != nil {
			return nil, err
		}
	}
	stop, err := awake.Start()
	if err != nil {
		return nil, err
	}
	defer stop()
	r := &run{lab: l, options: o, names: t.LinkNames()}
	defer func() {
		for _, p := range r.programs {
			p.stop("with the run")
		}
	}()
	spans := t.spans()
	for _, p := range t.Programs {
		if spans[p.Name].start == 0 {
			if err := r.startProgram(p); err != nil {
				return nil, err
			}
		}
	}
	result, err := r.run(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range r.programs {
		p.stop("with the run")
		result.Programs = append(result.Programs, p.outcome(r.start))
	}
	return result, nil
}

func (r *run) startProgram(p Program) error {
	started, err := r.lab.startProgram(p, r.options.Folder)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.programs = append(r.programs, started)
	return err
}

// run is the part of the run between the first program and the end of the last.
func (r *run) run(ctx context.Context) (*RunResult, error) {
	t := r.lab.Topology
	length := t.RunTime()
	// The start is unknown until the flows are connected.
	started := make(chan struct{})
	onInterval := func(flows []traffic.FlowInterval) { <-started; r.sample(flows) }
	var session *traffic.Session
	if len(t.Flows) > 0 {
		var err error
		o := traffic.Options{Duration: length, Interval: r.options.Interval, OnInterval: onInterval, Seed: t.Seed}
		if t.UntilDone() {
			o.UntilDone, o.AtLeast, o.Duration = true, length, 0
		}
		session, err = traffic.Start(ctx, r.lab.Host, t.timedFlows(), o)
		if err != nil {
			return nil, err
		}
		r.start = session.StartMonotonicNs()
	} else {
		r.start = traffic.MonotonicNow()
	}
	// Packets of connecting are not part of the run.
	err := r.begin()
	close(started)
	if err != nil {
		if session != nil {
			session.Stop()
			session.Wait()
		}
		return nil, err
	}

	eventsCtx, endEvents := context.WithCancel(ctx)
	var events sync.WaitGroup
	events.Go(func() { r.timeline(eventsCtx) })
	var flows *traffic.Result
	if session != nil {
		flows = session.Wait()
	} else {
		r.wait(ctx, length)
		flows = &traffic.Result{StartMonotonicNs: r.start, Flows: []traffic.FlowResult{}, Stalls: []traffic.Stall{}, Seconds: r.since()}
	}
	endEvents()
	events.Wait()
	r.stops.Wait()

	r.mu.Lock()
	defer r.mu.Unlock()
	result := &RunResult{Lab: t.Name, Interrupted: ctx.Err() != nil, Result: flows, Events: r.events}
	seconds := r.since()
	for i := range r.links {
		if err := r.sumUp(i, seconds, result); err != nil {
			return nil, err
		}
	}
	result.Links = r.links
	return result, r.failure
}

// begin stores the counters of the links at the start.
func (r *run) begin() error {
	for i, l := range r.lab.Topology.Links {
		c, err := r.lab.counts(i)
		if err != nil {
			return err
		}
		r.before = append(r.before, c)
		r.links = append(r.links, LinkResult{Name: r.names[i], Ends: l.Ends, Backend: r.lab.backends[i], Seed: r.lab.seeds[i]})
	}
	r.last = append(r.last, r.before...)
	return nil
}

// since returns the time since the start in seconds.
func (r *run) since() float64 { return float64(traffic.MonotonicNow()-r.start) / 1e9 }

// wait takes the samples of a run without flows.
func (r *run) wait(ctx context.Context, length time.Duration) {
	for at := time.Duration(0); at < length; {
		at = min(at+r.options.Interval, length)
		more := sleep(ctx, at-time.Duration(traffic.MonotonicNow()-r.start))
		r.sample(nil)
		if !more {
			return
		}
	}
}

// sleep returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// sample adds an interval to every link.
func (r *run) sample(flows []traffic.FlowInterval) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.since()
	s := Sample{Seconds: now, Flows: flows, Events: append([]EventResult(nil), r.events...)}
	for i := range r.links {
		c, err := r.lab.counts(i)
		if err != nil {
			r.failure = errors.Join(r.failure, fmt.Errorf("link %s: %w", r.names[i], err))
			return
		}
		l := &r.links[i]
		var iv [2]LinkInterval
		for dir, d := range []*DirectionResult{&l.Forward, &l.Back} {
			iv[dir] = c[dir].since(r.last[i][dir])
			iv[dir].StartSeconds, iv[dir].Seconds = r.lastAt, now-r.lastAt
			d.Intervals = append(d.Intervals, iv[dir])
		}
		r.last[i] = c
		s.Links = append(s.Links, LinkSample{l.Name, iv[0], iv[1]})
	}
	r.lastAt = now
	if r.options.OnSample != nil {
		r.options.OnSample(s)
	}
}

// sumUp fills in the totals of link i, and the reasons why the run is unusable.
func (r *run) sumUp(i int, seconds float64, result *RunResult) error {
	now, err := r.lab.counts(i)
	if err != nil {
		return err
	}
	l := &r.links[i]
	for dir, d := range []*DirectionResult{&l.Forward, &l.Back} {
		d.Total = now[dir].since(r.before[i][dir])
		d.Total.Seconds = seconds
		if d.Emulator = now[dir].wire; d.Emulator == nil {
			continue
		}
		if why := distrust(*r.before[i][dir].wire, *d.Emulator); why != "" {
			result.Unusable = append(result.Unusable, fmt.Sprintf("link %s, %s: %s", l.Name, directions[dir], why))
		}
	}
	return nil
}

// timeline executes events at their times.
func (r *run) timeline(ctx context.Context) {
	t := r.lab.Topology
	for _, e := range t.Timeline {
		if !sleep(ctx, e.At-time.Duration(traffic.MonotonicNow()-r.start)) {
			return
		}
		result := EventResult{AtSeconds: e.At.Seconds(), HappenedSeconds: r.since(), What: e.String()}
		if err := r.happen(e); err != nil {
			result.Error = err.Error()
		}
		r.mu.Lock()
		r.events = append(r.events, result)
		r.mu.Unlock()
	}
}

// happen executes an event. Flows start and stop by themselves (timedFlows).
func (r *run) happen(e Event) error {
	for i, name := range r.names {
		if name != e.Link {
			continue
		}
		for dir, p := range [2]*Path{e.Forward, e.Back} {
			if p != nil {
				if err := r.lab.change(i, dir, *p); err != nil {
					return err
				}
			}
		}
	}
	for _, p := range r.lab.Topology.Programs {
		if p.Name == e.Start {
			// A program at 0 was started before the flows.
			if e.At == 0 {
				return nil
			}
			return r.startProgram(p)
		}
	}
	r.mu.Lock()
	var doomed *running
	for _, p := range r.programs {
		if p.result.Name == e.Stop {
			doomed = p
		}
	}
	r.mu.Unlock()
	if doomed != nil {
		// Stopping may take time; the next event does not wait for it.
		r.stops.Go(func() { doomed.stop("by the timeline") })
	}
	return nil
}
