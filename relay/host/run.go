package host

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"headgate.dev/headgate/internal/sdnotify"
	"headgate.dev/headgate/relay"
)

// carrier carries connections to an exit.
type carrier interface {
	// Run keeps the streams open until ctx ends.
	Run(ctx context.Context)
	// Streams returns how many streams are open: without any, connections go direct.
	Streams() int
	// RTT returns the shortest round-trip time of the open streams, 0 if it is unknown.
	RTT() time.Duration
	// Announced returns the destinations that the exit has announced, none while no stream is open.
	Announced() []netip.Prefix
	// Carry carries an application's connection to a destination.
	Carry(app net.Conn, to netip.AddrPort) error
	// Connect connects a client to a destination, and returns when the exit has connected. A refusal is the exit's
	// error.
	Connect(ctx context.Context, from, to netip.AddrPort) (outlet, error)
	// drain returns when the last connection has ended. The caller opens no further ones.
	drain()
}

// Run runs an agent until ctx ends. ready is called when all listeners are open.
func Run(ctx context.Context, p relay.Policy, auth *Auth, log *slog.Logger, ready func()) error {
	return NewAgent(p, log).Run(ctx, auth, ready)
}

// Run runs the agent until ctx ends, or until another process has taken over and the last connection has ended. ready is
// called when connections are accepted.
func (a *Agent) Run(ctx context.Context, auth *Auth, ready func()) error {
	if a.Upgrade == nil {
		a.Upgrade = &Upgrade{Notify: func(string) {}}
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &runner{Agent: a, auth: auth, starting: make(chan succession), drained: make(chan *serving), ended: make(chan bool)}
	defer a.records.flush()
	defer a.sockets.close()
	defer r.close()
	defer cancel() // first, because close waits for a process that is starting
	a.sockets.all = slices.Clone(a.Upgrade.sockets)
	next, err := a.open(ctx, auth)
	if err != nil {
		return err
	}
	if a.Upgrade.former != nil {
		next.awaitStreams(ctx, streamsTimeout)
		a.takeOver()
	}
	r.serve(next)
	if ready != nil {
		ready()
	}
	return r.loop(ctx)
}

// runner runs an agent.
type runner struct {
	*Agent
	auth       *Auth
	stopStatus func() // of now

	pending  bool // a process that takes over is starting
	starting chan succession
	drained  chan *serving
	ended    chan bool // the process that has taken over: true if it has ended in order
	// successorIntercepts is true if the process that has taken over changed how the kernel handles connections.
	successorIntercepts bool
}

// succession is the result of starting a process that takes over.
type succession struct {
	process *peer
	ready   message // what it uses
	err     error
}

// set changes what accepts and what drains.
func (r *runner) set(now *serving, draining []*serving) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now, r.draining = now, draining
}

// serve begins to accept.
func (r *runner) serve(next *serving) {
	r.set(next, r.draining)
	r.stopStatus = r.Agent.serve()
	next.start()
	r.Upgrade.Notify(fmt.Sprintf("MAINPID=%d\nREADY=1\nSTATUS=relay agent %s is ready", os.Getpid(), r.policy.Name))
}

func (r *runner) loop(ctx context.Context) error {
	for r.now != nil || len(r.draining) > 0 {
		var failed chan error
		if r.now != nil {
			failed = r.now.failed
		}
		select {
		case <-ctx.Done():
			r.Upgrade.former.end()
			return nil
		case err := <-failed:
			return err
		case <-r.Upgrade.Requests:
			r.start(ctx)
		case s := <-r.starting:
			r.handOver(s)
		case s := <-r.drained:
			s.close()
			r.set(r.now, slices.DeleteFunc(slices.Clone(r.draining), func(o *serving) bool { return o == s }))
		case inOrder := <-r.ended:
			if inOrder {
				r.sockets.close()
			} else if err := r.resume(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// start starts a process that takes over.
func (r *runner) start(ctx context.Context) {
	if r.pending || r.now == nil {
		r.log.Warn("an upgrade is in progress already")
		return
	}
	r.pending = true
	r.Upgrade.Notify(sdnotify.Reloading())
	r.log.Info("starting a new process that takes over")
	go func() {
		p, ready, err := r.startSuccessor(ctx)
		r.starting <- succession{p, ready, err}
	}()
}

// handOver makes a process that is ready the one that accepts.
func (r *runner) handOver(s succession) {
	r.pending = false
	if s.err != nil {
		r.log.Error("upgrade failed: the running process continues with its configuration", "error", s.err)
		r.Upgrade.Notify("READY=1\nSTATUS=upgrade failed, see the log: the former configuration is in use")
		return
	}
	former, pid := r.now, s.process.process.Process.Pid
	r.stopStatus()
	former.stop()
	r.sockets.released()
	r.sockets.retain(func(one *socket) bool { return slices.Contains(s.ready.Sockets, one.key) })
	r.Upgrade.Notify(fmt.Sprintf("MAINPID=%d\nREADY=1", pid))
	r.successorIntercepts = s.ready.Intercepting
	_ = s.process.send(message{Accept: true}) // watch sees that it has ended
	r.Upgrade.former.end()
	r.log.Info("a new process has taken over: this one ends after its last connection", "pid", pid)
	r.set(nil, append(slices.Clone(r.draining), former))
	go func() { r.ended <- s.process.watch() }()
	go func() {
		ended := make(chan struct{})
		go func() {
			former.drain()
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(r.Upgrade.DrainTimeout):
			r.log.Warn("ending connections that are open after the drain timeout", "timeout", r.Upgrade.DrainTimeout)
		}
		r.drained <- former
	}()
}

// resume accepts again, because the process that had taken over has failed.
func (r *runner) resume(ctx context.Context) error {
	r.log.Error("the new process has failed: this process accepts connections again")
	if r.successorIntercepts && !intercepts(r.policy) { // and was killed before it could remove it
		if err := removeInterception(); err != nil {
			r.log.Error("cannot remove what takes connections", "error", err)
		}
	}
	next, err := r.open(ctx, r.auth)
	if err != nil {
		return err
	}
	next.awaitStreams(ctx, resumeTimeout)
	r.serve(next)
	return nil
}

// close ends all connections.
func (r *runner) close() {
	if r.pending {
		if s := <-r.starting; s.err == nil {
			s.process.kill()
		}
	}
	if r.now != nil {
		r.Upgrade.Notify("STOPPING=1")
		r.now.close()
		r.stopStatus()
	}
	for _, s := range r.draining {
		s.close()
	}
}
