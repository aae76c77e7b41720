package wire

import (
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"headgate/lab/link"
	"headgate/unit"
)

// Options of one direction.
type Options struct {
	Link link.Spec
	// Exact takes super-packets apart, so that each segment has its own time.
	Exact bool
	// Seed of everything random.
	Seed uint64
	// LateBound is the lateness from which a segment is counted as late; 0 is
	// LateBound.
	LateBound time.Duration
	// Trace, if set, gets the release log.
	Trace io.Writer
}

// Stats are the counts of one direction since Start.
type Stats struct {
	Frames  uint64 `json:"frames"`
	Bytes   uint64 `json:"bytes"`
	Dropped uint64 `json:"dropped_frames"` // the ring was full
	Failed  uint64 `json:"failed_frames"`  // the receiving device did not take it
	// WorstLate is the most that a frame was written after it was due, and Late
	// counts the frames that were late by more than LateBound.
	WorstLate time.Duration `json:"worst_late_ns"`
	Late      uint64        `json:"late_frames"`
}

// LateBound is the lateness from which a frame is counted: a tenth of the
// smallest RTT that the benches use.
const LateBound = 100 * time.Microsecond

// Constants of the ring, ours. It holds the delay's worth of the rate and a
// quarter more; without a rate, of assumedRate, which is what one core carries.
// Besides, it has room for what a TAP's queue of 1,000 frames may hand over at
// once after a standstill: 1 MiB was too little for that.
const (
	spareRing   = 8 << 20
	assumedRate = 10 * unit.Gbit
	maxRing     = 256 << 20
)

// Link joins two TAP devices.
type Link struct {
	taps [2]*Tap
	dirs [2]*direction
	stop int // an eventfd that becomes readable at Close
	done sync.WaitGroup
}

// direction carries frames one way.
type direction struct {
	in, out, stop int
	spec          atomic.Pointer[link.Spec]
	bound         int64 // ns
	busy          int64 // when the serialiser is free
	ring          *ring

	frames, bytes, dropped, failed, late atomic.Uint64
	worst                                atomic.Int64
}

// Start carries frames between the taps: options[0] is from taps[0] to taps[1].
// The link owns the taps from now on. Each direction takes an OS thread, which
// runs in real time (SCHED_FIFO) where that is allowed, and a P of the Go
// scheduler, so that it does not wait for the program's other goroutines.
func Start(taps [2]*Tap, options [2]Options) (*Link, error) {
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		taps[0].Close()
		taps[1].Close()
		return nil, fmt.Errorf("make eventfd: %w", err)
	}
	l := &Link{taps: taps, stop: stop}
	for i, o := range options {
		l.dirs[i] = &direction{
			in: taps[i].fd, out: taps[1-i].fd, stop: stop,
			bound: int64(o.LateBound), ring: newRing(ringSize(o)),
		}
		if o.LateBound == 0 {
			l.dirs[i].bound = int64(LateBound)
		}
		l.dirs[i].spec.Store(&o.Link)
	}
	addProcs(len(l.dirs))
	for _, d := range l.dirs {
		l.done.Go(d.run)
	}
	return l, nil
}

// Change gives one direction (0 is forward) other properties.
func (l *Link) Change(direction int, s link.Spec) { l.dirs[direction].spec.Store(&s) }

func ringSize(o Options) int {
	rate := o.Link.Rate
	if rate == 0 {
		rate = assumedRate
	}
	return int(min(1.25*o.Link.Delay.Seconds()*float64(rate)/8+spareRing, maxRing))
}

var procs sync.Mutex

func addProcs(n int) {
	procs.Lock()
	defer procs.Unlock()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + n)
}

// Stats are the counts of both directions.
func (l *Link) Stats() (s [2]Stats) {
	for i, d := range l.dirs {
		s[i] = Stats{
			Frames: d.frames.Load(), Bytes: d.bytes.Load(), Dropped: d.dropped.Load(), Failed: d.failed.Load(),
			WorstLate: time.Duration(d.worst.Load()), Late: d.late.Load(),
		}
	}
	return s
}

// Close stops the threads and removes both devices; frames that are held are lost.
func (l *Link) Close() {
	unix.Write(l.stop, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	l.done.Wait()
	addProcs(-len(l.dirs))
	unix.Close(l.stop)
	for _, t := range l.taps {
		t.Close()
	}
}

// accept is how many frames are taken in before due ones are looked at again: a
// full burst of reads (64 KB each, 15 us) delays a due frame by less than 0.1 ms.
const accept = 4

// run is the whole idea: write what is due, take in what has come, sleep until
// either happens.
func (d *direction) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	restore := realtime()
	defer restore()
	scratch := make([]byte, maxFrame)
	fds := []unix.PollFd{{Fd: int32(d.in), Events: unix.POLLIN}, {Fd: int32(d.stop), Events: unix.POLLIN}}
	for {
		now := nanotime()
		frame, due, ok := d.ring.first()
		if ok && due <= now {
			d.release(frame, now-due)
			d.ring.pop()
		}
		took := d.take(scratch)
		if took > 0 || ok && due <= now {
			continue
		}
		var timeout *unix.Timespec
		if ok {
			t := unix.NsecToTimespec(max(due-nanotime(), 0))
			timeout = &t
		}
		if _, err := unix.Ppoll(fds, timeout, nil); err != nil && err != unix.EINTR {
			return
		}
		if fds[1].Revents != 0 {
			return
		}
	}
}

// take reads the frames that have come, a few at most, and says how many.
func (d *direction) take(scratch []byte) int {
	for i := range accept {
		buf := d.ring.space()
		full := buf == nil
		if full {
			buf = scratch
		}
		n, err := read(d.in, buf)
		if err != 0 || n <= vnetHeader {
			return i
		}
		if full {
			d.dropped.Add(1)
			continue
		}
		now, spec := nanotime(), d.spec.Load()
		free := now
		if spec.Rate > 0 {
			free = max(now, d.busy)
			if free-now > int64(queueTime(spec)) {
				d.dropped.Add(1)
				continue
			}
			free += int64(float64(n-vnetHeader) * 8e9 / float64(spec.Rate))
			d.busy = free
		}
		d.ring.push(n, free+int64(spec.Delay))
	}
	return accept
}

// queueTime is the bound of what waits before the serialiser, as time.
func queueTime(s *link.Spec) time.Duration {
	switch q := s.Queue; {
	case q.Time > 0:
		return q.Time
	case q.Bytes > 0:
		return time.Duration(float64(q.Bytes) * 8e9 / float64(s.Rate))
	case q.Segments > 0:
		return time.Duration(float64(q.Segments) * link.FullFrame * 8e9 / float64(s.Rate))
	}
	return link.DefaultQueue
}

func (d *direction) release(frame []byte, late int64) {
	if _, err := write(d.out, frame); err != 0 {
		d.failed.Add(1)
		return
	}
	d.frames.Add(1)
	d.bytes.Add(uint64(len(frame) - vnetHeader))
	if late > d.bound {
		d.late.Add(1)
	}
	if late > d.worst.Load() {
		d.worst.Store(late)
	}
}

// read and write do not tell the Go scheduler: they never block, and to hand the
// thread's P back and forth would cost more than the call.

func read(fd int, p []byte) (int, unix.Errno) {
	n, _, e := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
	return int(n), e
}

func write(fd int, p []byte) (int, unix.Errno) {
	n, _, e := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
	return int(n), e
}

var epoch = time.Now()

// nanotime is a monotonic clock without a system call.
func nanotime() int64 { return int64(time.Since(epoch)) }

// realtime makes the thread SCHED_FIFO, or at least its timers exact, and returns
// what undoes it. New threads do not inherit it.
func realtime() (restore func()) {
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	before, err := unix.SchedGetAttr(0, 0)
	if err == nil {
		fifo := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 10, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
		err = unix.SchedSetAttr(0, &fifo, 0)
	}
	return func() {
		unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0)
		if err == nil {
			before.Flags = 0
			unix.SchedSetAttr(0, before, 0)
		}
	}
}
