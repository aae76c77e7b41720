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
	// Link is what the direction does to what it carries.
	Link link.Spec
	// Exact writes every segment by itself and at its own time, at the cost of a
	// processor: the last 50 us before it are spent waiting awake.
	Exact bool
	// Seed of all that is random.
	Seed uint64
	// LateBound is the lateness from which a write is counted; 0 is
	// DefaultLateBound.
	LateBound time.Duration
	// Trace, if not nil, gets the release log. What is still on its way at Close is
	// not in it.
	Trace io.Writer
}

// Constants, ours.
const (
	// Together is how far apart the segments of a super-packet may be released and
	// still leave together, and how often a busy direction wakes up. At 200 Mbit/s it
	// makes 5 frames of one write, and costs half of it in mean delay.
	Together = 250 * time.Microsecond
	// TogetherFast is that of a direction through which more than 500 Mbit/s pass: a
	// whole super-packet at 1 Gbit/s takes 545 us.
	TogetherFast = 550 * time.Microsecond
	// DefaultLateBound is the 1 ms that a ping's p99 may be off, and about twice
	// TogetherFast.
	DefaultLateBound = time.Millisecond
	// VeryLate is in LateBounds: 200 ms at the default, from which on TCP sends again
	// what only waited (TCP_RTO_MIN, include/net/tcp.h).
	VeryLate = 200
	// assumedRate bounds a direction's memory that has no rate: what one core carries.
	assumedRate = 10 * unit.Gbit
)

// Link joins two TAP devices.
type Link struct {
	taps [2]*Tap
	dirs [2]*direction
	done sync.WaitGroup

	mu     sync.Mutex // of what follows
	closed bool
	last   [2]Stats // of a closed link
}

// Start carries frames between the taps: options[0] is from taps[0] to taps[1].
// The link owns the taps from now on. Each direction takes an OS thread, which
// runs in real time (SCHED_FIFO) where that is allowed, and a P of the Go
// scheduler, so that it does not wait for the program's other goroutines.
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

// ringSize is memory for what the queue, the wire and ends that sleep hold, and a
// quarter more.
func ringSize(s *link.Spec) int {
	rate := s.Slowest()
	if rate == 0 {
		rate = assumedRate
	}
	held := (s.Delay + 3*s.Jitter.Amount).Seconds()
	if s.Slowest() > 0 { // else nobody knows how much comes while an end sleeps
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

// Stats are the counts of both directions, some ms old at most while frames come;
// after Close, the last ones.
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

// Close stops the threads and removes both devices; frames that are held are lost.
// The error is that of a release log. A second Close does nothing.
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

// free closes everything, once no thread runs.
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
