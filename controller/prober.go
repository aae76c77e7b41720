package controller

import (
	"cmp"
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"headgate/api/agents"
	"headgate/internal/pki"
	"headgate/probe"
	"headgate/probe/schedule"
	"headgate/store"
	"headgate/unit"
)

// Ours.
const (
	// carryEvery is how often it is looked for agents that have come meanwhile.
	carryEvery = 500 * time.Millisecond
	// servePatience is how long an agent may take until it lets another one measure.
	servePatience = 5 * time.Second
)

// prober carries on the measurements that are under way, as far as the agents of their hosts are
// connected to this controller: what one controller has done the others see in the store, and so
// the next step may be any one's.
type prober struct {
	hub  *hub
	key  func(id string) ([]byte, error)
	kick chan struct{}

	mu    sync.Mutex
	begun map[step]store.ProbeRun
}

// step is one of a measurement, which a controller tries once.
type step struct{ id, what string }

const findClient, letServe, haveMeasure = "find the client", "let it be served", "have it measured"

func newProber(h *hub, a *pki.Authority) *prober {
	return &prober{hub: h, kick: make(chan struct{}, 1), begun: map[step]store.ProbeRun{}, key: func(id string) ([]byte, error) {
		// All controllers have the authority, and nobody else: the key of a measurement need not be kept.
		return hkdf.Key(sha256.New, a.Key, nil, "headgate probe "+id, 32)
	}}
}

// run looks after them until ctx ends.
func (p *prober) run(ctx context.Context) {
	tick := time.NewTicker(carryEvery)
	defer tick.Stop()
	for {
		runs := p.hub.cache.runs()
		for _, r := range runs {
			p.carry(ctx, r)
		}
		p.over(runs)
		select {
		case <-ctx.Done():
			return
		case <-p.kick:
		case <-tick.C:
		}
	}
}

// carry does the next step of a measurement, if it is this controller's to do.
func (p *prober) carry(ctx context.Context, r store.ProbeRun) {
	from, to := p.hub.link(r.From), p.hub.link(r.To)
	switch {
	case r.Client == "" && from != nil:
		p.once(step{r.ID, findClient}, r, func() { p.findClient(ctx, r, from) })
	case r.Client != "" && r.Server == "" && to != nil:
		p.once(step{r.ID, letServe}, r, func() { p.letServe(ctx, r, to) })
	case r.Server != "" && from != nil:
		p.once(step{r.ID, haveMeasure}, r, func() { p.haveMeasure(ctx, r, from) })
	}
}

func (p *prober) once(s step, r store.ProbeRun, do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, begun := p.begun[s]; !begun {
		p.begun[s] = r
		go do()
	}
}

// over forgets measurements that are over. An agent that lets one be made needs no longer do so.
func (p *prober) over(runs map[string]store.ProbeRun) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s, r := range p.begun {
		if _, goesOn := runs[s.id]; goesOn {
			continue
		}
		delete(p.begun, s)
		if l := p.hub.link(r.To); s.what == letServe && l != nil {
			l.tell(&agents.ToAgent{Message: &agents.ToAgent_Serve{Serve: &agents.ProbeServe{Id: r.ID}}})
		}
	}
}

// findClient notes that the host that measures is there, and where it comes from.
func (p *prober) findClient(ctx context.Context, r store.ProbeRun, l *link) {
	at, err := where(l, r.FromAt)
	if err != nil {
		p.end(ctx, r, failed(err))
		return
	}
	p.note(ctx, r, func(now *store.ProbeRun) error {
		now.Client = at.Host
		return nil
	})
}

// where is a host's address for measurements.
func where(l *link, said string) (probe.Address, error) {
	if !l.hello.Probes {
		return probe.Address{}, fmt.Errorf("the agent of %s has the version %s, which knows of no schedule: upgrade it", l.host, l.hello.Version)
	}
	return probe.ParseAddress(cmp.Or(said, l.at))
}

// letServe has the other host let it measure.
func (p *prober) letServe(ctx context.Context, r store.ProbeRun, l *link) {
	at, err := where(l, r.ToAt)
	var key []byte
	if err == nil {
		key, err = p.key(r.ID)
	}
	if err != nil {
		p.end(ctx, r, failed(err))
		return
	}
	m, err := l.have(ctx, servePatience, serving(r.ID), &agents.ToAgent{Message: &agents.ToAgent_Serve{Serve: &agents.ProbeServe{
		Id: r.ID, Key: key, Address: at.String(), Client: r.Client, Bytes: uint64(r.Bytes), TimeNs: int64(r.Time)}}})
	a := m.GetServing()
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	if err != nil {
		p.end(ctx, r, failed(fmt.Errorf("%s does not let it be measured: %w", r.To, err)))
		return
	}
	p.note(ctx, r, func(now *store.ProbeRun) error {
		now.Server = net.JoinHostPort(at.Host, strconv.Itoa(int(a.Port)))
		now.ServerEnd = endOf(a.End)
		return nil
	})
}

// errAsked is that the host was asked to measure already.
var errAsked = errors.New("its agent was lost while it measured")

// haveMeasure has the host measure, once: if it was asked before, what it did has ended with the stream
// on which it was asked.
func (p *prober) haveMeasure(ctx context.Context, r store.ProbeRun, l *link) {
	err := p.note(ctx, r, func(now *store.ProbeRun) error {
		if now.Asked {
			return errAsked
		}
		now.Asked = true
		return nil
	})
	if errors.Is(err, errAsked) {
		p.end(ctx, r, lost(r, err))
	}
	var key []byte
	if err == nil {
		key, err = p.key(r.ID)
	}
	if err != nil {
		return // the leader ends it when its time is over
	}
	longest := (&schedule.Schedule{Time: r.Time}).Longest()
	m, err := l.have(ctx, longest, measured(r.ID), &agents.ToAgent{Message: &agents.ToAgent_Probe{Probe: &agents.ProbeQuestion{
		Id: r.ID, Measure: r.Measure, Peer: r.Server, Key: key, Bytes: uint64(r.Bytes), TimeNs: int64(r.Time)}}})
	switch {
	case ctx.Err() != nil: // another controller is told by the agent's next stream
	case err != nil:
		p.end(ctx, r, lost(r, err))
	default:
		p.end(ctx, r, told(r, m.GetProbe()))
	}
}

// note changes what is known of a measurement, if it goes on.
func (p *prober) note(ctx context.Context, r store.ProbeRun, change func(*store.ProbeRun) error) error {
	key := store.RunKey(r.ID)
	_, err := p.hub.store.Do(ctx, key, func(tx *store.Tx) error {
		var now store.ProbeRun
		if _, ok, err := tx.Get(key, &now); err != nil {
			return err
		} else if !ok {
			return errOver
		}
		if err := change(&now); err != nil {
			return err
		}
		return tx.Put(key, now)
	})
	if err != nil && !errors.Is(err, errOver) && !errors.Is(err, errAsked) && ctx.Err() == nil {
		slog.Warn("a measurement cannot go on", "from", r.From, "to", r.To, "error", err)
	}
	return err
}

// errOver is that a measurement was ended meanwhile.
var errOver = errors.New("the measurement is over")

// endOf is what an agent knows of its end of a path.
func endOf(e *agents.ProbeEnd) store.ProbeEnd {
	return store.ProbeEnd{Devices: e.GetDevices(), Out: unit.Rate(e.GetOutBps()), In: unit.Rate(e.GetInBps())}
}

// What an agent is heard about.
func measured(id string) string { return "measured " + id }
func serving(id string) string  { return "serving " + id }

// hear gives what an agent says to who waits for it.
func (l *link) hear(about string, m *agents.FromAgent) {
	select {
	case l.heard[about] <- m: // never if nobody waits: there is no channel then
	default:
	}
}

// have tells an agent something, and waits for what it says about it.
func (l *link) have(ctx context.Context, patience time.Duration, about string, m *agents.ToAgent) (*agents.FromAgent, error) {
	heard := make(chan *agents.FromAgent, 1)
	l.mu.Lock()
	l.heard[about] = heard
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.heard, about)
		l.mu.Unlock()
	}()
	late := time.NewTimer(patience)
	defer late.Stop()
	out := l.out
	for {
		select {
		case out <- m:
			out = nil // it is told once
		case a := <-heard:
			return a, nil
		case <-l.gone:
			return nil, fmt.Errorf("the agent of %s has gone", l.host)
		case <-late.C:
			return nil, fmt.Errorf("the agent of %s does not answer", l.host)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
