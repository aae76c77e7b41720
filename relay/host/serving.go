package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"headgate.dev/headgate/internal/listen"
)

// serving is what an agent accepts connections and streams with, and what carries them. After another process has
// taken over, it carries the connections that it has until their end.
type serving struct {
	agent     *Agent
	apps      *applications
	acceptor  *Acceptor
	dialers   []carrier
	listeners []net.Listener
	accept    []func() error // serve the listeners
	end       context.CancelFunc
	metrics   net.Listener
	failed    chan error
	running   sync.WaitGroup // the dialers, and what announces the agent to a network
	accepting sync.WaitGroup
	taking    sync.WaitGroup // the interception
	// endInterception ends what takes connections in the kernel; it stays there if keepInterception is set, because another process goes on.
	endInterception  context.CancelFunc
	keepInterception atomic.Bool
	stopMetrics      func() error
}

// open opens the listeners and the streams. accepting begins with start.
func (a *Agent) open(ctx context.Context, auth *Auth) (s *serving, err error) {
	p, log := a.policy, a.log
	ctx, end := context.WithCancel(ctx)
	s = &serving{
		agent: a, apps: &applications{ctx: ctx}, end: end, failed: make(chan error, 1), endInterception: func() {}, stopMetrics: func() error { return nil },
		acceptor: &Acceptor{Auth: auth, Options: windows, Accept: p.Accept, Log: log, Ended: a.ended},
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	add := func(l net.Listener, serve func() error) {
		s.listeners, s.accept = append(s.listeners, l), append(s.accept, serve)
	}
	for _, address := range p.Accept.Addresses() {
		l, err := a.sockets.listen(ctx, "tcp", address, prepare)
		if err != nil {
			return s, fmt.Errorf("cannot accept streams: %w", listen.Remedy(err, "listen in accept"))
		}
		add(l, func() error { return s.acceptor.Serve(l) })
	}
	for _, e := range p.Exits {
		var one carrier
		if e.SOS != nil {
			one = &sosDialer{ctx: ctx, auth: auth, exit: e, log: log}
		} else {
			d := NewDialer(auth, e, windows)
			d.Log, d.Ended = log, a.ended
			one = d
		}
		s.dialers = append(s.dialers, one)
		s.running.Go(func() { one.Run(ctx) })
	}
	for _, f := range p.Forwards {
		l, err := a.sockets.listen(ctx, "tcp", f.Listen, nil)
		if err != nil {
			return s, fmt.Errorf("cannot accept connections: %w", listen.Remedy(err, "listen in forward"))
		}
		exit := func() carrier {
			if n := (exits{p, s.dialers}).of(f.To.Addr()); n >= 0 {
				return s.dialers[n]
			}
			return nil
		}
		add(l, func() error { return forward(s.apps, l, exit, f.To, log) })
	}
	asked, err := listenExplicit(s.apps, &a.sockets, p, s.dialers, log)
	if err != nil {
		return s, err
	}
	for _, one := range asked {
		add(one.Listener, one.serve)
	}
	if len(p.Take) > 0 {
		taking, err := listenTransparent(ctx, &a.sockets)
		if err != nil {
			return s, err
		}
		t := &taker{policy: p, dialers: s.dialers, apps: s.apps, log: log}
		for _, l := range taking {
			add(l, func() error { return t.serve(l) })
		}
	}
	if a.Metrics.Address != "" {
		l, err := a.sockets.listen(ctx, "tcp", a.Metrics.Address, nil)
		if err != nil {
			return s, fmt.Errorf("cannot serve metrics: %w", listen.Remedy(err, "--metrics"))
		}
		s.metrics, s.listeners = l, append(s.listeners, l)
	}
	return s, nil
}

// dials returns the dialers that use the product's scheme.
func (s *serving) dials() (all []*Dialer) {
	for _, one := range s.dialers {
		if d, ok := one.(*Dialer); ok {
			all = append(all, d)
		}
	}
	return all
}

// start begins to accept connections and streams.
func (s *serving) start() {
	fail := func(err error) {
		if err == nil || errors.Is(err, net.ErrClosed) {
			return
		}
		select {
		case s.failed <- err:
		default:
		}
	}
	for _, accept := range s.accept {
		s.accepting.Go(func() { fail(accept()) })
	}
	if s.metrics != nil {
		s.stopMetrics = s.agent.Metrics.Serve(s.metrics)
	}
	if n := s.agent.network; n != nil {
		s.running.Go(func() { fail(n.run(s.apps.ctx, s.dialers, s.keepInterception.Load)) })
	}
	if p := s.agent.policy; intercepts(p) {
		var ctx context.Context
		ctx, s.endInterception = context.WithCancel(s.apps.ctx)
		s.taking.Go(func() { fail(intercept(ctx, p, s.dialers, s.agent.log, s.keepInterception.Load)) })
	}
}

// stop ends accepting, for another process that accepts instead.
func (s *serving) stop() {
	s.keepInterception.Store(true)
	s.endInterception()
	s.taking.Wait()
	s.closeListeners()
	s.acceptor.goAway()
}

func (s *serving) closeListeners() {
	_ = s.stopMetrics()
	for _, l := range s.listeners {
		l.Close()
	}
}

// drain returns when the last connection has ended, after stop.
func (s *serving) drain() {
	s.accepting.Wait()
	s.apps.Wait()
	for _, d := range s.dialers {
		d.drain()
	}
	s.acceptor.drain(s.apps.ctx)
}

// close ends all connections.
func (s *serving) close() {
	s.endInterception()
	s.taking.Wait() // while there still is a listener for what is taken
	s.closeListeners()
	s.end()
	s.acceptor.Close()
	s.accepting.Wait()
	s.running.Wait()
}

// awaitStreams returns when there are streams to all exits, and their announcements, or after a time.
func (s *serving) awaitStreams(ctx context.Context, within time.Duration) {
	end := time.Now().Add(within)
	for n, d := range s.dialers {
		announced := s.agent.policy.Exits[n].Announced
		for (d.Streams() == 0 || announced && d.Announced() == nil) && ctx.Err() == nil && time.Now().Before(end) {
			time.Sleep(10 * time.Millisecond)
		}
	}
}
