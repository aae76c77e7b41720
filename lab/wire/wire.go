package wire

import (
	"errors"
	"io"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/unit"
)

// Options of one direction.
type Options struct {
	// Link has the properties of the direction.
	Link link.Spec
	// Exact writes every segment alone and at its own time, at the cost of a processor: it busy-waits
	// for the last 50 us.
	Exact bool
	// Seed of all random numbers.
	Seed uint64
	// LateBound is the lateness above which a write is counted; 0 is DefaultLateBound.
	LateBound time.Duration
	// Trace, if not nil, gets the release log. Segments in flight at Close are not in it.
	Trace io.Writer
}

// Constants, chosen by this project.
const (
	// Together is the maximum time between segments of a super-packet that are written together, and
	// the interval between two wake-ups of a busy direction. At 200 Mbit/s it combines 5 frames in one
	// write, and costs half of it in mean delay.
	Together = 250 * time.Microsecond
	// TogetherFast applies to a direction above 500 Mbit/s: a whole super-packet at 1 Gbit/s takes 545
	// us.
	TogetherFast = 550 * time.Microsecond
	// DefaultLateBound is 1 ms, the accepted error of a ping's p99, and about twice TogetherFast.
	DefaultLateBound = time.Millisecond
	// VeryLate is in LateBounds: 200 ms at the default, from which TCP retransmits what was only
	// delayed (TCP_RTO_MIN, include/net/tcp.h).
	VeryLate = 200
	// assumedRate limits the memory of a direction without a rate: the rate that one core carries.
	assumedRate = 10 * unit.Gbit
)

// Link connects two TAP devices.
type Link struct {
	taps [2]*Tap
	dirs [2]*direction
	done sync.WaitGroup

	mu     sync.Mutex // guards the following
	closed bool
	last   [2]Stats // of a closed link
}

// Start carries frames between the taps: options[0] is from taps[0] to taps[1]. The link owns the taps
// from now on. Each direction takes an OS thread, which runs in real time (SCHED_FIFO) if permitted,
// and a P of the Go scheduler, so that it does not wait for the program's other goroutines.
func Start(taps [2]*Tap, options [2]Options) (*Link, error) {
	l := &Link{taps: taps}
	for i, o := range options {
		d, err := newDirection(taps[i].fd, taps[1-i].fd, o)
		if err != nil {
			l.free()
			return nil, err
		}
		l.dirs[i] = d
	}
	l.dirs[0].other, l.dirs[1].other = l.dirs[1], l.dirs[0]
	begin(len(l.dirs))
	for _, d := range l.dirs {
		l.done.Go(d.carry)
	}
	return l, nil
}

// ringSize returns the memory for what the queue, the wire and sleeping ends hold, and a quarter more.
func ringSize(s *link.Spec) int {
	rate := s.Slowest()
	if rate == 0 {
		rate = assumedRate
	}
	held := (s.Delay + 3*s.Jitter.Amount).Seconds()
	if s.Slowest() > 0 { // otherwise the amount that arrives while an end sleeps is unknown
		if s.Active != nil {
			held += s.Active.Off.Seconds()
		}
		if s.Suspension != nil {
			held += s.Suspension.Time.Seconds()
		}
	}
	switch q := s.Queue; {
	case s.Slowest() == 0:
	case q.Time > 0:
		held += q.Time.Seconds()
	case q == link.Amount{}:
		held += link.DefaultQueue.Seconds()
	}
	queue := float64(s.Queue.Bytes) + float64(s.Queue.Segments)*link.LargestFrame
	return int(min(1.25*(held*float64(rate)/8+queue)+spareRing, maxRing))
}

// Change gives a direction other properties from now on.
func (l *Link) Change(direction int, spec link.Spec) {
	d := l.dirs[direction]
	d.change.Store(&spec)
	d.wake()
}

// Stats returns the counters of both directions, at most some ms old while frames arrive; after Close,
// the last ones.
func (l *Link) Stats() [2]Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return l.last
	}
	return l.stats()
}

func (l *Link) stats() (s [2]Stats) {
	for i, d := range l.dirs {
		d.mu.Lock()
		s[i] = d.published
		d.mu.Unlock()
		s[i].Missed = l.taps[i].missed()
	}
	return s
}

// Close stops the threads and removes both devices; frames in flight are lost. The error is that of a
// release log. A second Close does nothing.
func (l *Link) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	for _, d := range l.dirs {
		d.closing.Store(true)
		d.wake()
	}
	l.done.Wait()
	end(len(l.dirs))
	l.closed, l.last = true, l.stats()
	return l.free()
}

// free closes everything, after all threads have ended.
func (l *Link) free() error {
	var errs []error
	for _, d := range l.dirs {
		if d == nil {
			continue
		}
		if d.trace != nil {
			errs = append(errs, d.trace.close())
		}
		d.ring.close()
		unix.Close(d.bell)
	}
	for _, t := range l.taps {
		t.Close()
	}
	return errors.Join(errs...)
}
