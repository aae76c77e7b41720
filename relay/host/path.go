package host

import (
	"cmp"
	"context"
	"sync"
	"time"

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
	for wasBusy := false; ctx.Err() == nil; {
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
		goodput, busy := d.epoch(s, open)
		if wasBusy {
			if choice.Settled() {
				tuner.Observe(goodput, busy)
			}
			choice.Observe(goodput, busy)
		}
		wasBusy = busy
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

// epoch measures the goodput of streams in bytes per second for an epoch. busy is false if neither direction always
// had something to send.
func (d *Dialer) epoch(s *session, open []*kept) (goodput float64, busy bool) {
	began := time.Now()
	before := d.carried(open)
	ownBefore, otherBefore := s.idle()
	select {
	case <-s.ctx.Done():
		return 0, false
	case <-time.After(stripe.Epoch(d.rtt(open))):
	}
	after := d.carried(open)
	took := time.Since(began).Seconds()
	own, other := s.idle()
	for n, idle := range []bool{own != ownBefore, other != otherBefore} {
		if !idle && after[n] > before[n] {
			return float64(after[n]-before[n]) / took, true
		}
	}
	return 0, false
}

// firstStreams and maxStreams are the number of streams that a path begins with, and its maximum.
const firstStreams, maxStreams = 4, 128

// carried returns the bytes that streams have sent and received.
func (d *Dialer) carried(streams []*kept) (sum [2]uint64) {
	for _, k := range streams {
		if l, number := k.of(); l != nil {
			l.mu.Lock()
			sent, received := l.session.Bytes(number)
			l.mu.Unlock()
			sum[0], sum[1] = sum[0]+sent, sum[1]+received
		}
	}
	return sum
}

// rtt returns the longest round-trip time of streams.
func (d *Dialer) rtt(streams []*kept) (longest time.Duration) {
	for _, k := range streams {
		if l, number := k.of(); l != nil {
			l.mu.Lock()
			if st := l.streams[number]; st != nil {
				longest = max(longest, st.estimate().RTT)
			}
			l.mu.Unlock()
		}
	}
	return longest
}

// idle returns how often this agent, and the exit, had nothing to send.
func (s *session) idle() (own, other uint64) {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	return s.link.session.Idle()
}
