package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/unit"
)

// Chosen by this project: the load while changes are timed.
const (
	// others is the number of agents besides the enforcing one: 100 in all.
	others = 99
	// otherChanges is the number of changes a second on their hosts.
	otherChanges = 20
)

func changeCases(d *bench.Draw) []bench.Case {
	drawn := d.For("change")
	return []bench.Case{{
		Name: "change",
		Claims: []bench.Claim{
			bench.NewClaim("change/p50", "time from the request to the new rate in the kernel, median", changeP50),
			bench.NewClaim("change/p99", "99 of 100", changeP99),
			bench.NewClaim("change/timed", "timed changes", measured),
		},
		Takes: func(quick bool) time.Duration { return 20*time.Second + time.Duration(timed(quick))*changeEvery },
		Run: func(ctx context.Context, r *bench.Run) (err error) {
			p, err := build(ctx, 1)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, p.close()) }()
			f, err := p.provision(ctx, others, groupsEach, r.Say)
			if err != nil {
				return err
			}
			defer f.stop()
			if err := f.start(ctx); err != nil {
				return err
			}
			e, err := p.enforce(ctx)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, e.close()) }()
			if _, err := p.connected(ctx, others+1, 30*time.Second); err != nil {
				return err
			}
			loading, unload := context.WithCancel(ctx)
			loaded := make(chan error, 1)
			pick := func() string { return f.hosts[drawn.Int(0, len(f.hosts)-1)] }
			go func() { loaded <- p.load(loading, pick) }()
			took, err := e.changes(ctx, timed(r.Quick))
			unload()
			if err := errors.Join(err, <-loaded); err != nil {
				return err
			}
			sheet := r.Sheet(bench.Ours)
			sheet.Set("change/p50", took.at(0.5))
			sheet.Set("change/p99", took.at(0.99))
			sheet.Set("change/timed", float64(took.count()))
			return nil
		},
	}}
}

// changeEvery is the time between two changes.
const changeEvery = 100 * time.Millisecond

func timed(quick bool) int {
	if quick {
		return 100
	}
	return 400
}

// load continuously changes groups of other hosts, until ctx ends.
func (p *place) load(ctx context.Context, pick func() string) error {
	a := p.ask(p.controllers[0])
	defer a.client.CloseIdleConnections()
	tick := time.NewTicker(time.Second / otherChanges)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		body := map[string]any{"guarantee": (unit.Rate(5+n%10) * unit.Mbit).String()}
		_, err := a.must(ctx, http.MethodPatch, fmt.Sprintf("/v1/hosts/%s/interfaces/eth0/out/groups/g%d", pick(), 1+n%(groupsEach-1)), body)
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// enforcing is a host whose agent enforces, on the device that leads to the router.
type enforcing struct {
	place *place
	node  *lab.Node
	agent *lab.Cmd
	said  *bench.Tail
	dir   string // of the agent
	dev   string // of its interface
	path  string // of the interface in the API
}

// enforce starts it, with some groups and additional ones of the caller.
func (p *place) enforce(ctx context.Context, more ...map[string]any) (_ *enforcing, err error) {
	e := &enforcing{place: p, node: p.lab.Node("host"), said: &bench.Tail{Keep: keptOutput}}
	if e.dev, err = e.node.Device("router"); err != nil {
		return nil, err
	}
	a := p.ask(p.controllers[0])
	defer a.client.CloseIdleConnections()
	e.path = "/v1/hosts/host/interfaces/" + e.dev
	if _, err := a.must(ctx, http.MethodPut, "/v1/hosts/host", map[string]any{}); err != nil {
		return nil, err
	}
	groups := append(more,
		map[string]any{"name": "web", "guarantee": "20Mbit", "match": []map[string]any{{"dport": []string{"443"}}}},
		map[string]any{"name": "db", "guarantee": "30%", "match": []map[string]any{{"dport": []string{"5432"}}}},
		map[string]any{"name": "rest", "default": true})
	if _, err := a.must(ctx, http.MethodPut, e.path, map[string]any{"out": map[string]any{"limit": "1Gbit", "groups": groups}}); err != nil {
		return nil, err
	}
	if e.dir, err = p.join(ctx, a, "host"); err != nil {
		return nil, err
	}
	return e, e.start(ctx)
}

// start starts the agent, without the machine's socket.
func (e *enforcing) start(ctx context.Context) (err error) {
	if e.agent, err = command(context.WithoutCancel(ctx), e.node, "agent", "--dir", e.dir, "--socket", "", "--log-level", "warn"); err != nil {
		return err
	}
	e.agent.Stderr = e.said
	return e.agent.Start()
}

// kill kills the agent.
func (e *enforcing) kill() {
	_ = e.agent.Process.Kill()
	_ = e.agent.Wait()
}

func (e *enforcing) close() error {
	_ = e.agent.Process.Signal(syscall.SIGTERM)
	_ = e.agent.Wait()
	return nil
}

// changes measures the times of changes: the guarantee of web alternates between two rates.
func (e *enforcing) changes(ctx context.Context, n int) (*times, error) {
	heard, err := listen(e.node)
	if err != nil {
		return nil, err
	}
	defer heard.close()
	a := e.place.ask(e.place.controllers[0])
	defer a.client.CloseIdleConnections()
	rates := []unit.Rate{200 * unit.Mbit, 300 * unit.Mbit}
	took := &times{}
	for i := range n {
		rate := rates[i%2]
		began := time.Now()
		if _, err := a.must(ctx, http.MethodPatch, e.path+"/out/groups/web", map[string]any{"guarantee": rate.String()}); err != nil {
			return nil, err
		}
		at, err := heard.rate(rate, began.Add(10*time.Second))
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, e.said)
		}
		if i > 0 { // before the first is the agent's first plan
			took.add(at.Sub(began))
		}
		time.Sleep(time.Until(began.Add(changeEvery)))
	}
	return took, nil
}

// listening receives the kernel's notifications of traffic control in a namespace.
type listening struct{ conn *netlink.Conn }

func listen(node *lab.Node) (*listening, error) {
	l := &listening{}
	err := node.Do(func() (err error) {
		l.conn, err = netlink.Dial(unix.NETLINK_ROUTE, &netlink.Config{Groups: 1 << (unix.RTNLGRP_TC - 1)})
		return err
	})
	return l, err
}

func (l *listening) close() { l.conn.Close() }

// rate waits until a class has a rate, within 2 %, and returns the time of the notification. An engine
// gives its classes a little less than the total of the guarantees, which is the link's rate.
func (l *listening) rate(want unit.Rate, until time.Time) (time.Time, error) {
	if err := l.conn.SetReadDeadline(until); err != nil {
		return time.Time{}, err
	}
	for {
		messages, err := l.conn.Receive()
		now := time.Now()
		if err != nil {
			return now, fmt.Errorf("no class has %v within %v: %w", want, 10*time.Second, err)
		}
		for _, m := range messages {
			if m.Header.Type != unix.RTM_NEWTCLASS {
				continue
			}
			o, err := nl.ParseObject(m.Data)
			if err != nil {
				return now, err
			}
			class, err := o.HTBClass()
			if err != nil {
				return now, err
			}
			if got := 8 * float64(class.Rate); got > float64(want)*0.98 && got < float64(want)*1.02 {
				return now, nil
			}
		}
	}
}
