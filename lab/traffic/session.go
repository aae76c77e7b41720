package traffic

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"headgate/unit"
)

// Options of a run.
type Options struct {
	// Duration ends the run by itself; 0 leaves that to Stop and the context.
	Duration time.Duration
	// Interval between samples; 0 is 1 s.
	Interval time.Duration
	// OnInterval, if set, is called after each sample with one Interval per flow,
	// in the order of the flows, on a goroutine of the session.
	OnInterval func(flows []FlowInterval)
	// OnReceiver, if set, is called before the start with the name of each flow and
	// the socket that receives it; meter.Meter.Watch is made for it.
	OnReceiver func(flow string, fd int) error
	// StartAt is the CLOCK_MONOTONIC time (MonotonicNow) at which the schedules
	// begin; 0 is at once, when all are connected.
	StartAt int64
}

// FlowInterval is a sample of one flow.
type FlowInterval struct {
	Name string `json:"name"`
	Interval
}

// Session is flows that run.
type Session struct {
	options Options
	start   int64 // CLOCK_MONOTONIC ns
	flows   []*flow
	stop    chan struct{}
	once    sync.Once
	done    sync.WaitGroup
	end     float64       // seconds from the start to the last sample
	over    chan struct{} // closed when the sockets are
	stalls  []Stall       // of the sender; it alone writes
}

// flow is a Flow that runs. What the sending goroutine writes, the sampling one
// reads under mu.
type flow struct {
	Flow
	send, recv       int // sockets
	from, to         netip.AddrPort
	frame, payload   int // layer-2 bytes of a full frame, and what it carries
	congestion       string
	pacer            pacer
	mu               sync.Mutex
	sent             counts
	failure          error
	received         counts
	last             snapshot
	result           []Interval
	sender, receiver interface{ work(now int64) error }
}

// counts grow from the start.
type counts struct {
	bytes, datagrams uint64
	next             uint64  // receiver: the sequence number after the highest seen
	unlimited        float64 // layer-2 bits that were sent at Unlimited
}

// connectPatience covers three lost SYNs or the longest path.
const connectPatience = 15 * time.Second

// Start connects all flows and begins their schedules at one common time. When
// it returns without error the flows run, until their Duration is over, ctx ends
// or Stop is called; then their connections are reset and their sockets closed.
func Start(ctx context.Context, hosts Hosts, flows []Flow, o Options) (_ *Session, err error) {
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	s := &Session{options: o, stop: make(chan struct{}), over: make(chan struct{})}
	defer func() {
		if err != nil {
			s.closeSockets()
		}
	}()
	names := map[string]bool{}
	for _, spec := range flows {
		if err := spec.Validate(); err != nil {
			return nil, err
		}
		if names[spec.Name] {
			return nil, fmt.Errorf("there are two flows %q", spec.Name)
		}
		names[spec.Name] = true
		spec.Schedule = slices.Clone(spec.Schedule)
		s.flows = append(s.flows, &flow{Flow: spec, send: -1, recv: -1})
	}
	if err := s.connect(ctx, hosts); err != nil {
		return nil, err
	}
	for _, f := range s.flows {
		if o.OnReceiver != nil {
			if err := o.OnReceiver(f.Name, f.recv); err != nil {
				return nil, fmt.Errorf("flow %q: %w", f.Name, err)
			}
		}
	}
	receiver, err := newReceiver(s.flows)
	if err != nil {
		return nil, err
	}
	for _, f := range s.flows {
		f.last = f.snapshot(0) // nothing was sent yet, but a SYN may have been twice
	}
	s.start = o.StartAt
	if s.start == 0 {
		s.start = mono()
	}
	s.done.Go(func() { s.sendLoop() })
	s.done.Go(func() { receiver.loop(s.stop) })
	s.done.Go(func() { s.sampleLoop(ctx) })
	go func() {
		s.done.Wait()
		s.closeSockets()
		close(s.over)
	}()
	return s, nil
}

// tick is the shortest time between two writes of a flow.
const tick = time.Millisecond

// sendLoop lets every flow write, tick by tick.
func (s *Session) sendLoop() {
	for next, last := s.start, s.start; ; {
		sleepUntil(next)
		select {
		case <-s.stop:
			return
		default:
		}
		now := mono()
		if d := now - last; d > int64(StallBound) {
			s.stalls = append(s.stalls, Stall{float64(last-s.start) / 1e9, float64(d) / 1e9})
		}
		last = now
		for _, f := range s.flows {
			f.mu.Lock()
			if f.failure == nil {
				f.failure = f.sender.work(now - s.start)
			}
			f.mu.Unlock()
		}
		// A late loop goes on from now: the pacers catch up by themselves.
		next = max(next+int64(tick), mono()-int64(tick))
	}
}

// sampleLoop takes a sample of each flow at the end of each interval.
func (s *Session) sampleLoop(ctx context.Context) {
	defer s.once.Do(func() { close(s.stop) })
	begin := time.Duration(max(s.start-mono(), 0))
	timer := time.NewTimer(begin)
	defer timer.Stop()
	wait := func(d time.Duration) bool {
		timer.Reset(d)
		select {
		case <-ctx.Done():
			return false
		case <-s.stop:
			return false
		case <-timer.C:
			return true
		}
	}
	if !wait(begin) {
		return
	}
	for k := 1; ; k++ {
		at := time.Duration(k) * s.options.Interval
		last := s.options.Duration > 0 && at >= s.options.Duration
		if last {
			at = s.options.Duration
		}
		more := wait(at - time.Duration(mono()-s.start))
		s.sample()
		if !more || last {
			return
		}
	}
}

func (s *Session) sample() {
	now := mono() - s.start
	s.end = float64(now) / 1e9
	out := make([]FlowInterval, len(s.flows))
	for i, f := range s.flows {
		iv := f.sample(now)
		out[i] = FlowInterval{f.Name, iv}
	}
	if s.options.OnInterval != nil {
		s.options.OnInterval(out)
	}
}

// SetRate changes a flow's offered rate now, instead of its schedule, which is
// taken up no more.
func (s *Session) SetRate(name string, r unit.Rate) error {
	for _, f := range s.flows {
		if f.Name == name {
			f.mu.Lock()
			defer f.mu.Unlock()
			at := time.Duration(max(mono()-s.start, 0))
			kept := slices.DeleteFunc(f.Schedule, func(st Step) bool { return st.At >= at })
			f.Schedule = append(kept, Step{at, r})
			return nil
		}
	}
	return fmt.Errorf("there is no flow %q", name)
}

// Conn is the flow's two ends, as in the packets that carry its data.
func (s *Session) Conn(name string) (from, to netip.AddrPort, err error) {
	for _, f := range s.flows {
		if f.Name == name {
			return f.from, f.to, nil
		}
	}
	return from, to, fmt.Errorf("there is no flow %q", name)
}

// StartMonotonicNs is when the schedules began (CLOCK_MONOTONIC).
func (s *Session) StartMonotonicNs() int64 { return s.start }

// Stop ends the run after a last sample, and Wait returns.
func (s *Session) Stop() { s.once.Do(func() { close(s.stop) }) }

// Wait returns the result when the run has ended: by its Duration, by Stop, or
// by the context that Start was given. A flow that broke says so in its Error.
func (s *Session) Wait() *Result {
	<-s.over
	r := &Result{StartMonotonicNs: s.start, Seconds: s.end, Stalls: append([]Stall{}, s.stalls...)}
	for _, f := range s.flows {
		fr := FlowResult{
			Name: f.Name, From: f.From, To: f.To, Protocol: f.Protocol,
			FromAddr: f.from.String(), ToAddr: f.to.String(), Congestion: f.congestion,
			FrameBytes: f.frame, PayloadBytes: f.payload, Intervals: f.result,
		}
		for _, iv := range f.result {
			fr.Total.add(iv)
		}
		if f.failure != nil {
			fr.Error = f.failure.Error()
		}
		r.Flows = append(r.Flows, fr)
	}
	return r
}

// Run is Start and Wait.
func Run(ctx context.Context, hosts Hosts, flows []Flow, o Options) (*Result, error) {
	s, err := Start(ctx, hosts, flows, o)
	if err != nil {
		return nil, err
	}
	return s.Wait(), nil
}

// closeSockets ends connections at once (RST): what is still unsent would
// otherwise trickle into whatever is measured next.
func (s *Session) closeSockets() {
	for _, f := range s.flows {
		for _, fd := range []*int{&f.send, &f.recv} {
			if *fd >= 0 {
				unix.SetsockoptLinger(*fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
				unix.Close(*fd)
				*fd = -1
			}
		}
	}
}
