package wire

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/realtime"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/unit"
)

// Constants of a direction's thread, chosen by this project.
const (
	// wakeBurst is how many wake-ups a direction may accumulate, so that occasional pings are not
	// delayed.
	wakeBurst = 16
	// fastRate is the rate above which a direction is fast: at 500 Mbit/s a wake-up every Together,
	// with its write and the receiver's processing, is about half of the emulator's cost.
	fastRate = 500 * unit.Mbit
	// spin is how early an exact direction wakes up: most timers of a virtual machine were less late.
	spin = 50 * time.Microsecond
	// acceptFrames is how many frames are read before due segments are checked again: at 64 KB each,
	// they take less than 0.1 ms.
	acceptFrames = 8
)

// The Go scheduler preempts every thread after 10 ms (forcePreemptNS in runtime/proc.go), to stop the
// world. It resumes the thread after 0.1 ms, or after 5 if a sender uses the other processor: in the
// middle of a probe train that affected a third of the measurements of available bandwidth. So a
// direction yields when it carries nothing and nothing arrived for idleSome, and otherwise once in
// longestHold: stopping the world may have to wait for so long.
const (
	shortestHold = 10 * time.Millisecond
	longestHold  = time.Second
	idleSome     = 2 * time.Millisecond
)

// How often a direction reads the clock, chosen by this project. It notices a stall that is longer
// than that and LateBound together.
const (
	beatBusy  = 2 * time.Millisecond
	beatCross = 10 * time.Millisecond
	beatIdle  = 100 * time.Millisecond
	// idleAfter is how long nothing must have arrived.
	idleAfter = 100 * time.Millisecond
)

// direction carries frames in one direction. Only its thread uses the fields after bell.
type direction struct {
	mu        sync.Mutex // guards published; the thread never waits for it
	published Stats
	closing   atomic.Bool
	change    atomic.Pointer[link.Spec]
	bell      int // an eventfd that becomes readable at Close and Change

	in, out int
	exact   bool
	cross   bool
	link    *link.Link
	ring    *ring
	scratch []byte // buffer for frames that find the ring full
	space   []byte // buffer for headers of segments
	run     run
	newest  newest
	trace   *tracer       // nil without
	parts   []link.Result // segments of run, with a trace

	start    int64
	came     int64 // time of the last frame
	pace     int64 // no wake-up earlier
	other    *direction
	fast     atomic.Bool // more than fastRate has left since before; never for an exact direction
	before   int64       // start of the last sleep
	left     uint64      // bytes that had left at that time
	held     int64       // when the scheduler last had the thread
	planned  int64       // planned time of the next clock reading
	measured int64       // when the processor time was read
	stats    Stats
}

// run is consecutive segments of one frame that are written together.
type run struct {
	slot, from, to int
	mark           bool
	released       int64 // the first
	bytes          int
}

// newest is the last frame while it is offered: how many of its last segments the queue has dropped.
type newest struct{ slot, from, to int }

func newDirection(in, out int, o Options) (*direction, error) {
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("cannot create an eventfd: %w", err)
	}
	ring, err := newRing(ringSize(&o.Link))
	if err != nil {
		unix.Close(bell)
		return nil, err
	}
	now := nanotime()
	d := &direction{
		in: in, out: out, bell: bell, exact: o.Exact, cross: len(o.Link.Cross) > 0,
		link: link.New(o.Link, o.Seed, now), ring: ring, start: now, planned: now,
		scratch: make([]byte, maxFrame), space: make([]byte, maxHeader), newest: newest{slot: -1},
	}
	d.stats.Begun = now
	d.stats.LateBound = o.LateBound
	if d.stats.LateBound == 0 {
		d.stats.LateBound = DefaultLateBound
	}
	if o.Trace != nil {
		d.trace = newTracer(o.Trace, now)
		d.parts = make([]link.Result, 0, maxSegments)
	}
	d.published = d.stats
	return d, nil
}

// wake makes the thread check closing and change.
func (d *direction) wake() { unix.Write(d.bell, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

// carry is the main loop: take what the link releases, offer what has arrived, and sleep until either
// happens.
func (d *direction) carry() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	restore := realtime.Thread(priority)
	defer restore()
	realtime.DisablePreemption()
	d.held = nanotime()
	for !d.closing.Load() {
		now := nanotime()
		if d.change.Load() != nil || now-d.held > int64(longestHold) {
			d.letGo()
			now = d.held
		}
		done := d.stats.Frames + d.stats.Writes
		d.collect(now)
		came := d.accept()
		if !d.keeps(now) {
			d.release()
		}
		if gap := now - d.planned; came > 0 && gap > int64(d.stats.LateBound) {
			d.stats.late(gap)
		}
		d.planned = now
		d.publish(now, false)
		if came < acceptFrames {
			d.sleep(d.stats.Frames+d.stats.Writes > done)
		}
	}
	realtime.EnablePreemption()
	d.publish(nanotime(), true)
}

// letGo yields to the Go scheduler, and applies a pending Change.
func (d *direction) letGo() {
	realtime.EnablePreemption()
	if s := d.change.Swap(nil); s != nil {
		d.link.Change(nanotime(), *s)
		d.ring.grow(ringSize(s))
		d.cross = len(s.Cross) > 0
	}
	realtime.DisablePreemption()
	d.held = nanotime()
}

// accept reads the frames that have arrived, up to a limit, offers them to the link and returns how
// many.
func (d *direction) accept() int {
	for n := range acceptFrames {
		b := d.ring.space()
		full := b == nil
		if full {
			b = d.scratch
		}
		size, err := read(d.in, b)
		if err != 0 || size < vnetHeader+minFrame {
			return n
		}
		d.stats.Frames++
		d.came = nanotime()
		if full {
			d.stats.Dropped++
			continue
		}
		d.offer(b[:size], d.came)
		d.collect(d.came)
		d.shorten()
	}
	return acceptFrames
}

// minFrame is the size of an Ethernet header.
const minFrame = 14

// offer offers a frame's segments, all at the same time, as its sender sent them.
func (d *direction) offer(b []byte, now int64) {
	f := parse(b)
	slot := d.ring.push(len(b), f)
	d.newest = newest{slot: slot}
	for i := range int(f.segments) {
		d.link.Offer(now, link.Packet{Size: f.segment(i), DSCP: f.dscp, ECN: f.ecn, Ref: reference(slot, i)})
	}
}

// shorten frees the memory of the segments of the newest frame that the queue has dropped.
func (d *direction) shorten() {
	s := &d.ring.slots[d.newest.slot]
	if s.left > 0 && d.newest.to == int(s.segments) && d.newest.from > 0 {
		d.ring.shorten(d.newest.slot, vnetHeader+s.upTo(d.newest.from))
	}
	d.newest.slot = -1
}

// collect takes the link's results. The last run stays open, because later segments may belong to it.
func (d *direction) collect(now int64) {
	for {
		r, ok := d.link.Take(now)
		switch {
		case !ok:
			return
		case r.Fate != link.Delivered:
			d.stats.dropped(&r)
			if !r.Cross {
				d.drop(r.Ref)
			}
			d.log(&r, 0)
		case r.Cross:
			d.stats.CrossBytes += uint64(r.Size)
			d.log(&r, 0)
		default:
			d.join(&r)
		}
	}
}

// drop records a dropped segment.
func (d *direction) drop(ref uint32) {
	slot, i := dereference(ref)
	if n := &d.newest; n.slot == slot {
		if i != n.to {
			n.from = i
		}
		n.to = i + 1
	}
	d.ring.done(slot)
}

// join adds a segment to the run, or begins a new one.
func (d *direction) join(r *link.Result) {
	slot, i := dereference(r.Ref)
	if c := &d.run; c.from == c.to || d.exact || slot != c.slot || i != c.to || r.Marked != c.mark || r.Released-c.released > d.together() {
		d.release()
		*c = run{slot: slot, from: i, to: i, mark: r.Marked, released: r.Released}
	}
	d.run.to++
	d.run.bytes += r.Size
	if d.trace != nil {
		d.parts = append(d.parts, *r)
	}
}

// keeps reports whether the run waits for the rest of its frame.
func (d *direction) keeps(now int64) bool {
	c := &d.run
	return c.from < c.to && d.fast.Load() && now < c.released+d.together() && c.to < int(d.ring.slots[c.slot].segments)
}

// release writes the run.
func (d *direction) release() {
	c := &d.run
	n := c.to - c.from
	if n == 0 {
		return
	}
	head, body := d.ring.slots[c.slot].cut(d.ring.bytes(c.slot), c.from, c.to, c.mark, d.space)
	begun := nanotime()
	err := write(d.out, head, body)
	d.stats.Writing += time.Duration(nanotime() - begun)
	d.stats.late(begun - c.released)
	d.stats.Writes++
	if err != 0 {
		d.stats.Failed++
	} else {
		d.stats.Segments += uint64(n)
		d.stats.Bytes += uint64(c.bytes)
		if c.mark {
			d.stats.Marked += uint64(n)
		}
	}
	for range n {
		d.ring.done(c.slot)
	}
	for i := range d.parts {
		d.log(&d.parts[i], begun)
	}
	d.parts = d.parts[:0]
	c.from = c.to
}

// log adds a result to the release log, if there is one.
func (d *direction) log(r *link.Result, written int64) {
	if d.trace != nil && !d.trace.add(r, written) {
		d.stats.Untraced++
	}
}

// sleep waits for a frame, for the link's next release, or for the next clock reading. Unless the
// direction is exact, it sleeps at least until its pace allows a wake-up, if it had something to do
// before. A wake-up without work is not counted: otherwise a direction that was busy once would wake
// up at its pace ever after, and add half of that to every delay.
func (d *direction) sleep(busy bool) {
	now := nanotime()
	if !d.exact && (busy || d.run.from < d.run.to) {
		d.fast.Store((d.stats.Bytes-d.left)*8e9 > uint64(now-d.before)*uint64(fastRate))
		d.before, d.left = now, d.stats.Bytes
		if until := d.paced(now); until > now {
			d.planned = until
			realtime.Sleep(until)
			return
		}
	}
	at := now + int64(d.beat(now))
	next, carries := d.link.Next()
	if carries {
		at = min(at, next)
	}
	d.planned = at
	if d.exact {
		at -= int64(spin)
	}
	if at <= now {
		return
	}
	patient := !carries && now-d.came > int64(idleSome)
	if patient && now-d.held > int64(shortestHold) {
		d.letGo()
	}
	fds := [2]unix.PollFd{{Fd: int32(d.in), Events: unix.POLLIN}, {Fd: int32(d.bell), Events: unix.POLLIN}}
	realtime.Poll(fds[:], max(at-nanotime(), 0), patient)
	if fds[1].Revents != 0 {
		var rung [8]byte
		read(d.bell, rung[:])
	}
}

// together returns how long a segment may wait for others.
func (d *direction) together() int64 {
	if d.fast.Load() {
		return int64(TogetherFast)
	}
	return int64(Together)
}

// paced returns when a direction may wake up: when its run is due, if it has one, otherwise when its
// pace allows. The opposite of a fast direction has the same pace: otherwise each of its
// acknowledgements would be a wake-up.
func (d *direction) paced(now int64) int64 {
	if d.run.from < d.run.to {
		return d.run.released + d.together()
	}
	gap := max(d.together(), d.other.together())
	d.pace = max(d.pace, now-wakeBurst*gap) + gap
	return d.pace
}

// beat returns how long the direction may sleep.
func (d *direction) beat(now int64) time.Duration {
	switch {
	case now-d.came < int64(idleAfter):
		return beatBusy
	case d.cross:
		return beatCross
	}
	return beatIdle
}

// publishEvery is how often the thread's processor time is read.
const publishEvery = 50 * time.Millisecond

// publish publishes the counts, unless a reader holds the lock.
func (d *direction) publish(now int64, last bool) {
	if last {
		d.mu.Lock()
	} else if !d.mu.TryLock() {
		return
	}
	defer d.mu.Unlock()
	d.stats.Duration = time.Duration(now - d.start)
	if last || now-d.measured > int64(publishEvery) {
		d.measured = now
		d.stats.User, d.stats.System = cpuTime()
	}
	d.published = d.stats
}
