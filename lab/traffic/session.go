package traffic

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/unit"
)

// Options of a session.
type Options struct {
	// Duration ends the run; 0 runs until Stop or the end of the context.
	Duration time.Duration
	// Interval between samples; 0 is 1 s.
	Interval time.Duration
	// OnInterval, if set, is called after each sample with one Interval per flow,
	// in the order of the flows, on a goroutine of the session.
	OnInterval func(flows []FlowInterval)
	// Seed determines all random numbers, together with each flow's name. 0 chooses one; Result.Seed
	// has it, so that a run can be repeated.
	Seed uint64
	// UntilDone ends the run once every Transfer has ended, if that is earlier than Duration, but not
	// before AtLeast.
	UntilDone bool
	AtLeast   time.Duration
	// OnReceiver, if set, is called before the start with the name of each flow and its receiving
	// socket; meter.Meter.Watch can be used for it. It is not called for Requests and Transfers, which
	// open their sockets during the run.
	OnReceiver func(flow string, fd int) error
	// StartAt is the CLOCK_MONOTONIC time (MonotonicNow) at which the schedules begin; 0 is when all
	// flows are connected.
	StartAt int64
}

// FlowInterval is a sample of one flow.
type FlowInterval struct {
	Name string `json:"name"`
	Interval
}

// Session is a set of running flows.
type Session struct {
	options Options
	start   int64 // CLOCK_MONOTONIC ns
	flows   []*flow
	stop    chan struct{}
	once    sync.Once
	done    sync.WaitGroup
	end     float64       // seconds from the start to the last sample
	over    chan struct{} // closed when the sockets are
	stalls  []Stall       // of the sender, which alone writes it
	apps    *apps         // nil without Requests and Transfers
	changed atomic.Bool   // SetRate was called
}

// flow is a running Flow. The sampling goroutine reads under mu what the sending and the receiving
// goroutine write, and under apps.mu what applications write.
type flow struct {
	Flow
	send, recv     int // sockets
	joins          int // the listener of a flow of multipath TCP, for subflows that come later; -1 without
	from, to       netip.AddrPort
	frame, payload int // layer-2 bytes of a full frame, and its payload
	congestion     string
	pacer          pacer
	mu             sync.Mutex
	sent           counts
	failure        error
	received       counts
	last           snapshot
	result         []Interval
	sender         interface {
		work(now int64) (due int64, err error)
	}
	due      int64 // when the sender has to work next, in ns since the start
	receiver interface{ work() error }
	agreed   connState

	app    app                // nil for a flow with a rate
	conns  map[*conn]struct{} // of app, open
	closed connState          // counts of app's closed connections
}

// fail stores the first error.
func (f *flow) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failure == nil {
		f.failure = err
	}
}

// counts are counters since the start.
type counts struct {
	bytes, datagrams uint64
	next             uint64  // receiver: the sequence number after the highest seen
	unlimited        float64 // layer-2 bits sent at Unlimited
	ce               uint64  // receiver: datagrams with CE
	jitter           jitter
}

// connectPatience covers three lost SYNs or the longest path.
const connectPatience = 15 * time.Second

// Start connects all flows and begins their schedules at a common time. When it returns without error
// the flows run, until their Duration is over, ctx ends or Stop is called; then their connections are
// reset and their sockets closed.
func Start(ctx context.Context, hosts Hosts, flows []Flow, o Options) (_ *Session, err error) {
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	if o.Seed == 0 {
		o.Seed = drawSeed()
	}
	s := &Session{options: o, stop: make(chan struct{}), over: make(chan struct{})}
	defer func() {
		if err != nil {
			s.closeSockets()
		}
	}()
	if err := s.add(flows); err != nil {
		return nil, err
	}
	if err := roomFor(flows); err != nil {
		return nil, err
	}
	if err := s.connect(ctx, hosts); err != nil {
		return nil, err
	}
	var plain []*flow
	for _, f := range s.flows {
		if f.app != nil {
			continue
		}
		plain = append(plain, f)
		if o.OnReceiver != nil {
			if err := o.OnReceiver(f.Name, f.recv); err != nil {
				return nil, fmt.Errorf("flow %q: %w", f.Name, err)
			}
		}
	}
	receiver, err := newReceiver(plain)
	if err != nil {
		return nil, err
	}
	for _, f := range s.flows {
		f.pacer = pacer{source: f.source(f.Seed, f.payload), frameBits: float64(f.frame * 8), backlog: f.Backlog}
		if f.Backlog == 0 {
			f.pacer.backlog = DefaultBacklog
		}
		f.last = f.snapshot(0) // nothing has been sent yet, but a SYN may have been retransmitted
	}
	s.start = o.StartAt
	if s.start == 0 {
		s.start = mono()
	}
	s.done.Go(func() { s.sendLoop() })
	s.done.Go(func() { receiver.loop(s.stop) })
	s.done.Go(func() { s.sampleLoop(ctx) })
	if s.apps != nil {
		if o.UntilDone {
			// A timer that fires late stops a session that has stopped already.
			s.apps.idle = func() { time.AfterFunc(o.AtLeast-time.Duration(mono()-s.start), s.Stop) }
		}
		s.done.Go(func() { s.apps.loop(s.start, s.stop) })
	}
	go func() {
		s.done.Wait()
		s.closeSockets()
		close(s.over)
	}()
	return s, nil
}

// add checks and adds the flows.
func (s *Session) add(flows []Flow) error {
	names := map[string]bool{}
	transfers := false
	for _, spec := range flows {
		if err := spec.Validate(); err != nil {
			return err
		}
		if names[spec.Name] {
			return fmt.Errorf("duplicate flow name %q", spec.Name)
		}
		names[spec.Name] = true
		transfers = transfers || spec.Transfer != nil
		spec.Schedule = slices.Clone(spec.Schedule)
		if spec.Seed == 0 {
			spec.Seed = s.options.Seed
		}
		s.flows = append(s.flows, &flow{Flow: spec, send: -1, recv: -1, joins: -1})
	}
	if s.options.UntilDone && !transfers {
		return fmt.Errorf("the run should end with its transfers, but has none: add one, or set a duration")
	}
	return nil
}

// tick is the shortest time between two writes of a flow.
const tick = time.Millisecond

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
		if f.app != nil {
			s.apps.mu.Lock()
		}
		out[i] = FlowInterval{f.Name, f.sample(now)}
		if f.app != nil {
			s.apps.mu.Unlock()
		}
	}
	if s.options.OnInterval != nil {
		s.options.OnInterval(out)
	}
}

// SetRate changes a flow's offered rate now, and permanently replaces its schedule or source. For a
// Poisson source it is the new mean.
func (s *Session) SetRate(name string, r unit.Rate) error {
	f, err := s.flow(name)
	if err != nil {
		return err
	}
	if f.app != nil {
		return fmt.Errorf("cannot set the rate of flow %q: it has requests or a transfer", name)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := max(mono()-s.start, 0)
	if a, ok := f.pacer.source.(*arrivals); ok {
		if err := (Poisson{Rate: r}).Validate(); err != nil {
			return fmt.Errorf("flow %q: %w", name, err)
		}
		a.Rate = r
	} else {
		f.pacer.update(now)
		f.pacer.source = &course{at: now, now: r}
	}
	s.changed.Store(true)
	return nil
}

func (s *Session) flow(name string) (*flow, error) {
	for _, f := range s.flows {
		if f.Name == name {
			return f, nil
		}
	}
	return nil, fmt.Errorf("unknown flow %q", name)
}

// Conn returns the flow's two ends, as in the packets that carry its data. For Requests and Transfers,
// which open connections during the run, one port is 0.
func (s *Session) Conn(name string) (from, to netip.AddrPort, err error) {
	f, err := s.flow(name)
	if err != nil {
		return from, to, err
	}
	return f.from, f.to, nil
}

// StartMonotonicNs returns the start of the schedules (CLOCK_MONOTONIC).
func (s *Session) StartMonotonicNs() int64 { return s.start }

// Stop ends the run after a last sample, and Wait returns.
func (s *Session) Stop() { s.once.Do(func() { close(s.stop) }) }

// Wait returns the result when the run has ended: by its Duration, by Stop, or by the context of
// Start. A failed flow has an Error.
func (s *Session) Wait() *Result {
	<-s.over
	r := &Result{StartMonotonicNs: s.start, Seconds: s.end, Seed: s.options.Seed, Stalls: append([]Stall{}, s.stalls...)}
	for _, f := range s.flows {
		fr := FlowResult{
			Name: f.Name, From: f.From, To: f.To, Protocol: f.Protocol,
			FromAddr: f.from.String(), ToAddr: f.to.String(), Congestion: f.congestion,
			FrameBytes: f.frame, PayloadBytes: f.payload, Intervals: f.result,
			ECN: f.agreed.ecn, SACK: f.agreed.sack, Subflows: f.agreed.subflows, Seed: f.Seed,
		}
		for _, iv := range f.result {
			fr.Total.add(iv)
		}
		if f.app != nil {
			f.app.result(&fr)
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

// closeSockets resets the connections (RST): otherwise unsent data would be sent during the next
// measurement.
func (s *Session) closeSockets() {
	if s.apps != nil {
		s.apps.close()
	}
	for _, f := range s.flows {
		for _, fd := range []*int{&f.send, &f.recv, &f.joins} {
			if *fd >= 0 {
				unix.SetsockoptLinger(*fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
				unix.Close(*fd)
				*fd = -1
			}
		}
	}
}
