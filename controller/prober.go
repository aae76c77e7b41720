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

	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/internal/pki"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/schedule"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/unit"
)

// Values chosen for Headgate.
const (
	// advanceInterval is how often the prober checks whether a needed agent has connected.
	advanceInterval = 500 * time.Millisecond
	// serveTimeout is how long an agent may take to start the measurement server.
	serveTimeout = 5 * time.Second
)

// prober advances running measurements whose hosts' agents are connected to this controller. The
// progress of a measurement is in the store, so any controller can take its next step.
type prober struct {
	hub *hub
	key func(id string) ([]byte, error)
	// nominal returns the rate that the network is said to have between two addresses, 0 if it does not know them.
	nominal func(from, to string) unit.Rate
	wake    chan struct{}

	mu      sync.Mutex
	started map[step]store.ProbeRun
}

// step is one step of a measurement, which each controller starts once.
type step struct{ id, what string }

const findClientStep, startServerStep, measureStep = "find client", "start server", "measure"

func newProber(h *hub, a *pki.Authority, nominal func(from, to string) unit.Rate) *prober {
	return &prober{hub: h, nominal: nominal, wake: make(chan struct{}, 1), started: map[step]store.ProbeRun{}, key: func(id string) ([]byte, error) {
		// Only the controllers have the authority's key, so each can derive the key of a measurement.
		return hkdf.Key(sha256.New, a.Key, nil, "headgate probe "+id, 32)
	}}
}

// run advances running measurements until ctx ends.
func (p *prober) run(ctx context.Context) {
	tick := time.NewTicker(advanceInterval)
	defer tick.Stop()
	for {
		runs := p.hub.cache.runs()
		for _, r := range runs {
			p.advance(ctx, r)
		}
		p.forgetEnded(runs)
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-tick.C:
		}
	}
}

// advance starts the next step of a measurement, if the agent for that step is connected here.
func (p *prober) advance(ctx context.Context, r store.ProbeRun) {
	from, to := p.hub.link(r.From), p.hub.link(r.To)
	switch {
	case r.Client == "" && from != nil:
		p.startOnce(step{r.ID, findClientStep}, r, func() { p.storeClientAddress(ctx, r, from) })
	case r.Client != "" && r.Server == "" && to != nil:
		p.startOnce(step{r.ID, startServerStep}, r, func() { p.startServer(ctx, r, to) })
	case r.Server != "" && from != nil:
		p.startOnce(step{r.ID, measureStep}, r, func() { p.startMeasurement(ctx, r, from) })
	}
}

func (p *prober) startOnce(s step, r store.ProbeRun, do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, begun := p.started[s]; !begun {
		p.started[s] = r
		go do()
	}
}

// forgetEnded forgets measurements that have ended, and stops their measurement servers.
func (p *prober) forgetEnded(runs map[string]store.ProbeRun) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s, r := range p.started {
		if _, goesOn := runs[s.id]; goesOn {
			continue
		}
		delete(p.started, s)
		if l := p.hub.link(r.To); s.what == startServerStep && l != nil {
			l.trySend(agents.To(&agents.ProbeServe{Id: r.ID}))
		}
	}
}

// storeClientAddress stores the address of the measuring host, which shows that its agent is connected.
func (p *prober) storeClientAddress(ctx context.Context, r store.ProbeRun, l *link) {
	at, err := probeAddress(l, r.FromAt)
	if err != nil {
		p.end(ctx, r, failedOutcome(err))
		return
	}
	p.updateRun(ctx, r, func(now *store.ProbeRun) error {
		now.Client = at.Host
		return nil
	})
}

// probeAddress returns the address of a host for measurements: the configured one, or that of its agent.
func probeAddress(l *link, said string) (probe.Address, error) {
	if !l.hello.Probes {
		return probe.Address{}, fmt.Errorf("the agent of %s has version %s, which does not support scheduled measurements: upgrade the agent", l.host, l.hello.Version)
	}
	return probe.ParseAddress(cmp.Or(said, l.address))
}

// startServer starts the measurement server on the peer.
func (p *prober) startServer(ctx context.Context, r store.ProbeRun, l *link) {
	at, err := probeAddress(l, r.ToAt)
	var key []byte
	if err == nil {
		key, err = p.key(r.ID)
	}
	if err != nil {
		p.end(ctx, r, failedOutcome(err))
		return
	}
	a, err := query[*agents.ProbeServing](ctx, l, serveTimeout, &agents.ProbeServe{
		Id: r.ID, Key: key, Address: at.String(), Client: r.Client, Bytes: uint64(r.Bytes), TimeNs: int64(r.Time)})
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	if err != nil {
		p.end(ctx, r, failedOutcome(fmt.Errorf("cannot start the measurement server on %s: %w", r.To, err)))
		return
	}
	p.updateRun(ctx, r, func(now *store.ProbeRun) error {
		now.Server = net.JoinHostPort(at.Host, strconv.Itoa(int(a.Port)))
		now.ServerEnd = endOf(a.End)
		return nil
	})
}

// errAgentDisconnected means that the agent was asked to measure before, and that the stream of that request has
// ended.
var errAgentDisconnected = errors.New("the agent disconnected during the measurement")

// startMeasurement asks the agent to measure, once. If the agent was asked before, the earlier attempt
// ended with the stream of that request.
func (p *prober) startMeasurement(ctx context.Context, r store.ProbeRun, l *link) {
	err := p.updateRun(ctx, r, func(now *store.ProbeRun) error {
		if now.Started {
			return errAgentDisconnected
		}
		now.Started = true
		return nil
	})
	if errors.Is(err, errAgentDisconnected) {
		p.end(ctx, r, unansweredOutcome(r, err))
	}
	var key []byte
	if err == nil {
		key, err = p.key(r.ID)
	}
	if err != nil {
		return // the leader ends the measurement at its timeout
	}
	longest := schedule.MaxDuration(r.Time)
	a, err := query[*agents.ProbeAnswer](ctx, l, longest, &agents.ProbeQuery{
		Id: r.ID, Measure: r.Measure, Peer: r.Server, Key: key, Bytes: uint64(r.Bytes), TimeNs: int64(r.Time), NominalBps: uint64(p.nominal(r.Client, r.Server))})
	switch {
	case ctx.Err() != nil: // the controller of the agent's next stream ends the measurement
	case err != nil:
		p.end(ctx, r, unansweredOutcome(r, err))
	default:
		p.end(ctx, r, reportedOutcome(r, a))
	}
}

// updateRun updates a measurement in the store, if the measurement has not ended.
func (p *prober) updateRun(ctx context.Context, r store.ProbeRun, change func(*store.ProbeRun) error) error {
	key := store.RunKey(r.ID)
	_, err := p.hub.store.Do(ctx, key, func(tx *store.Tx) error {
		var now store.ProbeRun
		if _, ok, err := tx.Get(key, &now); err != nil {
			return err
		} else if !ok {
			return errEnded
		}
		if err := change(&now); err != nil {
			return err
		}
		return tx.Put(key, now)
	})
	if err != nil && !errors.Is(err, errEnded) && !errors.Is(err, errAgentDisconnected) && ctx.Err() == nil {
		slog.Warn("cannot update measurement", "from", r.From, "to", r.To, "error", err)
	}
	return err
}

// errEnded means that the measurement has ended meanwhile.
var errEnded = errors.New("the measurement has ended")

// endOf converts an agent's description of its end of a path.
func endOf(e *agents.ProbeEnd) store.ProbeEnd {
	return store.ProbeEnd{Devices: e.GetDevices(), Out: unit.Rate(e.GetOutBps()), In: unit.Rate(e.GetInBps())}
}
