package collective_test

import (
	"maps"
	"math"
	"testing"
	"time"

	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/unit"
)

// bottleneck is a link with a queue in virtual time, and connections that send what is
// offered, as far as their caps allow.
type bottleneck struct {
	control collective.Control
	rate    float64 // bit/s
	base    time.Duration
	room    float64 // length of the queue in bits; 0 is no bound
	// host is a limit of the host itself in bit/s, which divides equally and holds packets back without a loss or a longer round trip; 0 is none.
	host float64
	// hostQueue is how much longer round trips are while that limit holds packets back.
	hostQueue time.Duration
	isHeld    bool

	now              time.Duration
	queue            float64 // bits
	rivalQueueFactor float64 // bit/s
	of               map[collective.ID]*source
}

// source is the application and the sender of a connection.
type source struct {
	offered        float64 // bit/s; infinite is greedy
	backlog        float64
	queued         float64 // bits of it in the queue
	acked, carried float64
	next           time.Duration
	lost           bool
	cap            collective.Cap
	paces          float64       // its own pace in bit/s; 0 is no bound
	still          time.Duration // end of the wait for its timer
}

const moment = time.Millisecond

func (b *bottleneck) run(took time.Duration) {
	for end := b.now + took; b.now < end; b.now += moment {
		rtt := b.base + time.Duration(b.queue/b.rate*1e9)
		if b.isHeld {
			rtt += b.hostQueue
		}
		arrived := b.rivalQueueFactor * moment.Seconds()
		sent := map[collective.ID]float64{}
		for id, s := range b.of {
			s.backlog += s.offered * moment.Seconds()
			n := min(s.backlog, b.rate*moment.Seconds())
			if s.cap.Rate > 0 {
				n = min(n, float64(s.cap.Rate)*moment.Seconds())
			}
			if s.cap.Window > 0 {
				n = min(n, float64(s.cap.Window)*8/rtt.Seconds()*moment.Seconds())
			}
			if s.paces > 0 {
				n = min(n, s.paces*moment.Seconds())
			}
			if b.now < s.still {
				n = 0
			}
			sent[id] = n
		}
		b.hold(sent)
		for _, n := range sent {
			arrived += n
		}
		passed := 1.0 // the part of what arrives that finds room
		if b.room > 0 && b.queue+arrived-b.rate*moment.Seconds() > b.room {
			passed = max(b.room+b.rate*moment.Seconds()-b.queue, 0) / arrived
		}
		b.queue += arrived * passed
		out := min(b.queue, b.rate*moment.Seconds())
		leaves := 0.0 // the part of the queue that leaves
		if b.queue > 0 {
			leaves = out / b.queue
		}
		b.queue -= out
		over := passed < 1
		for id, s := range b.of {
			s.queued += sent[id] * passed
			n := s.queued * leaves
			s.queued -= n
			if math.IsInf(s.offered, 1) {
				s.backlog = 1e9
			} else {
				s.backlog -= sent[id] * passed
			}
			s.acked += n / 8
			s.carried += n
			if over && sent[id] > 0 {
				s.lost = true
			}
			if b.now >= s.next && n > 0 {
				s.next = b.now + rtt
				r := collective.Reading{At: b.now, RTT: rtt, Newest: rtt, Acked: uint64(s.acked), Backlog: unit.Bytes(s.backlog / 8)}
				if s.backlog < 20e3*8 && !math.IsInf(s.offered, 1) && s.cap.Rate == 0 {
					r.Backlog = 0
				}
				if s.lost {
					r.Events, s.lost = collective.FastRetransmit, false
				}
				if s.still > 0 {
					r.Events, s.still = r.Events|collective.Timeout, 0
				}
				b.control.Observe(id, r)
			}
		}
		if b.now%(10*time.Millisecond) == 0 {
			caps := maps.Collect(b.control.Caps(b.now))
			for id, s := range b.of {
				s.cap = caps[id]
			}
		}
	}
}

// hold divides the limit of the host equally, as far as connections use their parts.
func (b *bottleneck) hold(sent map[collective.ID]float64) {
	left, open := b.host*moment.Seconds(), maps.Clone(sent)
	b.isHeld = false
	for b.host > 0 && len(open) > 0 {
		part, fits := left/float64(len(open)), false
		for id, n := range open {
			if n <= part {
				left, fits = left-n, true
				delete(open, id)
			}
		}
		if !fits {
			for id := range open {
				sent[id] = part
			}
			b.isHeld = true
			return
		}
	}
}

// greedy makes all connections send without bound.
func (b *bottleneck) greedy() {
	for _, s := range b.of {
		s.offered = math.Inf(1)
	}
}

// rates advances the time and returns the rate of each connection.
func (b *bottleneck) rates(took time.Duration) map[collective.ID]float64 {
	before := map[collective.ID]float64{}
	for id, s := range b.of {
		before[id] = s.carried
	}
	b.run(took)
	out := map[collective.ID]float64{}
	for id, s := range b.of {
		out[id] = (s.carried - before[id]) / took.Seconds()
	}
	return out
}

// Five connections that were paced at 8:4:2:1:1 and then become greedy keep these shares
// of the whole link, with a short queue.
func TestControlGreedy(t *testing.T) {
	for _, base := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond} {
		b := &bottleneck{rate: 100e6, base: base, room: 20e6, of: map[collective.ID]*source{}}
		shares := []float64{8, 4, 2, 1, 1}
		for i, w := range shares {
			b.of[collective.ID(i+1)] = &source{offered: w * 5e6}
		}
		b.run(20 * time.Second)
		if b.control.Controlling() {
			t.Fatalf("%v: the set is controlled without congestion", base)
		}
		b.greedy()
		b.run(5 * time.Second)
		got := b.rates(20 * time.Second)
		sum := 0.0
		for i, w := range shares {
			r := got[collective.ID(i+1)]
			sum += r
			if want := 100e6 * w / 16; math.Abs(r/want-1) > 0.07 {
				t.Errorf("%v: rate of connection %d is %.2f Mbit/s, want %.2f", base, i+1, r/1e6, want/1e6)
			}
		}
		if sum < 97e6 {
			t.Errorf("%v: total rate is %.1f of 100 Mbit/s", base, sum/1e6)
		}
		if q := b.queue / b.rate * 1e3; q > 30 {
			t.Errorf("%v: the queue is %.1f ms", base, q)
		}
	}
}

// A connection that sometimes waits for its timer compensates for it: over some minutes
// it has its share, to the byte, and the other connection uses the rest meanwhile.
func TestControlTimeouts(t *testing.T) {
	for _, wait := range []time.Duration{400 * time.Millisecond, 1500 * time.Millisecond} {
		b := &bottleneck{rate: 10e6, base: 20 * time.Millisecond, room: 1e6, of: map[collective.ID]*source{1: {offered: 5e6}, 2: {offered: 2.5e6}}}
		b.run(20 * time.Second)
		b.greedy()
		b.rivalQueueFactor = 6e6
		b.run(5 * time.Second)
		first, second := b.of[1].carried, b.of[2].carried
		for range 20 {
			b.of[2].still = b.now + wait
			b.run(10 * wait)
		}
		first, second = b.of[1].carried-first, b.of[2].carried-second
		if !b.control.Controlling() {
			t.Fatal("the set is not controlled")
		}
		if r := first / second; math.Abs(r/2-1) > 0.02 {
			t.Errorf("%v of every %v: %.2f to 1, want 2", wait, 10*wait, r)
		}
		if sum := (first + second) / (200 * wait.Seconds()); sum < 3.8e6 {
			t.Errorf("%v of every %v: total rate is %.2f of 4 Mbit/s", wait, 10*wait, sum/1e6)
		}
	}
}

// Bytes that were sent before there was a cap, and are acknowledged seconds later because
// an earlier packet was lost, do not count: the connection has its share meanwhile.
func TestControlLateAcknowledgements(t *testing.T) {
	b := &bottleneck{rate: 100e6, base: 50 * time.Millisecond, room: 10e6, of: map[collective.ID]*source{1: {offered: 50e6}, 2: {offered: 25e6}}}
	b.run(20 * time.Second)
	b.greedy()
	b.rivalQueueFactor = 50e6
	b.run(10 * time.Second)
	b.of[2].acked += 6e6 // 3 s of its share
	b.run(time.Second)
	rates := b.rates(3 * time.Second)
	if !b.control.Controlling() {
		t.Fatal("the set is not controlled")
	}
	if r := rates[1] / rates[2]; math.Abs(r/2-1) > 0.05 {
		t.Errorf("%.1f and %.1f Mbit/s, %.2f to 1, want 2", rates[1]/1e6, rates[2]/1e6, r)
	}
}

// The rate of a connection that becomes greedy is not learned while the path fills: only
// after ten seconds.
func TestControlSettled(t *testing.T) {
	b := &bottleneck{rate: 100e6, base: 20 * time.Millisecond, of: map[collective.ID]*source{1: {offered: 60e6}, 2: {offered: 15e6}}}
	b.run(20 * time.Second)
	for _, s := range b.of {
		s.offered, s.paces = math.Inf(1), 45e6
	}
	needs := func() float64 {
		r, _ := b.control.LearnedRate(2)
		return float64(r) / 1e6
	}
	b.run(8 * time.Second)
	if n := needs(); math.Abs(n/15-1) > 0.02 {
		t.Errorf("learned rate 8 s after it became greedy is %.1f Mbit/s, want 15", n)
	}
	b.run(30 * time.Second)
	if n := needs(); n < 25 {
		t.Errorf("learned rate 38 s after it became greedy is %.1f Mbit/s, want most of 45", n)
	}
	if b.control.Controlling() {
		t.Error("the set is controlled without congestion")
	}
}

// Connections that become greedy near the end of control are not released first. Until
// control started again they would have equal parts, whose rates would be learned.
//
// Connections that have nothing to send for a moment are not released, either.
func TestControlGreedyNearEnd(t *testing.T) {
	for _, c := range []struct{ after, pauses time.Duration }{{500, 0}, {1500, 0}, {2500, 0}, {2700, 0}, {3500, 0}, {1500, 1000}, {2000, 1200}, {2500, 500}} {
		b := &bottleneck{rate: 100e6, base: time.Millisecond, room: 20e6, of: map[collective.ID]*source{1: {offered: 60e6}, 2: {offered: 15e6}}}
		b.run(20 * time.Second)
		b.of[1].lost = true
		b.run(100 * time.Millisecond)
		if !b.control.Controlling() {
			t.Fatal("the set is not controlled after a loss")
		}
		b.run(c.after * time.Millisecond)
		was := b.control.Controlling()
		if c.pauses > 0 {
			for range 2 {
				b.greedy()
				b.run(c.pauses * time.Millisecond)
				b.of[1].offered, b.of[1].backlog = 70e6, 0
				b.of[2].offered, b.of[2].backlog = 17e6, 0
				b.run(200 * time.Millisecond)
			}
		}
		b.greedy()
		for range 50 {
			b.run(100 * time.Millisecond)
			if was && !b.control.Controlling() {
				t.Fatalf("greedy %d ms after control began, with pauses after %d: control ends", c.after, c.pauses)
			}
		}
		got := b.rates(10 * time.Second)
		if r := got[1] / got[2]; math.Abs(r/4-1) > 0.02 {
			t.Errorf("greedy %d ms after control began: %.2f to 1, want 4", c.after, r)
		}
	}
}

// With cross traffic that leaves 4 of 10 Mbit/s, connections with learned rates of 4.8
// and 2.4 have 2.67 and 1.33. When the cross traffic ends they catch up and are released.
func TestControlCrossTraffic(t *testing.T) {
	b := &bottleneck{rate: 10e6, base: 20 * time.Millisecond, room: 1e6, of: map[collective.ID]*source{1: {offered: 4.8e6}, 2: {offered: 2.4e6}}}
	b.run(25 * time.Second)
	b.rivalQueueFactor = 6e6
	b.run(5 * time.Second)
	got := b.rates(55 * time.Second)
	if r := got[1] / got[2]; math.Abs(r/2-1) > 0.05 {
		t.Errorf("%.2f to 1, want 2", r)
	}
	if sum := got[1] + got[2]; sum < 3.7e6 {
		t.Errorf("total rate is %.2f of 4 Mbit/s", sum/1e6)
	}
	b.rivalQueueFactor = 0
	b.run(5 * time.Second)
	for id, r := range b.rates(5 * time.Second) {
		if want := b.of[id].offered; r < 0.95*want {
			t.Errorf("rate of connection %d 5 s after the congestion is %.2f of %.2f Mbit/s", id, r/1e6, want/1e6)
		}
	}
	b.run(10 * time.Second)
	if b.control.Controlling() {
		t.Error("the set is controlled 20 s after the congestion")
	}
}

// A set whose connections all become idle while it is controlled is released, and its
// scale does not grow without bound. When they send again, the set learns and is
// controlled as before.
func TestControlIdle(t *testing.T) {
	b := &bottleneck{rate: 10e6, base: 20 * time.Millisecond, room: 1e6, of: map[collective.ID]*source{1: {offered: 4.8e6}, 2: {offered: 2.4e6}}}
	b.run(25 * time.Second)
	b.rivalQueueFactor = 6e6
	b.run(10 * time.Second)
	if !b.control.Controlling() {
		t.Fatal("the set is not controlled")
	}
	for _, s := range b.of {
		s.offered, s.backlog = 0, 0
	}
	b.run(2 * time.Second)
	for id, c := range b.control.Caps(b.now) {
		if c.Rate > 20e6 {
			t.Errorf("pace of connection %d after 2 s of silence is %v", id, c.Rate)
		}
	}
	b.run(8 * time.Second)
	if b.control.Controlling() {
		t.Error("the set is controlled 10 s after the last connection became idle")
	}
	b.of[1].offered, b.of[2].offered = 4.8e6, 2.4e6
	b.run(5 * time.Second)
	got := b.rates(30 * time.Second)
	if r := got[1] / got[2]; math.Abs(r/2-1) > 0.05 {
		t.Errorf("ratio after the idle time is %.2f to 1, want 2", r)
	}
}

// Delayed acknowledgements are not congestion, however much longer they make the round
// trip that TCP measures.
func TestControlDelayedAcknowledgements(t *testing.T) {
	var c collective.Control
	acked := 0.0
	for at := time.Duration(0); at < 20*time.Second; at += 23 * time.Millisecond {
		acked += 1e6 / 8 * 0.023
		rtt := 20 * time.Millisecond
		if at%(69*time.Millisecond) != 0 {
			rtt = 32 * time.Millisecond
		}
		c.Observe(1, collective.Reading{At: at, RTT: rtt, Newest: 20 * time.Millisecond, Acked: uint64(acked)})
		if c.Caps(at); c.Controlling() {
			t.Fatalf("the set is controlled at %v", at)
		}
	}
}

// Configured weights count in any unit: 0.02 and 0.01 are 2 to 1, and control begins at
// the learned rates.
func TestControlWeights(t *testing.T) {
	b := &bottleneck{rate: 100e6, base: 20 * time.Millisecond, room: 20e6, of: map[collective.ID]*source{1: {offered: 30e6}, 2: {offered: 30e6}}}
	b.control.SetWeight(1, 0.02)
	b.control.SetWeight(2, 0.01)
	b.run(10 * time.Second)
	b.greedy()
	b.run(10 * time.Second)
	got := b.rates(10 * time.Second)
	if r := got[1] / got[2]; math.Abs(r/2-1) > 0.05 || got[1]+got[2] < 90e6 {
		t.Errorf("rates are %.1f and %.1f Mbit/s, want 2 to 1 of 100", got[1]/1e6, got[2]/1e6)
	}
}

// A path that becomes longer is not congestion for ever: control ends and learning
// continues.
func TestControlLongerPath(t *testing.T) {
	b := &bottleneck{rate: 10e6, base: 20 * time.Millisecond, room: 1e6, of: map[collective.ID]*source{1: {offered: 4.8e6}, 2: {offered: 2.4e6}}}
	b.run(25 * time.Second)
	b.base = 60 * time.Millisecond
	b.run(15 * time.Second)
	for id, r := range b.rates(20 * time.Second) {
		if want := b.of[id].offered; r < 0.95*want {
			t.Errorf("rate of connection %d on the longer path is %.2f of %.2f Mbit/s", id, r/1e6, want/1e6)
		}
	}
	b.run(55 * time.Second)
	if b.control.Controlling() {
		t.Error("the set is controlled 90 s after the path became longer")
	}
}

// A clock that leaps, or a machine that stalls for an hour, changes nothing: the set is
// controlled as before.
func TestControlLeap(t *testing.T) {
	b := &bottleneck{rate: 10e6, base: 20 * time.Millisecond, room: 1e6, of: map[collective.ID]*source{1: {offered: 4.8e6}, 2: {offered: 2.4e6}}}
	b.run(25 * time.Second)
	b.rivalQueueFactor = 6e6
	b.run(10 * time.Second)
	b.leap(time.Hour)
	for id, c := range b.control.Caps(b.now) {
		if c.Rate > 20e6 || c.Rate == 0 || c.Window <= 0 {
			t.Errorf("caps of connection %d after the leap are %v, %v", id, c.Rate, c.Window)
		}
	}
	b.run(3 * time.Second)
	got := b.rates(20 * time.Second)
	if r := got[1] / got[2]; math.Abs(r/2-1) > 0.07 {
		t.Errorf("%.2f to 1, want 2", r)
	}
	if sum := got[1] + got[2]; sum < 3.6e6 {
		t.Errorf("total rate is %.2f of 4 Mbit/s", sum/1e6)
	}
}

// leap advances the time without any activity.
func (b *bottleneck) leap(took time.Duration) {
	b.now += took
	for _, s := range b.of {
		s.next += took
	}
}

// A connection whose own path is slow does not hold back another one for long that is in proportion to it: the set is released, and if the proportion is configured it is
// suspended for longer and longer times, and says what it was about.
func TestControlSuspends(t *testing.T) {
	for _, weighed := range []bool{false, true} {
		b := &bottleneck{rate: 10e6, base: 20 * time.Millisecond, room: 1e6, of: map[collective.ID]*source{1: {offered: 3e6}, 2: {offered: 3e6}}}
		for id := range b.of {
			if weighed {
				b.control.SetWeight(id, 1)
			}
		}
		b.run(20 * time.Second)
		b.greedy()
		b.of[2].paces = 0.2e6
		b.rivalQueueFactor = 5e6
		b.run(60 * time.Second)
		got := b.control.Suspended()
		if weighed && (got.At == 0 || got.Until <= got.At || got.Carried >= got.Fair) {
			t.Errorf("the set was suspended: %+v", got)
		}
		before, free := b.of[1].carried, 0.0
		for range 600 {
			had := b.of[1].carried
			b.run(100 * time.Millisecond)
			if b.of[1].carried-had > 0.3e6 {
				free++
			}
		}
		rate := (b.of[1].carried - before) / 60
		t.Logf("weights %v: %.2f Mbit/s, free in %.0f %% of the time, %+v", weighed, rate/1e6, free/6, got)
		if rate < 3e6 {
			t.Errorf("weights %v: the connection with the fast path has %.2f Mbit/s of the 4.8 that are left", weighed, rate/1e6)
		}
	}
}

// Connections with weights behind a limit of their own host, as that of a group, have their proportions and all of the limit, also when it shrinks and grows, though
// nothing is lost, and though there is no queue or one that they cannot shorten.
func TestControlHostLimit(t *testing.T) {
	for _, queue := range []time.Duration{0, 40 * time.Millisecond} {
		b := &bottleneck{rate: 1e9, base: 20 * time.Millisecond, host: 28e6, hostQueue: queue, of: map[collective.ID]*source{}}
		for i, w := range []float64{4, 2, 1} {
			b.of[collective.ID(i+1)] = &source{offered: math.Inf(1)}
			b.control.SetWeight(collective.ID(i+1), w)
		}
		for _, limit := range []float64{28e6, 14e6, 7e6, 28e6} {
			b.host = limit
			b.run(10 * time.Second)
			got := b.rates(10 * time.Second)
			sum := got[1] + got[2] + got[3]
			if least := 0.98 - queue.Seconds(); sum < least*limit { // a rate is the mean of some round trips
				t.Errorf("queue of %v: %.2f of %.0f Mbit/s are used", queue, sum/1e6, limit/1e6)
			}
			for i, w := range []float64{4, 2, 1} {
				if off := got[collective.ID(i+1)]/sum*7/w - 1; math.Abs(off) > 0.05 {
					t.Errorf("queue of %v: connection %d is %.0f %% off at %.0f Mbit/s: %v", queue, i+1, 100*off, limit/1e6, got)
				}
			}
		}
	}
}
