package collective_test

import (
	"container/heap"
	"maps"
	"math"
	"math/rand/v2"
	"time"

	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/unit"
)

// sim is a network in virtual time: TCP senders (Reno) behind one port, a FIFO with RED,
// and a return path without loss.
type sim struct {
	rate       float64       // bit/s
	delay      time.Duration // both directions
	minQ, maxQ [2]float64    // RED's thresholds, in packets, by class
	room       int           // packets
	rng        *rand.Rand

	now    time.Duration
	events eventHeap
	n      int
	queue  int // packets queued or in transmission
	free   time.Duration
	avg    float64
	idle   time.Duration
	count  [2]int

	control *collective.Control
	set     []*tcp
	watch   func(collective.ID, collective.Reading) // of readings; nil is none
}

const packet = 1514 * 8 // bits; a packet carries 1448 bytes
const carries = 1448

type event struct {
	at time.Duration
	n  int
	do func()
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].n < h[j].n
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	*h = old[:len(old)-1]
	return e
}

func (s *sim) after(d time.Duration, do func()) {
	s.n++
	heap.Push(&s.events, event{s.now + d, s.n, do})
}

func (s *sim) run(until time.Duration) {
	for len(s.events) > 0 && s.events[0].at <= until {
		e := heap.Pop(&s.events).(event)
		s.now = e.at
		e.do()
	}
	s.now = until
}

// pass sends a packet through the port. delivered is called when its acknowledgement
// returns, and never if the packet is dropped.
func (s *sim) pass(class int, delivered func()) (dropped bool) {
	if s.red(class) || s.queue >= s.room {
		return true
	}
	s.queue++
	took := time.Duration(packet / s.rate * 1e9)
	s.free = max(s.free, s.now) + took
	leaves := s.free - s.now
	s.after(leaves, func() {
		s.queue--
		if s.queue == 0 {
			s.idle = s.now
		}
	})
	s.after(leaves+s.delay, delivered)
	return false
}

func (s *sim) red(class int) bool {
	const w = 0.002
	if s.queue == 0 {
		s.avg *= math.Pow(1-w, (s.now-s.idle).Seconds()*s.rate/packet)
		s.idle = s.now
	} else {
		s.avg += w * (float64(s.queue) - s.avg)
	}
	lo, hi := s.minQ[class], s.maxQ[class]
	switch {
	case hi == 0 || s.avg < lo:
		s.count[class] = -1
		return false
	case s.avg >= hi:
		s.count[class] = 0
		return true
	}
	s.count[class]++
	pb := 0.1 * (s.avg - lo) / (hi - lo)
	pa := 1.0
	if left := 1 - float64(s.count[class])*pb; left > 0 {
		pa = pb / left
	}
	if s.rng.Float64() >= pa {
		return false
	}
	s.count[class] = 0
	return true
}

// tcp is a sender.
type tcp struct {
	s               *sim
	id              collective.ID
	class           int
	maxWindow       float64 // receiver's window, packets
	cwnd            float64
	ssthresh        float64
	inFlight        int
	backlog         float64 // bytes not sent; infinite is greedy
	lost            int     // packets to retransmit
	recovering      time.Duration
	srtt            time.Duration
	acked           float64
	resent          int
	offered         float64
	done            func()
	left            int // remaining packets of a file
	cap, pendingCap collective.Cap
	nextSend        time.Duration
	waking          bool
	read            time.Duration
	newest          time.Duration
	pending         collective.Event
	pendingLost     int
	observed        bool
	sack            bool
	full            bool // the receiver's window limits it
}

func (s *sim) newTCP(id collective.ID, class int) *tcp {
	return &tcp{s: s, id: id, class: class, maxWindow: 45, cwnd: 10, ssthresh: 1e9}
}

func (t *tcp) window() float64 {
	w := min(t.cwnd, t.maxWindow)
	if t.cap.Window > 0 {
		w = min(w, math.Max(2, math.Round(float64(t.cap.Window)/carries)))
	}
	return w
}

// threshold is that of a reading: 0 is none.
func (t *tcp) threshold() int {
	if t.ssthresh >= 1e9 {
		return 0
	}
	return int(t.ssthresh)
}

func (t *tcp) obey(c collective.Cap) {
	if c.Window > 0 && c.Window != t.cap.Window {
		t.ssthresh = math.Max(2, math.Round(float64(c.Window)/carries)) // as TCP_BPF_SNDCWND_CLAMP does
	} else if c.Window == 0 && t.cap.Window > 0 {
		t.ssthresh = math.Max(2, t.cwnd) // as threshold.c does
	}
	t.cap = c
	t.send()
}

func (t *tcp) send() {
	defer func() { t.full = float64(t.inFlight) >= t.maxWindow }()
	for float64(t.inFlight) < t.window() && (t.lost > 0 || t.backlog >= carries) {
		if t.cap.Rate > 0 {
			if t.s.now < t.nextSend {
				if !t.waking {
					t.waking = true
					t.s.after(t.nextSend-t.s.now, func() { t.waking = false; t.send() })
				}
				return
			}
			t.nextSend = max(t.nextSend, t.s.now-time.Millisecond) + time.Duration(carries*8/float64(t.cap.Rate)*1e9)
		}
		again := t.lost > 0
		if again {
			t.lost--
			t.resent++
		} else {
			t.backlog -= carries
		}
		t.inFlight++
		sent := t.s.now
		if t.s.pass(t.class, func() { t.ack(sent) }) {
			// The loss is detected when later packets are acknowledged, or by the timer.
			t.s.after(t.srtt+t.s.delay/4, func() { t.drop(sent, again) })
		}
	}
}

// drop is the detection of a loss by the sender: at once, or by the timer if its window
// is too small.
func (t *tcp) drop(sent time.Duration, again bool) {
	wait := time.Duration(0)
	timeout := t.cwnd < 4
	if t.sack { // RACK and the tail loss probe (RFC 8985) leave to the timer what is lost twice and the last in flight
		timeout = again && t.inFlight == 1
	}
	if timeout {
		wait = 200 * time.Millisecond
	}
	t.s.after(wait, func() {
		t.inFlight--
		t.lost++
		t.pendingLost++
		if sent >= t.recovering {
			t.recovering = t.s.now
			t.ssthresh = max(t.cwnd/2, 2)
			t.cwnd = t.ssthresh
			t.pending |= collective.FastRetransmit
			if timeout {
				t.cwnd = 1
				t.pending |= collective.Timeout
			}
		}
		t.send()
	})
}

func (t *tcp) ack(sent time.Duration) {
	t.inFlight--
	t.acked += carries
	rtt := t.s.now - sent
	if t.srtt == 0 {
		t.srtt = rtt
	}
	t.srtt += (rtt - t.srtt) / 8
	t.newest = rtt
	if t.cap.Window > 0 {
		t.cwnd = min(t.cwnd, math.Max(2, math.Round(float64(t.cap.Window)/carries)))
	}
	if float64(t.inFlight+1) >= t.window()-1 { // the window is the limit
		if t.cwnd < t.ssthresh {
			t.cwnd++
		} else {
			t.cwnd += 1 / t.cwnd
		}
	}
	if t.done != nil {
		if t.left--; t.left == 0 {
			t.done()
			return
		}
	}
	if t.observed && t.s.now >= t.read {
		t.read = t.s.now + t.srtt
		r := collective.Reading{
			At: t.s.now, RTT: rtt, Newest: rtt, Acked: uint64(t.acked), Backlog: unit.Bytes(min(t.backlog, 1e9)), Events: t.pending,
			ReceiverFull: t.full, Lost: t.pendingLost, Recovery: t.recovering, Window: int(t.cwnd), Threshold: t.threshold(), Reno: true,
		}
		t.s.control.Observe(t.id, r)
		if t.s.watch != nil {
			t.s.watch(t.id, r)
		}
		t.pending, t.pendingLost = 0, 0
		// Like the program in the kernel: once per round trip.
		if t.pendingCap != t.cap {
			t.obey(t.pendingCap)
		}
	}
	t.send()
}

// pacedUntil offers a rate in bit/s of layer 2 from now until a time, and then everything that the connection takes.
func (t *tcp) pacedUntil(calm time.Duration, rate float64) {
	paced := rate * carries * 8 / packet
	var feed func()
	feed = func() {
		if t.s.now >= calm {
			t.backlog = math.Inf(1)
			t.send()
			return
		}
		t.backlog += paced / 8 * 0.01
		t.send()
		t.s.after(10*time.Millisecond, feed)
	}
	feed()
}

// messages offers Poisson messages of 8 to 16 KiB at a rate in bit/s of layer 2.
func (t *tcp) messages(rate float64) {
	const mean = 12 * 1024
	gap := mean * 8 / rate * 1514 / 1448
	var next func()
	next = func() {
		size := 8192 + t.s.rng.Float64()*8192
		t.offered += size
		t.backlog += size
		t.send()
		t.s.after(time.Duration(t.s.rng.ExpFloat64()*gap*1e9), next)
	}
	t.s.after(time.Duration(t.s.rng.ExpFloat64()*gap*1e9), next)
}

// files is the FTP traffic: at most 25 streams, and as many that wait; rate is in bit/s
// of layer 2.
func (s *sim) files(class int, rate float64, until time.Duration) {
	const mean = 20 * 1024
	gap := mean * 8 / rate * 1.06
	busy, waiting := 0, 0
	var start, next func()
	start = func() {
		busy++
		t := s.newTCP(0, class)
		t.left = int(math.Ceil((5 + 30*s.rng.Float64()) * 1024 / carries))
		t.backlog = float64(t.left) * carries
		t.done = func() {
			busy--
			if waiting > 0 {
				waiting--
				start()
			}
		}
		s.after(s.delay+2*time.Millisecond, t.send) // the handshake
	}
	next = func() {
		if s.now > until {
			return
		}
		if busy < 25 {
			start()
		} else if waiting < 25 {
			waiting++
		}
		s.after(time.Duration(s.rng.ExpFloat64()*gap*1e9), next)
	}
	next()
}

// look calls Caps every 10 ms.
func (s *sim) look() {
	caps := maps.Collect(s.control.Caps(s.now))
	for _, t := range s.set {
		t.pendingCap = caps[t.id]
	}
	s.after(10*time.Millisecond, s.look)
}

// Classes of RED: low has half of the thresholds of high.
const (
	low  = 0
	high = 1
)

// seedNet is the seed's network: L_max of the higher class, the classes of FTP and of the
// databases, and the rate that FTP offers in Mbit/s.
type seedNet struct {
	maxQueue float64
	ftp, db  int
	offered  float64
}

// sim returns the network with the databases, which start at 5 s.
func (n seedNet) sim(seed uint64, controlled bool) *sim {
	s := &sim{
		rate: 10e6, delay: 22 * time.Millisecond, room: int(2 * n.maxQueue), rng: rand.New(rand.NewPCG(seed, 1)),
		minQ: [2]float64{n.maxQueue / 6, n.maxQueue / 3}, maxQ: [2]float64{n.maxQueue / 2, n.maxQueue},
		control: &collective.Control{},
	}
	for i, rate := range []float64{5.28e6, 2.64e6} {
		t := s.newTCP(collective.ID(i+1), n.db)
		t.observed = true
		s.set = append(s.set, t)
		s.after(5*time.Second, func() { t.messages(rate) })
	}
	if controlled {
		s.look()
	}
	return s
}
