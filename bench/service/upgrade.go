package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"headgate/bench"
	"headgate/lab/traffic"
	"headgate/shaper"
	"headgate/shaper/htb"
	"headgate/shaper/htb/earlier"
	"headgate/unit"
)

// Of the issue.
var (
	packetsLost = bench.Target{Op: "<=", Value: 0, Unit: "packets"}
	wentBack    = bench.Target{Op: "<=", Value: 0, Unit: "counters"}
)

// What is sent meanwhile: 1 Gbit/s in two groups of a link that has room for it, so that nobody
// loses a packet to congestion.
const (
	upgradeLimit = 1500 * unit.Mbit
	upgradeTCP   = 900 * unit.Mbit
	upgradeUDP   = 100 * unit.Mbit
)

// Ours.
const (
	// upgradeSettles is for TCP to have its rate, upgradeEvery is between two steps, absent is how
	// long nobody is there.
	upgradeSettles, upgradeEvery, absent = 4 * time.Second, 3 * time.Second, 500 * time.Millisecond
	// upgradeSample is what losses are told apart by.
	upgradeSample = 100 * time.Millisecond
	// upgradeLeast is what part of 1 Gbit/s has to arrive.
	upgradeLeast = 0.9
)

func upgradeTimes(quick bool) int {
	if quick {
		return 1
	}
	return 5
}

func upgradeCases() []bench.Case {
	return []bench.Case{{
		Name: "upgrade",
		Claims: []bench.Claim{
			bench.NewClaim("upgrade/same-layout", "packets lost as the agent is killed and replaced", packetsLost),
			bench.NewClaim("upgrade/changed-layout", "the same, to a build of other tables and back", packetsLost),
			bench.NewClaim("upgrade/counters", "counters that went back", wentBack),
			bench.NewClaim("upgrade/rate", "sent meanwhile", bench.Target{Op: bench.Measured, Unit: "Mbit/s"}),
			bench.NewClaim("upgrade/undisturbed", "packets lost in as long a time with nothing done", bench.Target{Op: bench.Measured, Unit: "packets"}),
		},
		Takes: func(quick bool) time.Duration {
			return 15*time.Second + 3*time.Duration(upgradeTimes(quick))*upgradeEvery
		},
		Run: func(ctx context.Context, r *bench.Run) (err error) {
			p, err := build(ctx, 1)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, p.close()) }()
			e, err := p.enforce(ctx)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, e.close()) }()
			return e.upgrade(ctx, r.Sheet(bench.Ours), upgradeTimes(r.Quick))
		},
	}}
}

// upgrade replaces the agent so many times by the same build, and by another and back, under load.
func (e *enforcing) upgrade(ctx context.Context, sheet *bench.Sheet, n int) error {
	a := e.place.ask(e.place.controllers[0])
	defer a.client.CloseIdleConnections()
	groups := []map[string]any{{"name": "rest", "default": true}}
	for name, port := range map[string]int{"web": webPort, "db": dbPort} {
		groups = append(groups, map[string]any{"name": name, "guarantee": "30%", "match": []map[string]any{{"dport": []string{strconv.Itoa(port)}}}})
	}
	if _, err := a.must(ctx, http.MethodPut, e.path, map[string]any{"out": map[string]any{"limit": upgradeLimit.String(), "groups": groups}}); err != nil {
		return err
	}
	w := &whole{enforcing: e}
	if err := w.settled(ctx); err != nil {
		return err
	}
	steps := time.Duration(n) * upgradeEvery
	length := upgradeSettles + 4*steps + 10*time.Second
	session, err := traffic.Start(ctx, e.place.lab.Host, []traffic.Flow{
		{Name: "tcp", From: "host", To: "caller", Protocol: traffic.TCP, DstPort: dbPort, Schedule: traffic.Constant(upgradeTCP)},
		{Name: "udp", From: "host", To: "caller", Protocol: traffic.UDP, DstPort: webPort, Schedule: traffic.Constant(upgradeUDP)},
	}, traffic.Options{Duration: length, Interval: upgradeSample})
	if err != nil {
		return err
	}
	defer session.Stop()
	began := time.Now()
	time.Sleep(upgradeSettles)
	type span struct{ from, to time.Duration }
	spans := map[string]span{}
	for _, stage := range []struct {
		id   string
		step func(context.Context) error
		n    int
	}{
		{"upgrade/undisturbed", func(context.Context) error { return nil }, n},
		{"upgrade/same-layout", w.same, n},
		{"upgrade/changed-layout", w.changed, n},
	} {
		from := time.Since(began)
		for range stage.n {
			next := time.Now().Add(upgradeEvery)
			if err := stage.step(ctx); err != nil {
				return err
			}
			time.Sleep(time.Until(next))
			if err := w.settled(ctx); err != nil {
				return err
			}
		}
		spans[stage.id] = span{from, time.Since(began)}
	}
	session.Stop()
	result := session.Wait()
	var bits float64
	all := spans["upgrade/changed-layout"]
	for _, f := range result.Flows {
		if err := flowError(&f); err != nil {
			return err
		}
		bits += f.Between(upgradeSettles, all.to).DeliveredL2Bits
	}
	rate := bits / (all.to - upgradeSettles).Seconds()
	if err := loaded(rate); err != nil {
		return err
	}
	sheet.Set("upgrade/rate", rate/1e6)
	for id, s := range spans {
		var lost uint64
		for _, f := range result.Flows {
			sum := f.Between(s.from, s.to)
			lost += sum.Retransmits + sum.LostDatagrams
			sheet.Note(id, "%s: %d sent again, %d lost", f.Name, sum.Retransmits, sum.LostDatagrams)
		}
		sheet.Set(id, float64(lost))
	}
	sheet.Set("upgrade/counters", float64(w.back))
	return nil
}

// loaded refuses a run in which less was sent than losses are promised for.
func loaded(rate float64) error {
	if least := upgradeLeast * float64(upgradeTCP+upgradeUDP); rate < least {
		return fmt.Errorf("%.0f Mbit/s arrived, and %.0f are to: nothing is shown about losses under 1 Gbit/s", rate/1e6, least/1e6)
	}
	return nil
}

// whole is a host whose agent comes and goes.
type whole struct {
	*enforcing
	last *shaper.State
	back int // counters that went back
}

// same replaces the agent.
func (w *whole) same(ctx context.Context) error {
	w.kill()
	time.Sleep(absent)
	return w.start(ctx)
}

// changed has another build in the agent's place for a while: what it is there for is put in force by
// its programs and tables, and taken over from it.
func (w *whole) changed(ctx context.Context) error {
	w.kill()
	err := w.node.Do(func() error {
		return htb.AsEarlier(earlier.Object(), func() error {
			_, err := htb.New().Apply(w.last.Plan)
			return err
		})
	})
	if err != nil {
		return err
	}
	time.Sleep(absent)
	return w.start(ctx)
}

// settled waits until today's build is in force, and compares counters with those before.
func (w *whole) settled(ctx context.Context) error {
	for until := time.Now().Add(startPatience); ; time.Sleep(50 * time.Millisecond) {
		var state shaper.State
		err := w.node.Do(func() (err error) { state, err = htb.New().Observe(w.dev); return err })
		if err == nil && len(state.Drift) > 0 {
			err = fmt.Errorf("on %s there is another build, or less: %v", w.dev, state.Drift[0])
		}
		if err == nil && len(state.Out.Groups) != 3 {
			err = fmt.Errorf("there are %d groups", len(state.Out.Groups))
		}
		if err != nil {
			if time.Now().After(until) || ctx.Err() != nil {
				return fmt.Errorf("%w: %s", err, w.said)
			}
			continue
		}
		w.compare(state)
		return nil
	}
}

// compare counts what is less than before.
func (w *whole) compare(now shaper.State) {
	was := w.last
	w.last = &now
	if was == nil || len(was.Out.Groups) != len(now.Out.Groups) {
		return
	}
	less := func(a, b uint64) {
		if a < b {
			w.back++
		}
	}
	for i, g := range now.Out.Groups {
		before := was.Out.Groups[i]
		less(g.Bytes, before.Bytes)
		less(g.Packets, before.Packets)
		less(g.Drops, before.Drops)
		less(g.Marks, before.Marks)
	}
	for i, hits := range now.Out.RuleHits {
		less(hits, was.Out.RuleHits[i])
	}
}
