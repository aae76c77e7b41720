package service

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"headgate.dev/headgate/agent/remote"
	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/unit"
)

// fleet is the streams of many agents, which enforce nothing.
type fleet struct {
	place  *place
	hosts  []string
	groups int // of an agent's interface
	sent   atomic.Uint64
	quiet  atomic.Bool // agents have nothing to report
	end    context.CancelFunc
	all    sync.WaitGroup
}

// groupsEach is the usual number of groups of an agent's interface; hosts are created in batches.
const groupsEach, provisionAtOnce = 50, 16

// interfaceOf returns an interface with n groups on 1 Gbit/s.
func interfaceOf(n int) map[string]any {
	var groups []map[string]any
	for i := range n {
		groups = append(groups, map[string]any{"name": fmt.Sprint("g", i), "guarantee": "1%", "match": []map[string]any{{"dport": []string{fmt.Sprint(5000 + i)}}}})
	}
	groups[0]["default"] = true
	delete(groups[0], "match")
	return map[string]any{"out": map[string]any{"limit": unit.Gbit.String(), "groups": groups}}
}

// provision creates n hosts with an interface of as many groups each, and registers their agents.
func (p *place) provision(ctx context.Context, n, groups int, say func(string, ...any)) (*fleet, error) {
	f := &fleet{place: p, groups: groups}
	a := p.ask(p.controllers[0])
	defer a.client.CloseIdleConnections()
	body := interfaceOf(groups)
	for i := range n {
		f.hosts = append(f.hosts, fmt.Sprintf("h%04d", i))
	}
	var done atomic.Int32
	var all errgroup.Group
	all.SetLimit(provisionAtOnce)
	one := func(host string) error {
		if _, err := a.must(ctx, http.MethodPut, "/v1/hosts/"+host, map[string]any{}); err != nil {
			return err
		}
		if _, err := a.must(ctx, http.MethodPut, "/v1/hosts/"+host+"/interfaces/eth0", body); err != nil {
			return err
		}
		if n := done.Add(1); n%500 == 0 {
			say("%d hosts created", n)
		}
		_, err := p.join(ctx, a, host)
		return err
	}
	for _, host := range f.hosts {
		all.Go(func() error { return one(host) })
	}
	return f, all.Wait()
}

// start connects all agents.
func (f *fleet) start(ctx context.Context) error {
	ctx, f.end = context.WithCancel(ctx)
	for _, host := range f.hosts {
		dir := filepath.Join(f.place.hosts, host)
		intent, err := remote.OpenIntent(dir)
		if err != nil {
			return err
		}
		l := remote.NewLink(dir, "bench", intent)
		l.Dial = dial(f.place.caller)
		l.Log = slog.New(slog.DiscardHandler)
		l.Changed = func() {}
		l.Facts = func() *agents.Facts {
			return &agents.Facts{Kernel: "6.18", Devices: []*agents.Device{{Name: "eth0", Up: true, Mtu: 1500, SpeedBps: 1e9, Owner: "controller"}}}
		}
		l.Report = f.reports()
		l.Handlers = []remote.Handler{remote.Answer(func(_ context.Context, q *agents.UsageQuery, answer func(*agents.UsageAnswer)) error {
			answer(&agents.UsageAnswer{Id: q.Id})
			return nil
		})}
		f.all.Go(func() { _ = l.Run(ctx) })
	}
	return nil
}

// reports returns the continuous reports of one agent: counters that increase.
func (f *fleet) reports() func() *agents.Report {
	var names []string
	var n uint64
	for i := range f.groups {
		names = append(names, fmt.Sprint("out/g", i))
	}
	return func() *agents.Report {
		if f.quiet.Load() {
			return nil
		}
		f.sent.Add(1)
		n++
		d := &agents.DeviceReport{Dev: "eth0"}
		if n == 1 {
			d.Names, d.GuaranteeBps = names, slices.Repeat([]uint64{10e6}, f.groups)
		}
		d.Bytes = slices.Repeat([]uint64{n * 1_250_000}, f.groups)
		d.BacklogBytes, d.Drops, d.Marks = make([]uint64, f.groups), make([]uint64, f.groups), make([]uint64, f.groups)
		return &agents.Report{AtNs: time.Now().UnixNano(), Devices: []*agents.DeviceReport{d}}
	}
}

// stop closes all streams.
func (f *fleet) stop() {
	if f.end != nil {
		f.end()
		f.all.Wait()
	}
}

// streams returns the number of connected agents of each running controller, from its metrics.
func (p *place) streams(ctx context.Context) (counts map[string]float64, sum int) {
	counts = map[string]float64{}
	for _, c := range p.controllers {
		if c.cmd == nil {
			continue
		}
		if v, err := c.metric(ctx, "headgate_controller_agents"); err == nil {
			counts[c.name] = v
			sum += int(v)
		}
	}
	return counts, sum
}

// connected waits until this number of streams is connected to the running controllers.
func (p *place) connected(ctx context.Context, n int, within time.Duration) (took time.Duration, err error) {
	began := time.Now()
	for {
		counts, sum := p.streams(ctx)
		took = time.Since(began)
		switch {
		case sum >= n:
			return took, nil
		case ctx.Err() != nil:
			return took, ctx.Err()
		case took > within:
			return took, fmt.Errorf("after %v only %d of %d streams are connected: %v", within, sum, n, slices.Sorted(maps.Values(counts)))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// left waits until no controller has an agent.
func (p *place) left(ctx context.Context) error {
	for until := time.Now().Add(faultPatience); ; time.Sleep(50 * time.Millisecond) {
		switch counts, sum := p.streams(ctx); {
		case sum == 0:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(until):
			return fmt.Errorf("after %v agents are still connected: %v", faultPatience, counts)
		}
	}
}
