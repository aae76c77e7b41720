package service

import (
	"context"
	"errors"
	"net/http"
	"syscall"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/unit"
)

// Targets.
const (
	streams  = 2000
	watchers = 50
)

// fleetTargets are those of many more agents with fewer groups each, at one controller.
var fleetTargets = scaleTargets{
	cores:  bench.Target{Op: "<=", Value: 1, Unit: "cores"},
	memory: bench.Target{Op: "<=", Value: 1536, Unit: "MiB"},
	back:   bench.Target{Op: "<=", Value: 20, Unit: "s"},
}

// Chosen by this project.
const (
	// asks is the number of requests a second while all agents report: three of four read, the fourth
	// changes.
	asks = 10
	// comeBack is the time limit for agents to reconnect after their controller was killed.
	comeBack = 60 * time.Second
)

// scaling is a case with many agents.
type scaling struct {
	name                        string
	controllers, agents, groups int
	// killed: the leader is killed in the end. A single controller is started again.
	killed  bool
	targets scaleTargets
}

type scaleTargets struct{ cores, memory, back bench.Target }

func scaleCases() (all []bench.Case) {
	usual := scaleTargets{cores: cores, memory: memory, back: back}
	for _, s := range []scaling{
		{name: "scale/1-controller", controllers: 1, agents: streams, groups: groupsEach, targets: usual},
		{name: "scale/3-controllers", controllers: 3, agents: streams, groups: groupsEach, killed: true, targets: usual},
		{name: "scale/10000", controllers: 1, agents: 10_000, groups: 20, killed: true, targets: fleetTargets},
	} {
		all = append(all, s.bench())
	}
	return all
}

func (s scaling) bench() bench.Case {
	name := s.name
	c := bench.Case{
		Name: name,
		Claims: []bench.Claim{
			bench.NewClaim(name+"/cores", "processors used by controllers and stores", s.targets.cores),
			bench.NewClaim(name+"/memory", "memory of controllers and stores", s.targets.memory),
			bench.NewClaim(name+"/lost", "lost reports", lost),
			bench.NewClaim(name+"/api-p99", "99 of 100 requests", apiP99),
		},
		Takes: func(quick bool) time.Duration {
			if quick {
				return 30 * time.Second
			}
			return 2*time.Minute + time.Duration(s.agents)*30*time.Millisecond
		},
	}
	if s.killed {
		c.Claims = append(c.Claims, bench.NewClaim(name+"/back", "time until all agents have reconnected after the leader was killed", s.targets.back))
	}
	c.Run = func(ctx context.Context, r *bench.Run) (err error) {
		agents, window := s.agents, 30*time.Second
		if r.Quick {
			agents, window = s.agents/10, 10*time.Second
		}
		p, err := build(ctx, s.controllers)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, p.close()) }()
		f, err := p.provision(ctx, agents, s.groups, r.Say)
		if err != nil {
			return err
		}
		defer f.stop()
		if err := f.start(ctx); err != nil {
			return err
		}
		took, err := p.connected(ctx, agents, comeBack)
		if err != nil {
			return err
		}
		r.Say("%d streams connected after %.1f s", agents, took.Seconds())
		watching, unwatch := context.WithCancel(ctx)
		w := p.watch(watching, watchers)
		defer func() { unwatch(); w.all.Wait() }()
		if err := w.open(ctx); err != nil {
			return err
		}
		prompt, err := calm(ctx, p.dir)
		if err != nil {
			return err
		}
		sheet := r.Sheet(bench.Ours)
		if !prompt {
			sheet.Note(name+"/api-p99", "writes of the disk were slow before the measurement, without other load")
		}
		before, err := f.told(ctx)
		if err != nil {
			return err
		}
		used, err := p.spent()
		if err != nil {
			return err
		}
		began := time.Now()
		api, err := f.asked(ctx, window)
		if err != nil {
			return err
		}
		seconds := time.Since(began).Seconds()
		now, err := p.spent()
		if err != nil {
			return err
		}
		if err := w.served(); err != nil {
			return err
		}
		sheet.Set(name+"/cores", (now.processor-used.processor).Seconds()/seconds)
		sheet.Set(name+"/memory", now.memory/(1<<20))
		sheet.Set(name+"/api-p99", api.at(0.99))
		after, err := f.told(ctx)
		if err != nil {
			return err
		}
		missing := int64(after.sent-before.sent) - int64(after.taken-before.taken)
		sheet.Set(name+"/lost", float64(max(missing, 0)))
		sheet.Note(name+"/lost", "%d reports in the window; %d changes reached %d watchers", after.sent-before.sent, w.sum(), watchers)
		if !s.killed {
			return nil
		}
		leader, err := p.leader(ctx)
		if err != nil {
			return err
		}
		if err := leader.stop(syscall.SIGKILL); err != nil {
			return err
		}
		killed := time.Now()
		if s.controllers == 1 {
			if err := leader.start(ctx); err != nil {
				return err
			}
		}
		if _, err = p.connected(ctx, agents, comeBack); err != nil {
			return err
		}
		sheet.Set(name+"/back", time.Since(killed).Seconds())
		return nil
	}
	return c
}

// told has the numbers of sent and received reports.
type told struct{ sent, taken uint64 }

// told stops the reports of all agents until none is in flight, and counts.
func (f *fleet) told(ctx context.Context) (t told, err error) {
	f.quiet.Store(true)
	defer f.quiet.Store(false)
	time.Sleep(2 * time.Second)
	t.sent = f.sent.Load()
	for _, c := range f.place.controllers {
		v, err := c.metric(ctx, "headgate_controller_reports_total")
		if err != nil {
			return t, err
		}
		t.taken += uint64(v)
	}
	return t, nil
}

// asked sends requests to the controllers in turn for a time.
func (f *fleet) asked(ctx context.Context, length time.Duration) (*times, error) {
	var all []*asking
	for _, c := range f.place.controllers {
		a := f.place.ask(c)
		defer a.client.CloseIdleConnections()
		all = append(all, a)
	}
	took := &times{}
	tick := time.NewTicker(time.Second / asks)
	defer tick.Stop()
	for end, n := time.Now().Add(length), 0; time.Now().Before(end); n++ {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
		host := f.hosts[n*7%len(f.hosts)]
		method, path, body := http.MethodGet, "/v1/hosts/"+host+"/interfaces/eth0", any(nil)
		switch n % 4 {
		case 1:
			path = "/v1/hosts/" + host
		case 2:
			path += "/out/groups/g7"
		case 3:
			method, path = http.MethodPatch, path+"/out/groups/g7"
			body = map[string]any{"guarantee": (unit.Rate(5+n%10) * unit.Mbit).String()}
		}
		began := time.Now()
		if _, err := all[n%len(all)].must(ctx, method, path, body); err != nil {
			return nil, err
		}
		took.add(time.Since(began))
	}
	return took, nil
}
