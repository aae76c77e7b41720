package service

import (
	"bytes"
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

	"github.com/anishathalye/porcupine"

	"headgate/bench"
	"headgate/unit"
)

// Of the issue.
const atOnce = 1000

// Ours.
const (
	// capacity is what is asked for; the thousand want five times as much.
	capacity = unit.Gbit
	// clients ask one after the other, for groups that others ask for, too, and give back.
	clients, eachAsks = 12, 25
	sharedGroups      = 8
	// checking is how long a history may take to be decided.
	checking = 2 * time.Minute
	// leaderGone is how long after the first of the thousand the leader is killed.
	leaderGone = 100 * time.Millisecond
)

const eth0 = "/v1/hosts/h1/interfaces/eth0"

func oversoldCases(d *bench.Draw) []bench.Case {
	const id = "never-oversold"
	return []bench.Case{{
		Name: id,
		Claims: []bench.Claim{
			bench.NewClaim(id+"/burst", "1,000 at once, the leader killed: a ledger could have done so", violations),
			bench.NewClaim(id+"/mixed", "asked, changed and given back, the leader killed: a ledger could have done so", violations),
			bench.NewClaim(id+"/sum", "the most that was promised", full),
			bench.NewClaim(id+"/refused", "refused, and it fits", violations),
			bench.NewClaim(id+"/fail-over", "acknowledged, and not there after the leader was killed", changes),
			bench.NewClaim(id+"/restart", "acknowledged, and not there after all were killed and started", changes),
			bench.NewClaim(id+"/restore", "acknowledged, and not there after a restore", changes),
			bench.NewClaim(id+"/granted", "granted of the thousand", measured),
			bench.NewClaim(id+"/unknown", "of the thousand, of whom nobody knew", measured),
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

			// A thousand, each for a group of its own.
			wants := make([]unit.Rate, atOnce)
			for i := range wants {
				wants[i] = unit.Rate(1+rng.IntN(9)) * unit.Mbit
			}
			killed := h.killLeader(ctx, leaderGone)
			var all sync.WaitGroup
			for i, want := range wants {
				all.Go(func() { h.ask(ctx, i, p.controllers[i%3], asked{i, want}) })
			}
			all.Wait()
			if err := <-killed; err != nil {
				return err
			}
			there, err := h.look(ctx)
			if err != nil {
				return err
			}
			most := total(there)
			granted, wrongly, gone, unsure := h.settle(there)
			sheet.Set(id+"/granted", float64(granted))
			sheet.Set(id+"/unknown", float64(unsure))
			sheet.Set(id+"/refused", float64(wrongly))
			sheet.Set(id+"/fail-over", float64(gone))
			sheet.Set(id+"/burst", h.violations(r, "the thousand"))
			if err := p.startAll(ctx); err != nil {
				return err
			}

			// Few, who change what they have, too.
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
			most = max(most, total(there))
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
			sheet.Set(id+"/sum", 100*float64(most)/float64(capacity))
			return nil
		},
	}}
}

// history is what was asked, and what became of it.
type history struct {
	place *place
	began time.Time
	first reading // what was promised before

	mu  sync.Mutex
	ops []porcupine.Operation
}

func (h *history) now() int64 { return int64(time.Since(h.began)) }

// ask asks once, and writes down what became of it.
func (h *history) ask(ctx context.Context, client int, c *control, want asked) {
	a := h.place.shared(c)
	body := map[string]any{"guarantee": want.guarantee.String(), "match": []map[string]any{{"dport": []string{fmt.Sprint(1000 + want.group)}}}}
	op := porcupine.Operation{ClientId: client, Input: want, Call: h.now(), Output: unknown}
	status, text, err := a.do(ctx, http.MethodPut, fmt.Sprintf("%s/out/groups/g%d", eth0, want.group), body)
	op.Return = h.now()
	switch {
	case err == nil && status < 300:
		op.Output = granted
	case err == nil && status == http.StatusUnprocessableEntity && bytes.Contains(text, []byte("guarantees total")):
		op.Output = refused
	case err == nil && status < 500:
		op.Metadata = fmt.Sprintf("%d %s", status, text)
		fallthrough
	default:
		op.Return = math.MaxInt64
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, op)
}

// killLeader kills the controller that leads after a while.
func (h *history) killLeader(ctx context.Context, after time.Duration) <-chan error {
	done := make(chan error, 1)
	leader, err := h.place.leader(ctx)
	if err != nil {
		done <- err
		return done
	}
	go func() {
		time.Sleep(after)
		done <- leader.stop(syscall.SIGKILL)
	}()
	return done
}

// look reads what is promised, as every controller that runs says it, which has to be the same.
func (h *history) look(ctx context.Context) (reading, error) {
	var told reading
	for _, c := range h.place.controllers {
		if c.cmd == nil {
			continue
		}
		op := porcupine.Operation{ClientId: 1 << 20, Input: asked{}, Call: h.now()}
		one, err := h.place.promised(ctx, c)
		if err != nil {
			return nil, err
		}
		op.Output, op.Return = one, h.now()
		h.ops = append(h.ops, op)
		told = one
	}
	return told, nil
}

// settle uses that each of the thousand asked for a group of its own: of one that was not answered
// what is there says whether it happened, and guarantees only grew, so that what fits at the end
// has fitted all the time.
func (h *history) settle(there reading) (happened, wrongly, gone, unsure int) {
	var ops []porcupine.Operation
	for _, op := range h.ops {
		if _, look := op.Output.(reading); look {
			ops = append(ops, op)
			continue
		}
		want := op.Input.(asked)
		is := there[want.group] == want.guarantee
		switch op.Output {
		case granted:
			happened++
			if !is {
				gone++
			}
		case refused:
			if total(there)+want.guarantee <= capacity {
				wrongly++
			}
		default:
			unsure++
			if !is {
				continue // it never was
			}
			op.Output, op.Return = granted, h.now()
		}
		ops = append(ops, op)
	}
	h.ops = ops
	return happened, wrongly, gone, unsure
}

// violations is 0 for a history that a ledger could have, and 1 for another.
func (h *history) violations(r *bench.Run, whose string) float64 {
	m := model(capacity)
	if h.first != nil {
		first := ledger{promised: h.first, sum: total(h.first)}
		m.Init = func() any { return first }
	}
	for _, op := range h.ops {
		if op.Metadata != nil {
			r.Say("%s: %v was answered %v", whose, op.Input, op.Metadata)
		}
	}
	began := time.Now()
	got := porcupine.CheckOperationsTimeout(m, h.ops, checking)
	r.Say("%s: %d calls are %s, which took %.1f s to find", whose, len(h.ops), got, time.Since(began).Seconds())
	if got == porcupine.Ok {
		return 0
	}
	return 1
}

// differs counts groups that are not as they were.
func (h *history) differs(ctx context.Context, before reading) (n int, err error) {
	for _, c := range h.place.controllers {
		now, err := h.place.promised(ctx, c)
		if err != nil {
			return 0, err
		}
		here := 0
		for group, rate := range before {
			if now[group] != rate {
				here++
			}
		}
		n = max(n, here)
	}
	return n, nil
}

func total(r reading) (sum unit.Rate) {
	for _, rate := range r {
		sum += rate
	}
	return sum
}

// promised is what a controller says that groups have.
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

// startAll starts those that do not run, and waits until all serve.
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

// restoreAll makes a backup, has all controllers lose their folders, and restores them.
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
