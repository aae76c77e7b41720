package host

import (
	"cmp"
	"context"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/relay"
	"headgate.dev/headgate/relay/stripe"
)

// path keeps the streams of a path open: as many as configured, or as many as help, with the congestion control that
// delivers most.
func (d *Dialer) path(s *session, p relay.Path) {
	ctx := s.ctx
	var all sync.WaitGroup
	defer all.Wait()
	controls := p.Congestion
	if len(controls) == 0 {
		controls = congestionControls
	}
	choice := stripe.NewChoice(controls...)
	tuner := stripe.NewTuner(1, maxStreams, cmp.Or(p.FirstStreams, firstStreams))
	if p.Streams > 0 {
		tuner = stripe.NewTuner(p.Streams, p.Streams, p.Streams)
	}
	reach := &outage{log: d.Log.With("exit", d.Exit.Address, "path", p.Name)}
	var open []*kept
	for wasBusy, settled := false, false; ctx.Err() == nil; {
		for len(open) < tuner.Streams() {
			one := &kept{path: p, reach: reach, in: s, congestion: choice.Name()}
			if !wasBusy && !one.only() {
				one.congestion = idleControl
			}
			one.ctx, one.cancel = context.WithCancel(ctx)
			open = append(open, one)
			all.Go(func() { d.keep(one) })
		}
		for _, one := range open[tuner.Streams():] {
			all.Go(func() { d.retire(one) })
		}
		open = open[:tuner.Streams()]
		if wasBusy { // else the streams have what idle ones have
			d.selectCongestion(open, choice)
		}
		measured := s.epoch(open)
		if wasBusy {
			if choice.Settled() && settled {
				tuner.Observe(measured)
			}
			settled = choice.Settled() // the epoch after a change is of the change
			choice.Observe(measured)
		}
		wasBusy = measured.Busy
	}
}

// selectCongestion selects the congestion control of a path's streams.
func (d *Dialer) selectCongestion(open []*kept, choice *stripe.Choice) {
	for _, one := range open {
		if err := one.selectCongestion(choice.Name()); err != nil {
			d.Log.Warn("cannot select the congestion control", "exit", d.Exit.Address, "path", one.path.Name, "error", err)
			choice.Remove(choice.Name())
			return
		}
	}
}

// epoch measures streams for an epoch.
func (s *session) epoch(open []*kept) (m stripe.Measured) {
	began := time.Now()
	before := carried(open)
	ownBefore, otherBefore := s.idle()
	q := queue{before: tcp(open)}
	for end, over := time.After(stripe.Epoch(rtt(open))), false; !over; {
		select {
		case <-s.ctx.Done():
			return m
		case <-time.After(queueInterval):
			q.look(tcp(open))
		case <-end:
			over = true
		}
	}
	after := carried(open)
	took := time.Since(began).Seconds()
	own, other := s.idle()
	for n, idle := range []bool{own != ownBefore, other != otherBefore} {
		if !idle && after[n] > before[n] {
			return stripe.Measured{Goodput: float64(after[n]-before[n]) / took, Busy: true, Full: q.full(tcp(open))}
		}
	}
	return m
}

// firstStreams and maxStreams are the number of streams that a path begins with, and its maximum.
const firstStreams, maxStreams = 4, 128

// each calls f with each of the streams that is open, with the link's lock.
func each(streams []*kept, f func(l *Link, st *stream)) {
	for _, k := range streams {
		if l, number := k.of(); l != nil {
			l.mu.Lock()
			if st := l.streams[number]; st != nil {
				f(l, st)
			}
			l.mu.Unlock()
		}
	}
}

// carried returns the bytes that streams have sent and received.
func carried(streams []*kept) (sum [2]uint64) {
	each(streams, func(l *Link, st *stream) {
		sent, received := l.session.Bytes(st.number)
		sum[0], sum[1] = sum[0]+sent, sum[1]+received
	})
	return sum
}

// tcp reads what the kernel knows about streams.
func tcp(streams []*kept) (all []*unix.TCPInfo) {
	each(streams, func(_ *Link, st *stream) {
		if i := tcpInfo(st.raw); i != nil {
			all = append(all, i)
		}
	})
	return all
}

// rtt returns the longest round-trip time of streams.
func rtt(streams []*kept) (longest time.Duration) {
	each(streams, func(_ *Link, st *stream) { longest = max(longest, st.estimate().RTT) })
	return longest
}

// idle returns how often this agent, and the exit, had nothing to send.
func (s *session) idle() (own, other uint64) {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	return s.link.session.Idle()
}
