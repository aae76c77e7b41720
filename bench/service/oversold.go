package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/unit"
)

// From the targets.
const atOnce = 1000

// Chosen by this project: a run with fewer answered requests proves too little.
const minAnswered = 900

// Chosen by this project.
const (
	// capacity is the total bandwidth; the thousand requests are for five times as much.
	capacity = unit.Gbit
	// clients send requests one after the other, for groups that they share, and release them.
	clients, eachAsks = 12, 25
	sharedGroups      = 8
	// insisting is how long each of the thousand retries, and betweenTries is the time between two
	// tries.
	insisting, betweenTries = 20 * time.Second, 200 * time.Millisecond
	// checking is the time limit for the check of a history.
	checking = 2 * time.Minute
	// leaderGone is the time from the first of the thousand until the leader is killed.
	leaderGone = 100 * time.Millisecond
)

const eth0 = "/v1/hosts/h1/interfaces/eth0"

func oversoldCases(d *bench.Draw) []bench.Case {
	const id = "never-oversold"
	return []bench.Case{{
		Name: id,
		Claims: []bench.Claim{
			bench.NewClaim(id+"/burst", "1,000 concurrent requests, leader killed: history not linearizable", violations),
			bench.NewClaim(id+"/mixed", "requested, changed and released, leader killed: history not linearizable", violations),
			bench.NewClaim(id+"/sum", "maximum of the total guarantees", full),
			bench.NewClaim(id+"/refused", "refused requests that would have fitted", violations),
			bench.NewClaim(id+"/fail-over", "acknowledged changes that were lost when the leader was killed", changes),
			bench.NewClaim(id+"/restart", "acknowledged changes that were lost when all were killed and restarted", changes),
			bench.NewClaim(id+"/restore", "acknowledged changes that were lost after a restore", changes),
			bench.NewClaim(id+"/granted", "granted requests of the thousand", measured),
			bench.NewClaim(id+"/unknown", "requests of the thousand without a response", measured),
		},
		Takes: func(bool) time.Duration { return 30 * time.Second },
		Run: func(ctx context.Context, r *bench.Run) (err error) {
			p, err := build(ctx, 3)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, p.close()) }()
			a := p.ask(p.controllers[0])
			if _, err := a.must(ctx, http.MethodPut, "/v1/hosts/h1", map[string]any{}); err != nil {
				return err
			}
			whole := map[string]any{"out": map[string]any{"limit": capacity.String(), "groups": []map[string]any{{"name": "rest", "default": true}}}}
			if _, err := a.must(ctx, http.MethodPut, eth0, whole); err != nil {
				return err
			}
			sheet := r.Sheet(bench.Ours)
			h := &history{place: p, began: time.Now()}
			drawn := d.For(id)
			rng := rand.New(rand.NewPCG(uint64(drawn.Int(0, math.MaxInt32)), 0))

			// A thousand requests, each for its own group.
			wants := make([]unit.Rate, atOnce)
			for i := range wants {
				wants[i] = unit.Rate(1+rng.IntN(9)) * unit.Mbit
			}
			killed := h.killLeader(ctx, leaderGone)
			var all sync.WaitGroup
			for i, want := range wants {
				all.Go(func() { h.insist(ctx, i, asked{i, want}) })
			}
			all.Wait()
			if err := <-killed; err != nil {
				return err
			}
			there, err := h.look(ctx)
			if err != nil {
				return err
			}
			maxTotal := total(there)
			granted, wrongly, gone, unsure := h.settle(there)
			impossible := h.violations(r, "the thousand")
			if err := burst(atOnce-unsure, wrongly+gone+int(impossible), maxTotal); err != nil {
				return err
			}
			sheet.Set(id+"/granted", float64(granted))
			sheet.Set(id+"/unknown", float64(unsure))
			sheet.Set(id+"/refused", float64(wrongly))
			sheet.Set(id+"/fail-over", float64(gone))
			sheet.Set(id+"/burst", impossible)
			if err := p.startAll(ctx); err != nil {
				return err
			}

			// A few clients, which also change their guarantees.
			h = &history{place: p, began: time.Now(), first: there}
			killed = h.killLeader(ctx, time.Second)
			for client := range clients {
				seed := rng.Uint64()
				all.Go(func() {
					rng := rand.New(rand.NewPCG(seed, 0))
					for n := range eachAsks {
						want := asked{atOnce + rng.IntN(sharedGroups), unit.Rate(rng.IntN(5)) * 30 * unit.Mbit}
						h.ask(ctx, client, p.controllers[(client+n)%3], want)
						time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
					}
				})
			}
			all.Wait()
			if err := <-killed; err != nil {
				return err
			}
			if there, err = h.look(ctx); err != nil {
				return err
			}
			maxTotal = max(maxTotal, total(there))
			sheet.Set(id+"/mixed", h.violations(r, "those who change"))

			if err := p.stopAll(syscall.SIGKILL); err != nil {
				return err
			}
			if err := p.startAll(ctx); err != nil {
				return err
			}
			differs, err := h.differs(ctx, there)
			if err != nil {
				return err
			}
			sheet.Set(id+"/restart", float64(differs))
			if err := p.restoreAll(ctx); err != nil {
				return err
			}
			if differs, err = h.differs(ctx, there); err != nil {
				return err
			}
			sheet.Set(id+"/restore", float64(differs))
			sheet.Set(id+"/sum", 100*float64(maxTotal)/float64(capacity))
			return nil
		},
	}}
}

// burst returns an error for a run in which too few of the thousand were answered, or which has not
// filled the interface: so many request 1 Mbit/s that nothing should be left. Other errors of the run
// take precedence.
func burst(answered, wrong int, promised unit.Rate) error {
	switch {
	case wrong > 0 || promised > capacity:
		return nil
	case answered < minAnswered:
		return fmt.Errorf("only %d of %d requests were answered, want at least %d", answered, atOnce, minAnswered)
	case promised < capacity:
		return fmt.Errorf("%v of %v are allocated: the requests have not filled the interface", promised, capacity)
	}
	return nil
}

func total(r reading) (sum unit.Rate) {
	for _, rate := range r {
		sum += rate
	}
	return sum
}

// promised returns a controller's allocations.
func (p *place) promised(ctx context.Context, c *control) (reading, error) {
	text, err := p.shared(c).must(ctx, http.MethodGet, eth0, nil)
	if err != nil {
		return nil, err
	}
	var doc struct {
		Out struct {
			Groups []struct {
				Name      string
				Guarantee unit.Rate
			}
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	out := reading{}
	for _, g := range doc.Out.Groups {
		var n int
		if _, err := fmt.Sscanf(g.Name, "g%d", &n); err == nil && g.Guarantee > 0 {
			out[n] = g.Guarantee
		}
	}
	return out, nil
}

func (p *place) stopAll(signal syscall.Signal) (err error) {
	for _, c := range p.controllers {
		err = errors.Join(err, c.stop(signal))
	}
	return err
}

// startAll starts the controllers that do not run, and waits until all serve.
func (p *place) startAll(ctx context.Context) error {
	for _, c := range p.controllers {
		if c.cmd != nil {
			continue
		}
		if err := c.start(ctx); err != nil {
			return err
		}
	}
	return p.ready(ctx)
}

// restoreAll makes a backup, deletes the stores of all controllers (store/data; certificates stay),
// and restores them.
func (p *place) restoreAll(ctx context.Context) error {
	file := filepath.Join(p.dir, "backup")
	first := p.controllers[0]
	if err := p.run(first.node, "controller", "backup", "-f", p.file, "--name", first.name, "--data", first.dir, file); err != nil {
		return err
	}
	if err := p.stopAll(syscall.SIGTERM); err != nil {
		return err
	}
	for _, c := range p.controllers {
		if err := os.RemoveAll(filepath.Join(c.dir, "store", "data")); err != nil {
			return err
		}
		if err := p.run(c.node, "controller", "restore", "-f", p.file, "--name", c.name, "--data", c.dir, file); err != nil {
			return err
		}
	}
	return p.startAll(ctx)
}
