package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/htb"
	"headgate.dev/headgate/shaper/htb/earlier"
	"headgate.dev/headgate/unit"
)

// Targets.
var (
	packetsLost = bench.Target{Op: "<=", Value: 0, Unit: "packets"}
	wentBack    = bench.Target{Op: "<=", Value: 0, Unit: "counters"}
)

// The traffic: 1 Gbit/s in two groups of a faster link, so that no packet is lost to congestion.
const (
	upgradeLimit = 1500 * unit.Mbit
	upgradeTCP   = 900 * unit.Mbit
	upgradeUDP   = 100 * unit.Mbit
)

// Chosen by this project.
const (
	// upgradeSettles is the time for TCP to reach its rate, upgradeEvery is the time between two
	// steps, absent is how long there is no agent. After upgradeArrives all sent packets have arrived.
	upgradeSettles, upgradeEvery, absent, upgradeArrives = 4 * time.Second, 3 * time.Second, 500 * time.Millisecond, time.Second
	// upgradeSample is the resolution of losses in time.
	upgradeSample = 100 * time.Millisecond
	// upgradeBuffer holds a second of the datagrams: a receiver that stalls loses none.
	upgradeBuffer = 32 << 20
	// minArrived is the minimum part of 1 Gbit/s that has to arrive.
	minArrived = 0.9
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
			bench.NewClaim("upgrade/same-layout", "lost packets when the agent is killed and replaced", packetsLost),
			bench.NewClaim("upgrade/changed-layout", "lost packets when the agent is replaced by a build with another map layout and back", packetsLost),
			bench.NewClaim("upgrade/counters", "counters that decreased", wentBack),
			bench.NewClaim("upgrade/rate", "rate during the upgrades", bench.Target{Op: bench.Measured, Unit: "Mbit/s"}),
			bench.NewClaim("upgrade/undisturbed", "lost packets in the same time without an upgrade", bench.Target{Op: bench.Measured, Unit: "packets"}),
			bench.NewClaim("upgrade/sent-again", "retransmitted TCP segments, lost or not", bench.Target{Op: bench.Measured, Unit: "packets"}),
		},
		Takes: func(quick bool) time.Duration {
			return 30*time.Second + 3*time.Duration(upgradeTimes(quick))*upgradeEvery
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

// upgrade replaces the agent by the same build, and by another and back, under load.
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
	session, err := traffic.Start(ctx, e.place.lab.Host, []traffic.Flow{
		{Name: "tcp", From: "host", To: "caller", Protocol: traffic.TCP, DstPort: dbPort},
		{Name: "udp", From: "host", To: "caller", Protocol: traffic.UDP, DstPort: webPort, ReceiveBuffer: upgradeBuffer},
	}, traffic.Options{Interval: upgradeSample})
	if err != nil {
		return err
	}
	defer session.Stop()
	send := func(tcp, udp unit.Rate) error {
		return errors.Join(session.SetRate("tcp", tcp), session.SetRate("udp", udp))
	}
	began := time.Now()
	var spans []span
	for _, stage := range []struct {
		id   string
		step func(context.Context) error
	}{
		{"upgrade/undisturbed", func(context.Context) error { return nil }},
		{"upgrade/same-layout", w.same},
		{"upgrade/changed-layout", w.changed},
	} {
		s := span{id: stage.id, from: time.Since(began)}
		if err := send(upgradeTCP, upgradeUDP); err != nil {
			return err
		}
		time.Sleep(upgradeSettles)
		s.settled = time.Since(began)
		for range n {
			next := time.Now().Add(upgradeEvery)
			if err := stage.step(ctx); err != nil {
				return err
			}
			time.Sleep(time.Until(next))
			if err := w.settled(ctx); err != nil {
				return err
			}
		}
		s.to = time.Since(began)
		if err := send(0, 0); err != nil {
			return err
		}
		time.Sleep(upgradeArrives)
		s.arrived = time.Since(began)
		spans = append(spans, s)
	}
	session.Stop()
	sheet.Set("upgrade/counters", float64(w.back))
	return setLosses(sheet, session.Wait().Flows, spans)
}

// span is a stage of the traffic, in time since the flows' start: at both ends all sent packets have
// arrived.
type span struct {
	id                         string
	from, settled, to, arrived time.Duration
}

// lost returns how many packets of a flow were sent in the stage and never arrived, for TCP by the
// kernel's counters of segments at both ends. A retransmitted segment was not necessarily lost: TCP
// guesses, and a stall of the machine makes it guess wrong.
func (s span) lost(f *traffic.FlowResult) uint64 {
	// Nothing is sent at the times of the samples at its ends.
	before, now := f.Between(0, s.from-2*upgradeSample), s.of(f)
	return uint64(now.MissingSegments-before.MissingSegments) + now.LostDatagrams
}

// of returns the traffic of the stage.
func (s span) of(f *traffic.FlowResult) traffic.Interval {
	return f.Between(s.from-2*upgradeSample, s.arrived-2*upgradeSample)
}

// setLosses sets the values of the losses.
func setLosses(sheet *bench.Sheet, flows []traffic.FlowResult, spans []span) error {
	var bits, seconds float64
	var again uint64
	lost := map[string]uint64{}
	for n := range flows {
		f := &flows[n]
		if err := flowError(f); err != nil {
			return err
		}
		for _, s := range spans {
			sum, under := s.of(f), f.Between(s.settled, s.to)
			bits, seconds = bits+under.DeliveredL2Bits, seconds+under.Seconds/float64(len(flows))
			again += sum.Retransmits
			lost[s.id] += s.lost(f)
			sheet.Note(s.id, "%s: %d lost; %d retransmitted, of which %d arrived twice", f.Name, s.lost(f), sum.Retransmits, sum.Duplicates)
		}
	}
	if err := loaded(bits / seconds); err != nil {
		return err
	}
	for id, n := range lost {
		sheet.Set(id, float64(n))
	}
	sheet.Set("upgrade/rate", bits/seconds/1e6)
	sheet.Set("upgrade/sent-again", float64(again))
	return nil
}

// loaded returns an error for a run with less traffic than the target requires.
func loaded(rate float64) error {
	if minRate := minArrived * float64(upgradeTCP+upgradeUDP); rate < minRate {
		return fmt.Errorf("%.0f Mbit/s arrived, want %.0f: the losses are not those under 1 Gbit/s", rate/1e6, minRate/1e6)
	}
	return nil
}

// whole is a host whose agent is replaced.
type whole struct {
	*enforcing
	last *shaper.State
	back int // counters that decreased
}

// same replaces the agent.
func (w *whole) same(ctx context.Context) error {
	w.kill()
	time.Sleep(absent)
	return w.start(ctx)
}

// changed replaces the agent with another build for a while: that build's programs and tables take
// over the shaping, and are taken over again.
func (w *whole) changed(ctx context.Context) error {
	w.kill()
	err := w.node.Do(func() error {
		return htb.WithEarlierObject(earlier.Object(), func() error {
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

// settled waits until the current build is in force, and compares counters with those before.
func (w *whole) settled(ctx context.Context) error {
	for until := time.Now().Add(startPatience); ; time.Sleep(50 * time.Millisecond) {
		var state shaper.State
		err := w.node.Do(func() (err error) { state, err = htb.New().Observe(w.dev); return err })
		if err == nil && len(state.Drift) > 0 {
			err = fmt.Errorf("%s has the shaping of another build: %v", w.dev, state.Drift[0])
		}
		if err == nil && len(state.Out.Groups) != 3 {
			err = fmt.Errorf("found %d groups", len(state.Out.Groups))
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

// compare counts counters that have decreased.
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
