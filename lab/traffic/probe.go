package traffic

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Probe is a series of small UDP packets that one host sends and another echoes.
//
// Each direction is timed separately: from just before the send to the kernel's receive timestamp at
// the other end (one machine, one clock). The round trip is their sum. The wake-up times of the two
// programs are not included.
type Probe struct {
	Name     string
	From, To string
	IPv6     bool
	// SrcPort and DstPort are the ports at From and To; 0 is any free port. The answers go from
	// DstPort to SrcPort.
	SrcPort, DstPort uint16
	DSCP             uint8
	Mark             uint32
	// Every is the time between probes; 0 is 5 ms.
	Every time.Duration
	// Payload is UDP bytes; 0 is 64.
	Payload int
}

// Times summarises delays, in microseconds.
type Times struct {
	MinUs  float64 `json:"min_us"`
	MeanUs float64 `json:"mean_us"`
	P50Us  float64 `json:"p50_us"`
	P99Us  float64 `json:"p99_us"`
	MaxUs  float64 `json:"max_us"`
}

// ProbeResult is the result of a Probe.
type ProbeResult struct {
	Name string `json:"name"`
	From string `json:"from"`
	To   string `json:"to"`
	Sent uint64 `json:"sent"`
	// Lost were not answered within a second after the last probe.
	Lost uint64 `json:"lost"`
	RTT  Times  `json:"rtt"`
	// There is the direction from From to To, Back the opposite one.
	There Times `json:"there"`
	Back  Times `json:"back"`
	// Samples are the answered probes, in the order in which they were sent.
	Samples []ProbeSample `json:"samples,omitempty"`
}

// ProbeSample is one probe.
type ProbeSample struct {
	// AtMonotonicNs is when it was sent (CLOCK_MONOTONIC).
	AtMonotonicNs int64   `json:"at_monotonic_ns"`
	ThereUs       float64 `json:"there_us"`
	BackUs        float64 `json:"back_us"`
}

// RTTUs is the round-trip time.
func (s ProbeSample) RTTUs() float64 { return s.ThereUs + s.BackUs }

// Prober is a running Probe.
type Prober struct {
	probe     Probe
	ask, echo int // sockets
	ctx       context.Context
	cancel    context.CancelFunc
	done      sync.WaitGroup
	sent      atomic.Uint64
	failure   error

	mu      sync.Mutex
	samples map[uint64]ProbeSample
}

// Layout of a probe packet: what the asker wrote, and what the answerer added. Times are
// CLOCK_REALTIME, as those of SO_TIMESTAMPNS.
const (
	atSeq, atSent, atMono, atReached, atAnswered = 0, 8, 16, 24, 32
	probeHeader                                  = 40
)

// StartProbe starts a probe, which runs until Stop or the end of ctx.
func StartProbe(ctx context.Context, hosts Hosts, p Probe) (*Prober, error) {
	if p.Every == 0 {
		p.Every = 5 * time.Millisecond
	}
	if p.Payload == 0 {
		p.Payload = 64
	}
	if p.Every < 100*time.Microsecond || p.Payload < probeHeader || p.Payload > maxPayload {
		return nil, fmt.Errorf("probe %q: the interval %v is below 100us, or the payload of %d is not between %d and %d", p.Name, p.Every, p.Payload, probeHeader, maxPayload)
	}
	f := flow{send: -1, recv: -1, joins: -1, Flow: Flow{
		Name: p.Name, From: p.From, To: p.To, Protocol: UDP, IPv6: p.IPv6,
		SrcPort: p.SrcPort, DstPort: p.DstPort, DSCP: p.DSCP, Mark: p.Mark,
	}}
	from, to, err := f.ends(hosts)
	if err == nil {
		err = f.openUDP(from, to, newUDPBatch())
	}
	for _, fd := range []int{f.send, f.recv} {
		if err == nil {
			err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
		}
	}
	if err != nil {
		for _, fd := range []int{f.send, f.recv} {
			if fd >= 0 {
				unix.Close(fd)
			}
		}
		return nil, fmt.Errorf("probe %q: %w", p.Name, err)
	}
	pr := &Prober{probe: p, ask: f.send, echo: f.recv, samples: map[uint64]ProbeSample{}}
	pr.ctx, pr.cancel = context.WithCancel(ctx)
	pr.done.Go(pr.asks)
	pr.done.Go(func() { pr.reads(pr.echo, pr.answer) })
	pr.done.Go(func() { pr.reads(pr.ask, pr.answered) })
	return pr, nil
}

func realtime() int64 {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_REALTIME, &ts)
	return ts.Nano()
}

// asks sends the probes, and waits for late answers at the end.
func (p *Prober) asks() {
	buf := make([]byte, p.probe.Payload)
	for next := mono(); p.ctx.Err() == nil; next = max(next+int64(p.probe.Every), mono()) {
		sleepUntil(next)
		binary.BigEndian.PutUint64(buf[atSeq:], p.sent.Load())
		binary.BigEndian.PutUint64(buf[atMono:], uint64(mono()))
		binary.BigEndian.PutUint64(buf[atSent:], uint64(realtime()))
		if _, err := unix.Write(p.ask, buf); err == nil {
			p.sent.Add(1)
		} else if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.EINTR) {
			p.failure = fmt.Errorf("probe %q: send: %w", p.probe.Name, err)
			return
		}
	}
	for end := time.Now().Add(time.Second); time.Now().Before(end) && p.missing(); {
		time.Sleep(10 * time.Millisecond)
	}
}

func (p *Prober) missing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return uint64(len(p.samples)) < p.sent.Load()
}

// reads passes every packet of fd, with the kernel's timestamp, to use.
func (p *Prober) reads(fd int, use func(packet []byte, at int64)) {
	buf, oob := make([]byte, p.probe.Payload), make([]byte, 128)
	var drained time.Time
	for {
		// The reader ends with its asker; 1 s and a little covers late answers.
		if p.ctx.Err() != nil {
			if drained.IsZero() {
				drained = time.Now().Add(time.Second)
			}
			if time.Now().After(drained) || !p.missing() {
				return
			}
		}
		if waitReady(fd, unix.POLLIN, time.Now().Add(100*time.Millisecond)) != nil {
			continue
		}
		n, oobn, _, _, err := unix.Recvmsg(fd, buf, oob, unix.MSG_DONTWAIT)
		if err != nil || n < probeHeader {
			continue
		}
		if at, _ := control(oob[:oobn]); at != 0 {
			use(buf[:n], at)
		}
	}
}

func (p *Prober) answer(packet []byte, at int64) {
	binary.BigEndian.PutUint64(packet[atReached:], uint64(at))
	binary.BigEndian.PutUint64(packet[atAnswered:], uint64(realtime()))
	unix.Write(p.echo, packet) // a packet that cannot be sent is a lost probe
}

func (p *Prober) answered(packet []byte, at int64) {
	get := func(i int) int64 { return int64(binary.BigEndian.Uint64(packet[i:])) }
	s := ProbeSample{
		AtMonotonicNs: get(atMono),
		ThereUs:       float64(get(atReached)-get(atSent)) / 1e3,
		BackUs:        float64(at-get(atAnswered)) / 1e3,
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.samples[uint64(get(atSeq))] = s
}

// Stop ends the probe, waits up to a second for the last answers, and returns the result.
func (p *Prober) Stop() (*ProbeResult, error) {
	p.cancel()
	p.done.Wait()
	unix.Close(p.ask)
	unix.Close(p.echo)
	r := &ProbeResult{Name: p.probe.Name, From: p.probe.From, To: p.probe.To, Sent: p.sent.Load()}
	for seq := range r.Sent {
		if s, ok := p.samples[seq]; ok {
			r.Samples = append(r.Samples, s)
		}
	}
	r.Lost = r.Sent - uint64(len(r.Samples))
	r.RTT = sumUp(r.Samples, ProbeSample.RTTUs)
	r.There = sumUp(r.Samples, func(s ProbeSample) float64 { return s.ThereUs })
	r.Back = sumUp(r.Samples, func(s ProbeSample) float64 { return s.BackUs })
	return r, p.failure
}

// Between summarises the round trips of probes that were sent in [from, to) of CLOCK_MONOTONIC ns.
func (r *ProbeResult) Between(from, to int64) Times {
	var in []ProbeSample
	for _, s := range r.Samples {
		if s.AtMonotonicNs >= from && s.AtMonotonicNs < to {
			in = append(in, s)
		}
	}
	return sumUp(in, ProbeSample.RTTUs)
}

func sumUp(samples []ProbeSample, of func(ProbeSample) float64) (t Times) {
	if len(samples) == 0 {
		return t
	}
	v := make([]float64, len(samples))
	for i, s := range samples {
		v[i] = of(s)
		t.MeanUs += v[i] / float64(len(samples))
	}
	slices.Sort(v)
	at := func(q float64) float64 { return v[min(int(q*float64(len(v))), len(v)-1)] }
	t.MinUs, t.P50Us, t.P99Us, t.MaxUs = v[0], at(0.5), at(0.99), v[len(v)-1]
	return t
}
