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
	last := time.Now() // when they have carried something
	for wasBusy, settled, asleep := false, false, true; ctx.Err() == nil; {
		want := warm(p, tuner.Streams(), time.Since(last))
		for len(open) < want {
			one := &kept{path: p, reach: reach, in: s, congestion: choice.Name()}
			if !wasBusy && !one.only() {
				one.congestion = idleControl
			}
			one.ctx, one.cancel = context.WithCancel(ctx)
			open = append(open, one)
			all.Go(func() { d.keep(one) })
		}
		for _, one := range open[want:] {
			all.Go(func() { d.retire(one) })
		}
		open = open[:want]
		if wasBusy { // else the streams have what idle ones have
			d.selectCongestion(open, choice)
		}
		base := baseRTT(open)
		length := stripe.FirstEpoch(base)
		if wasBusy {
			length = stripe.Epoch(base)
		}
		// An epoch begins with what is to be sent: at 600 ms it takes 12 s, and the first would be of nothing and something.
		measured, carriedAt := s.epoch(open, length, asleep)
		if asleep = carriedAt.IsZero(); !asleep {
			last = carriedAt
		}
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

// quietTime is after what time without a byte a path closes the streams that it needs only when it is busy: each has a socket and
// buffers in both agents. The value is chosen for Headgate: applications that pause for less keep their streams.
const quietTime = 15 * time.Second

// warm returns how many streams a path has that could use a number of them, and has carried nothing for a time.
func warm(p relay.Path, tuned int, quiet time.Duration) int {
	if quiet < quietTime || p.Streams > 0 {
		return tuned
	}
	return min(tuned, cmp.Or(p.FirstStreams, firstStreams))
}

// epoch measures streams for a time, and returns when they have carried something, which is zero if they have carried nothing. If
// they are asleep, it ends as soon as they carry something.
func (s *session) epoch(open []*kept, length time.Duration, asleep bool) (m stripe.Measured, last time.Time) {
	began := time.Now()
	before := carried(open)
	now := before
	ownBefore, otherBefore := s.idle()
	q := queue{before: tcp(open)}
	for end, over := time.After(length), false; !over; {
		select {
		case <-s.ctx.Done():
			return m, last
		case <-time.After(queueInterval):
			q.look(tcp(open))
		case <-end:
			over = true
		}
		c := carried(open)
		if c[0] > now[0] || c[1] > now[1] { // less is a stream that has ended
			last = time.Now()
		}
		now = c
		over = over || asleep && !last.IsZero()
	}
	took := time.Since(began).Seconds()
	own, other := s.idle()
	for n, idle := range []bool{own != ownBefore, other != otherBefore} {
		if !idle && now[n] > before[n] {
			return stripe.Measured{Goodput: float64(now[n]-before[n]) / took, Busy: !asleep, Full: q.full(tcp(open))}, last
		}
	}
	return m, last
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

// baseRTT returns the longest of the streams' least round-trip times. With those of now, an epoch in a queue of 3 s took a minute.
func baseRTT(streams []*kept) (longest time.Duration) {
	for _, i := range tcp(streams) {
		longest = max(longest, minRTT(i))
	}
	return longest
}

// idle returns how often this agent, and the exit, had nothing to send.
func (s *session) idle() (own, other uint64) {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	return s.link.session.Idle()
}
