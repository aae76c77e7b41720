package stripe

import (
	"bytes"
	"cmp"
	"container/heap"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A network in virtual time: two agents, and streams between them on paths with a rate and a delay. A stream is a
// queue in the sender's socket, which the path empties at its rate, and from which bytes arrive in order.

type simPath struct {
	rate  float64 // bytes per second in each direction
	delay time.Duration
	dead  bool
	// lost reports whether a chunk loses a segment, so that it and what follows it on the stream arrive a round trip
	// later; nil loses none.
	lost func() bool
}

type simStream struct {
	path *simPath
	ends [2]simEnd // by sending agent
}

type simEnd struct {
	unsent  int
	freeAt  time.Duration // when the path has sent what was written
	arrived time.Duration // when the latest arrives
}

// lowWater is TCP_NOTSENT_LOWAT: a stream is writable while less waits in its socket.
const lowWater = 128 << 10

type simEvent struct {
	at  time.Duration
	seq int
	do  func()
}

type simQueue []simEvent

func (q simQueue) Len() int { return len(q) }
func (q simQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q simQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *simQueue) Push(x any)   { *q = append(*q, x.(simEvent)) }
func (q *simQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

// failer is a test, of testing or of rapid.
type failer interface {
	Fatalf(format string, args ...any)
}

type sim struct {
	t       failer
	now     time.Duration
	seq     int
	queue   simQueue
	agents  [2]*Session
	streams map[uint32]*simStream
	// paced is how many bytes per second a connection's reader takes, by agent and number; 0 is any.
	paced map[*Conn]float64
	apps  map[*Conn]*simApp
	opens int
}

// simApp is what uses a connection at one agent.
type simApp struct {
	left     int // bytes to write
	written  uint64
	received uint64
	sum, got uint64 // hashes of what was written and received
	ended    bool
	closed   bool
	reset    string
	readyAt  time.Duration
	last     time.Duration // when bytes arrived last
	stall    time.Duration // the longest time between two arrivals
}

func newSim(t failer, o Options) *sim {
	s := &sim{t: t, streams: map[uint32]*simStream{}, paced: map[*Conn]float64{}, apps: map[*Conn]*simApp{}}
	o.Free = func(data []byte) { // what is used again too early has another hash
		if len(data) > 0 && &data[0] != &zeros[0] {
			for n := range data {
				data[n] = 0xaa
			}
		}
	}
	for n := range s.agents {
		o.Dialer = n == 0
		s.agents[n] = NewSession(o)
	}
	s.every(50*time.Millisecond, func() {
		for n := range s.agents {
			s.agents[n].Tick(s.now)
			s.pump(n)
		}
	})
	return s
}

func (s *sim) after(d time.Duration, do func()) {
	s.seq++
	heap.Push(&s.queue, simEvent{s.now + d, s.seq, do})
}

func (s *sim) every(d time.Duration, do func()) {
	s.after(d, func() { do(); s.every(d, do) })
}

func (s *sim) run(until time.Duration) {
	for len(s.queue) > 0 && s.queue[0].at <= until {
		e := heap.Pop(&s.queue).(simEvent)
		s.now = e.at
		e.do()
	}
	s.now = until
}

func (s *sim) estimate(st *simStream, from int) Estimate {
	return Estimate{RTT: 2*st.path.delay + time.Duration(float64(64<<10)/st.path.rate*float64(time.Second)), Rate: st.path.rate, Unsent: st.ends[from].unsent}
}

func (s *sim) addStream(number uint32, p *simPath) {
	st := &simStream{path: p}
	s.streams[number] = st
	for n := range s.agents {
		s.agents[n].AddStream(number, s.estimate(st, n))
		s.agents[n].SetPath(number, fmt.Sprintf("%p", p))
		s.agents[n].Writable(number, s.estimate(st, n))
	}
	for n := range s.agents {
		s.pump(n)
	}
}

// remove ends a stream at both agents, as a reset of its connection does.
func (s *sim) remove(number uint32) {
	delete(s.streams, number)
	for n := range s.agents {
		s.agents[n].RemoveStream(number)
		s.pump(n)
	}
}

// pump sends what an agent can send, and handles its events.
func (s *sim) pump(n int) {
	a := s.agents[n]
	for again := true; again; {
		again = false
		for _, e := range a.Events() {
			s.handle(n, e)
			again = true
		}
		for _, c := range sortedConns(a) {
			s.write(c)
		}
		for number := range s.streams {
			a.Update(number, s.estimate(s.streams[number], n))
		}
		if number, f, ok := a.Next(s.now); ok {
			s.transmit(n, number, f)
			again = true
		}
	}
}

func (s *sim) transmit(n int, number uint32, f Frame) {
	st := s.streams[number]
	e := &st.ends[n]
	size := len(AppendHeader(nil, f)) + len(f.Payload)
	e.unsent += size
	// The caller of Next may use the payload until it calls Writable.
	write := sync.OnceFunc(func() { f.Payload = bytes.Clone(f.Payload) })
	e.freeAt = max(e.freeAt, s.now) + time.Duration(float64(size)/st.path.rate*float64(time.Second))
	s.after(e.freeAt-s.now, func() {
		if st.path.dead { // what TCP has not delivered stays in its socket
			return
		}
		e.unsent -= size
		write()
		if e.unsent < lowWater && s.streams[number] == st {
			s.agents[n].Writable(number, s.estimate(st, n))
			s.pump(n)
		}
		took := st.path.delay
		if st.path.lost != nil && st.path.lost() {
			took = 3 * st.path.delay
		}
		e.arrived = max(e.arrived, s.now+took)
		s.after(e.arrived-s.now, func() {
			if s.streams[number] != st || st.path.dead {
				return
			}
			if err := s.agents[1-n].Receive(number, f, s.now); err != nil {
				s.t.Fatalf("agent %d: %v: %v", 1-n, f.Kind, err)
			}
			s.pump(1 - n)
			s.after(ackDelay, func() { s.pump(1 - n) })
		})
	})
	if e.unsent < lowWater {
		write()
		s.agents[n].Writable(number, s.estimate(st, n))
	}
}

// open opens a connection from an agent that writes some bytes, and gets some back.
func (s *sim) open(n, bytes, back int) *Conn {
	s.opens++
	c := s.agents[n].Open(fmt.Append(nil, back))
	s.apps[c] = &simApp{left: bytes, last: s.now}
	s.pump(n)
	return c
}

func (s *sim) write(c *Conn) {
	app := s.apps[c]
	if app == nil || app.closed || c.state == unopened {
		return
	}
	for app.left > 0 && c.Room() > 0 {
		data := zeros[:min(app.left, MaxPayload, c.Room())]
		if app.left < endless {
			data = bytes.Clone(data)
			for i := range data {
				data[i] = byte(app.written>>3) ^ byte(i)
			}
			app.sum = hash(app.sum, app.written, data)
		}
		app.written += uint64(len(data))
		app.left -= len(data)
		c.Write(data)
	}
	if app.left == 0 {
		app.closed = true
		c.CloseWrite()
	}
}

// endless is more than any test carries; zeros is what a connection that writes so much writes.
const endless = 1 << 40

var zeros = make([]byte, MaxPayload)

// hash is the same for the same bytes however they are cut.
func hash(sum, at uint64, data []byte) uint64 {
	for i, b := range data {
		sum += (at + uint64(i) + 1) * uint64(b)
	}
	return sum
}

func (s *sim) handle(n int, e Event) {
	c := e.Conn
	switch e.Kind {
	case EventOpen:
		back := 0
		fmt.Sscan(string(e.Description), &back)
		s.apps[c] = &simApp{left: back, last: s.now}
		c.Accept()
		s.read(n, c)
	case EventData:
		s.read(n, c)
	case EventReset:
		if app := s.apps[c]; app != nil {
			app.reset = e.Reason
		}
	}
}

func (s *sim) read(n int, c *Conn) {
	app := s.apps[c]
	if app == nil || s.now < app.readyAt {
		return
	}
	for {
		data, end := c.Read()
		app.ended = app.ended || end
		if data == nil {
			return
		}
		if app.received < endless/2 && &data[0] != &zeros[0] {
			app.got = hash(app.got, app.received, data)
		}
		app.received += uint64(len(data))
		app.stall, app.last = max(app.stall, s.now-app.last), s.now
		if rate := s.paced[c]; rate > 0 {
			took := time.Duration(float64(len(data)) / rate * float64(time.Second))
			app.readyAt = s.now + took
			s.after(took, func() {
				c.Consumed(len(data), s.now)
				s.read(n, c)
				s.pump(n)
			})
			return
		}
		c.Consumed(len(data), s.now)
	}
}

// peer returns the other agent's end of a connection.
func (s *sim) peer(n int, c *Conn) *simApp {
	for o, app := range s.apps {
		if o.Number == c.Number && o.session == s.agents[1-n] {
			return app
		}
	}
	return &simApp{}
}

var defaults = Options{ConnWindow: 64 << 20, SessionWindow: 512 << 20, MaxPending: 1 << 20}

const mbit = 125_000.0 // bytes per second

// Two paths carry the sum of their rates whatever their delays and rates, and never less than the better alone.
func TestPathsAddUp(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		rate  [2]float64
		delay [2]time.Duration
	}{
		{[2]float64{300, 300}, [2]time.Duration{12500 * time.Microsecond, 12500 * time.Microsecond}},
		{[2]float64{300, 300}, [2]time.Duration{12500 * time.Microsecond, 50 * ms}},
		{[2]float64{300, 300}, [2]time.Duration{12500 * time.Microsecond, 200 * ms}},
		{[2]float64{100, 500}, [2]time.Duration{10 * ms, 10 * ms}},
		{[2]float64{20, 300}, [2]time.Duration{12500 * time.Microsecond, 12500 * time.Microsecond}},
		{[2]float64{1000, 1000}, [2]time.Duration{27 * ms, 80 * ms}},
	} {
		t.Run(fmt.Sprint(c.rate, c.delay), func(t *testing.T) {
			s := newSim(t, defaults)
			for n := range c.rate {
				s.addStream(uint32(n+1), &simPath{rate: c.rate[n] * mbit, delay: c.delay[n]})
			}
			conn := s.open(0, 2*endless, 0)
			s.run(10 * time.Second)
			before := s.peer(0, conn).received
			s.run(20 * time.Second)
			got := float64(s.peer(0, conn).received-before) / 10 / mbit
			if sum := c.rate[0] + c.rate[1]; got < 0.95*sum {
				t.Errorf("%.0f Mbit/s of %.0f", got, sum)
			}
		})
	}
}

// Four streams fill a path on which every third chunk is retransmitted: a loss on one stream does not stop the others.
func TestLosses(t *testing.T) {
	s := newSim(t, defaults)
	random := rand.New(rand.NewPCG(1, 1))
	for n := range 4 {
		s.addStream(uint32(n+1), &simPath{rate: 100 * mbit, delay: 12500 * time.Microsecond, lost: func() bool { return random.Float64() < 1./3 }})
	}
	conn := s.open(0, 2*endless, 0)
	s.run(2 * time.Second)
	before := s.peer(0, conn).received
	idle, _ := s.agents[0].Idle()
	s.run(12 * time.Second)
	if got := float64(s.peer(0, conn).received-before) / 10 / mbit; got < 380 {
		t.Errorf("%.0f Mbit/s of 400", got)
	}
	if after, _ := s.agents[0].Idle(); after != idle {
		t.Errorf("the sender had nothing that it might send %d times", after-idle)
	}
}

// A slow path that retransmits does not make two paths carry less than the fast one alone, although the receiver's window
// is too small for both: the fast one carries again what a connection without credit waits for.
func TestOvertake(t *testing.T) {
	options := defaults
	options.ConnWindow = 8 << 20
	s := newSim(t, options)
	s.addStream(1, &simPath{rate: 300 * mbit, delay: 12500 * time.Microsecond})
	random := rand.New(rand.NewPCG(1, 1))
	s.addStream(2, &simPath{rate: 300 * mbit, delay: 100 * time.Millisecond, lost: func() bool { return random.Float64() < 0.03 }})
	conn := s.open(0, 2*endless, 0)
	s.run(2 * time.Second)
	before := s.peer(0, conn).received
	s.run(12 * time.Second)
	if got := float64(s.peer(0, conn).received-before) / 10 / mbit; got < 300 {
		t.Errorf("%.0f Mbit/s, the fast path alone has 300", got)
	}
}

// A path that dies, with its streams open or not, loses nothing and does not stop the other for long.
func TestPathDies(t *testing.T) {
	for _, closed := range []bool{false, true} {
		s := newSim(t, defaults)
		good, bad := &simPath{rate: 100 * mbit, delay: 20 * time.Millisecond}, &simPath{rate: 100 * mbit, delay: 25 * time.Millisecond}
		s.addStream(1, good)
		s.addStream(2, bad)
		conn := s.open(0, 100<<20, 0)
		s.run(2 * time.Second)
		bad.dead = true
		if closed {
			s.remove(2)
		}
		s.run(15 * time.Second)
		from, to := s.apps[conn], s.peer(0, conn)
		if !to.ended || to.received != from.written || to.got != from.sum {
			t.Errorf("closed %v: received %d bytes of %d, ended %v, the same %v", closed, to.received, from.written, to.ended, to.got == from.sum)
		}
		if to.stall > 600*time.Millisecond {
			t.Errorf("closed %v: nothing arrived for %v", closed, to.stall)
		}
	}
}

// A reader that takes 1 Mbit/s does not delay another connection, and what it has not read is bounded.
func TestSlowReader(t *testing.T) {
	s := newSim(t, defaults)
	s.addStream(1, &simPath{rate: 100 * mbit, delay: 10 * time.Millisecond})
	slow := s.open(0, 2*endless, 0)
	s.run(100 * time.Millisecond)
	s.paced[s.agents[1].Conn(slow.Number)] = 1 * mbit
	s.run(5 * time.Second)
	fast := s.open(0, 2*endless, 0)
	s.run(6 * time.Second)
	before := s.peer(0, fast).received
	s.run(16 * time.Second)
	if got := float64(s.peer(0, fast).received-before) / 10 / mbit; got < 93 {
		t.Errorf("beside a slow reader %.1f Mbit/s of 100", got)
	}
	if held := s.agents[1].Conn(slow.Number).in.bytes; held > 2<<20 {
		t.Errorf("%d bytes wait for the slow reader", held)
	}
}

// A small connection on warm streams takes one round trip, as the request and the answer do.
func TestSmallConnection(t *testing.T) {
	s := newSim(t, defaults)
	s.addStream(1, &simPath{rate: 100 * mbit, delay: 50 * time.Millisecond})
	began := s.now
	conn := s.open(0, 1000, 10_000)
	for !s.apps[conn].ended && s.now < 5*time.Second {
		s.run(s.now + time.Millisecond)
	}
	if took := s.now - began; took > 105*time.Millisecond {
		t.Errorf("a request and its answer took %v at 100 ms", took)
	}
	s.run(s.now + time.Second)
	if s.agents[0].Conns() != 0 || s.agents[1].Conns() != 0 {
		t.Errorf("%d and %d connections are left", s.agents[0].Conns(), s.agents[1].Conns())
	}
}

// Whatever streams end, die, come and are slow, every connection gets all bytes once and ends, with bounded memory.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{ConnWindow: 1 << 20, SessionWindow: 4 << 20, MaxPending: 128 << 10}
		s := newSim(t, o)
		number := uint32(0)
		path := rapid.Custom(func(t *rapid.T) *simPath {
			return &simPath{
				rate:  float64(rapid.IntRange(1, 100).Draw(t, "Mbit/s")) * mbit,
				delay: time.Duration(rapid.IntRange(0, 300).Draw(t, "delay")) * time.Millisecond,
			}
		})
		add := func(p *simPath) { number++; s.addStream(number, p) }
		add(path.Draw(t, "first"))
		var conns []*Conn
		var froms []int
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0, 1:
				from := rapid.IntRange(0, 1).Draw(t, "from")
				c := s.open(from, rapid.IntRange(0, 600_000).Draw(t, "bytes"), rapid.IntRange(0, 300_000).Draw(t, "back"))
				if rapid.Bool().Draw(t, "slow") {
					s.paced[c] = 5 * mbit
				}
				conns, froms = append(conns, c), append(froms, from)
			case 2:
				add(path.Draw(t, "path"))
			case 3, 4:
				if len(s.streams) > 1 {
					victim := rapid.SampledFrom(slices.Sorted(maps.Keys(s.streams))).Draw(t, "victim")
					s.streams[victim].path.dead = true
					if rapid.Bool().Draw(t, "at once") {
						s.remove(victim)
					} else {
						s.after(2*time.Second, func() { s.remove(victim) })
					}
					if !slices.ContainsFunc(slices.Collect(maps.Values(s.streams)), func(st *simStream) bool { return !st.path.dead }) {
						add(path.Draw(t, "another"))
					}
				}
			}
			s.run(s.now + time.Duration(rapid.IntRange(0, 500).Draw(t, "wait"))*time.Millisecond)
		}
		s.run(s.now + 10*time.Minute)
		for n, c := range conns {
			from, to := s.apps[c], s.peer(froms[n], c)
			if !from.ended || !to.ended || to.received != from.written || to.got != from.sum || from.received != to.written || from.got != to.sum {
				t.Fatalf("%s\nconnection %d: wrote %d, received %d, ended %v; back %d, %d, %v", s.dump(), c.Number, from.written, to.received, to.ended, to.written, from.received, from.ended)
			}
		}
		for n, a := range s.agents {
			if a.Conns() != 0 || a.window != 0 || a.backlog != 0 || len(a.sending) != 0 || len(a.again) != 0 {
				t.Fatalf("%s\nagent %d has %d connections, window %d, backlog %d, %d to send", s.dump(), n, a.Conns(), a.window, a.backlog, len(a.sending))
			}
		}
	})
}

// dump describes both agents, for a failed test.
func (s *sim) dump() string {
	out := fmt.Sprintf("now %v\n", s.now)
	for n, a := range s.agents {
		out += fmt.Sprintf("agent %d: control %d again %d sending %d backlog %d window %d newest %d next %d\n", n, len(a.control), len(a.again), len(a.sending), a.backlog, a.window, a.newest, a.next)
		for _, st := range a.order {
			out += fmt.Sprintf("  stream %d dead %v writable %v suspect %v sent %d acked %d received %d reported %d due %v/%v est %+v\n", st.number, s.streams[st.number] == nil || s.streams[st.number].path.dead, st.writable, st.suspect, len(st.sent), st.acknowledged, st.received, st.reported, st.dueSet, st.due, st.estimate)
		}
		for _, c := range sortedConns(a) {
			out += fmt.Sprintf("  conn %d state %d pending %d unacked %d closed %v credit %d offset %d in.next %d ended %v end %d granted %d\n", c.Number, c.state, len(c.pending), len(c.unacked), c.closed, c.credit, c.offset, c.in.next, c.in.ended, c.in.end, c.granted)
			for _, k := range c.unacked {
				out += fmt.Sprintf("    chunk %d+%d copies %d acked %v waiting %v\n", k.offset, len(k.data), k.copies, k.acked, k.waiting)
			}
		}
	}
	return out
}

// sortedConns returns the connections by number, so that a simulation does the same in each run.
func sortedConns(s *Session) []*Conn {
	return slices.SortedFunc(maps.Values(s.conns), func(a, b *Conn) int { return cmp.Compare(a.Number, b.Number) })
}
