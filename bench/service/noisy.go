package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/unit"
)

// Targets.
var (
	otherP99 = bench.Target{Op: "<=", Value: 100, Unit: "ms"}
	cutOff   = bench.Target{Op: "<=", Value: 0, Unit: "agents"}
)

// Chosen by this project.
const (
	// otherEvery is how often another tenant makes a change.
	otherEvery = 200 * time.Millisecond
	// noisyWorkers is how many requests the noisy tenant has open at the same time.
	noisyWorkers = 20
	// noisyAgents is how many agents are connected, which must stay so.
	noisyAgents = 20
)

func noisyCases() []bench.Case {
	return []bench.Case{{
		Name: "noisy", Run: noisy, Takes: bench.Takes(40*time.Second, 3*time.Minute), Alongside: smoke("bounds"),
		Claims: []bench.Claim{
			bench.NewClaim("noisy/change-p99", "99 of 100 changes of another tenant on the same device, while a tenant is at each of its bounds and sends as much as it may", otherP99),
			bench.NewClaim("noisy/memory", "memory of the controller and its store, the highest of each second", memory),
			bench.NewClaim("noisy/cut-off", "agents that were disconnected", cutOff),
		},
	}}
}

// sharedDevice is an interface with a group of the tenant a and one of b.
func sharedDevice() map[string]any {
	direction := func(field string) map[string]any {
		return map[string]any{"limit": unit.Gbit.String(), "groups": []map[string]any{
			{"name": "a", "guarantee": "30%", "tenant": "a", "match": []map[string]any{{field: []string{"1000-1999"}}}},
			{"name": "b", "guarantee": "30%", "tenant": "b", "match": []map[string]any{{field: []string{"2000-2999"}}}},
			{"name": "rest", "guarantee": "30%", "default": true},
		}}
	}
	return map[string]any{"out": direction("sport"), "in": direction("dport")}
}

// large returns a group of about so many bytes: groups inside, with lists of program names.
func large(field string, bytes int) map[string]any {
	const each = 60
	names := make([]string, 200)
	for n := range names {
		names[n] = fmt.Sprintf("u%0*d", each-4, n)
	}
	groups := []map[string]any{{"name": "rest", "default": true}}
	for n := range max(bytes/(len(names)*each), 1) {
		groups = append(groups, map[string]any{"name": fmt.Sprint("g", n), "match": []map[string]any{{field: []string{fmt.Sprint(1000 + n)}}}, "join": names})
	}
	return map[string]any{"guarantee": "10%", "groups": groups}
}

// twoSides creates the tenants a and b on the device eth0 of a host, and returns a client of each.
func (p *place) twoSides(ctx context.Context, host string) (a, b *asking, err error) {
	operator := p.ask(p.controllers[0])
	for _, put := range []struct {
		path string
		body any
	}{{"/v1/tenants/a", map[string]any{}}, {"/v1/tenants/b", map[string]any{}}, {"/v1/hosts/" + host, map[string]any{}}, {"/v1/hosts/" + host + "/interfaces/eth0", sharedDevice()}} {
		if _, err := operator.must(ctx, http.MethodPut, put.path, put.body); err != nil {
			return nil, nil, err
		}
	}
	of := func(tenant string) *asking {
		out := p.ask(p.controllers[0])
		var failed error
		if out.token, failed = operator.tokenOf(ctx, map[string]any{"name": tenant, "role": "tenant", "tenant": tenant}); failed != nil {
			err = failed
		}
		return out
	}
	return of("a"), of("b"), err
}

// others has another tenant change its group at an interval until stop is called, which returns the times. Each change must succeed.
func (a *asking) others(ctx context.Context, path string, every time.Duration) (stop func() (*times, error)) {
	ctx, cancel := context.WithCancel(ctx)
	took, done := &times{}, make(chan error, 1)
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				done <- nil
				return
			case <-tick.C:
			}
			began := time.Now()
			_, err := a.must(ctx, http.MethodPut, path, map[string]any{"guarantee": (unit.Rate(1+n%10) * unit.Mbit).String(), "default": true})
			if ctx.Err() != nil {
				done <- nil
				return
			}
			if err != nil {
				done <- err
				return
			}
			took.add(time.Since(began))
		}
	}()
	return func() (*times, error) {
		cancel()
		return took, <-done
	}
}

// highest reads the memory of controllers and stores each second until stop is called.
func (p *place) highest(ctx context.Context) (stop func() (float64, error)) {
	ctx, cancel := context.WithCancel(ctx)
	type read struct {
		most float64
		err  error
	}
	done := make(chan read, 1)
	go func() {
		var r read
		for ctx.Err() == nil && r.err == nil {
			var now spent
			if now, r.err = p.spent(); r.err == nil {
				r.most = max(r.most, now.memory)
			}
			_ = bench.Sleep(ctx, time.Second)
		}
		done <- r
	}()
	return func() (float64, error) {
		cancel()
		r := <-done
		return r.most, r.err
	}
}

func noisy(ctx context.Context, r *bench.Run) (err error) {
	p, err := build(ctx, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	f, err := p.provision(ctx, noisyAgents, groupsEach, r.Say)
	if err != nil {
		return err
	}
	defer f.stop()
	a, b, err := p.twoSides(ctx, f.hosts[0])
	if err != nil {
		return err
	}
	if err := f.start(ctx); err != nil {
		return err
	}
	if _, err := p.connected(ctx, noisyAgents, comeBack); err != nil {
		return err
	}
	device := "/v1/hosts/" + f.hosts[0] + "/interfaces/eth0"
	quietly := b.others(ctx, device+"/out/groups/b%2Fx", otherEvery)
	if err := bench.Sleep(ctx, bench.Pick(r.Quick, 3*time.Second, 10*time.Second)); err != nil {
		return err
	}
	quiet, err := quietly()
	if err != nil {
		return err
	}
	memoryOf, during := p.highest(ctx), b.others(ctx, device+"/out/groups/b%2Fx", otherEvery)
	counts := a.atEachBound(ctx, device, bench.Pick(r.Quick, 15*time.Second, 2*time.Minute))
	took, err := during()
	if err != nil {
		return fmt.Errorf("a change of another tenant: %w", err)
	}
	most, err := memoryOf()
	if err != nil {
		return err
	}
	_, connected := p.streams(ctx)
	sheet := r.Sheet(bench.Ours)
	sheet.Set("noisy/change-p99", took.at(0.99))
	sheet.Note("noisy/change-p99", "%d changes, the median in %s ms; without the noisy tenant 99 of 100 in %s ms; of the requests of the noisy tenant: %s", took.count(), bench.Number(took.at(0.5)), bench.Number(quiet.at(0.99)), counts)
	sheet.Set("noisy/memory", most/(1<<20))
	sheet.Set("noisy/cut-off", float64(noisyAgents-connected))
	return nil
}

// atEachBound has a tenant send as much as it can for a time: large groups, small changes, connections, tokens, streams, repeats and reads. It returns the
// numbers of answers by their status.
func (a *asking) atEachBound(ctx context.Context, device string, length time.Duration) string {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	var counts sync.Map
	var n atomic.Int64
	count := func(status int) {
		v, _ := counts.LoadOrStore(status, &atomic.Int64{})
		v.(*atomic.Int64).Add(1)
	}
	for range 110 { // event streams, of which it may have 100
		go func() {
			if body, err := a.stream(ctx, "/v1/events"); err == nil {
				defer body.Close()
				<-ctx.Done()
			}
		}()
	}
	var all sync.WaitGroup
	for range noisyWorkers {
		all.Go(func() {
			for ctx.Err() == nil {
				i := n.Add(1)
				method, path, body := http.MethodPut, device+"/out/groups/a%2Fbig", any(large("sport", 400<<10))
				switch i % 10 {
				case 1:
					path, body = device+"/in/groups/a%2Fbig", large("dport", 100<<10)
				case 2:
					body = large("sport", 900<<10) // above its bound
				case 3:
					path, body = device+fmt.Sprintf("/connections/tcp%%2010.0.0.1:%d%%2010.0.0.2:80", 1000+i%900), map[string]any{"group": "a/big/g1"}
				case 4:
					method, path, body = http.MethodPost, "/v1/tokens", map[string]any{"name": fmt.Sprint("t", i), "role": "tenant", "tenant": "a"}
				case 5, 6:
					method, path, body = http.MethodGet, device+"/out/groups", nil
				case 7:
					path, body = device+"/out/groups/a%2Fsmall", map[string]any{"match": []map[string]any{{"sport": []string{"1990"}}}}
				case 8:
					method, path, body = http.MethodGet, device, nil
				}
				status, _, err := a.once(ctx, method, path, body, fmt.Sprint("key", i))
				if err != nil && ctx.Err() == nil {
					status = 0
				}
				count(status)
				_ = bench.Sleep(ctx, 10*time.Millisecond)
			}
		})
	}
	all.Wait()
	var parts []string
	for _, status := range []int{200, 201, 204, 400, 409, 413, 422, 429, 503, 0} {
		if v, ok := counts.Load(status); ok {
			parts = append(parts, fmt.Sprintf("%d with %d", v.(*atomic.Int64).Load(), status))
		}
	}
	return strings.Join(parts, ", ")
}
