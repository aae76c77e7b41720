package bench

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// stallWatch finds the longest time for which none of our threads ran on any processor, and for
// which an ordinary one waited. One on each wakes up every few milliseconds; a single processor may
// well be held by one long call of the kernel (a batch of 8,000 tc requests takes a second), and
// that is what is measured. It is the machine that stood still, or Go: a thread that comes back from
// the kernel waits for its turn among what else the bench computes (0.6 s with 2,000 agents in it,
// while another program's threads were never 20 ms late).
type stallWatch struct {
	stop    chan struct{}
	all     sync.WaitGroup
	began   time.Time
	last    atomic.Int64 // when any of the threads last woke up, after began
	longest atomic.Int64
	starved atomic.Int64
}

// stallEvery is how often they wake up: a quiet machine is not kept awake by it.
const stallEvery = 5 * time.Millisecond

// stallPriority is above that of the lab's link emulator (10). Below it, a thread of
// the emulator that helped the garbage collector waited, spinning, for this one to
// let its stack be scanned, on the very processor that this one is tied to: a link
// stood still for 5 to 10 s in two of three runs of 45 s.
const stallPriority = 20

func watchStalls() *stallWatch {
	w := &stallWatch{stop: make(chan struct{}), began: time.Now()}
	for cpu := range runtime.NumCPU() {
		w.all.Go(func() { w.watch(cpu) })
	}
	w.all.Go(w.wait)
	return w
}

// end ends the watch, and says what it found.
func (w *stallWatch) end() (stall, starved time.Duration) {
	close(w.stop)
	w.all.Wait()
	return max(0, time.Duration(w.longest.Load())-stallEvery), time.Duration(w.starved.Load())
}

// wait is an ordinary thread's: real-time threads, those of emulated links, come before it.
func (w *stallWatch) wait() {
	const every = 50 * time.Millisecond
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for before := time.Now(); ; {
		select {
		case <-w.stop:
			return
		default:
		}
		pause := unix.NsecToTimespec(every.Nanoseconds())
		_ = unix.Nanosleep(&pause, nil)
		now := time.Now()
		w.starved.Store(max(w.starved.Load(), int64(now.Sub(before)-every)))
		before = now
	}
}

func (w *stallWatch) watch(cpu int) {
	// The thread goes away with its priority and place when the goroutine ends.
	runtime.LockOSThread()
	var at unix.CPUSet
	at.Set(cpu)
	_ = unix.SchedSetaffinity(0, &at)
	// Before all other programs, so that late is the machine and not its load.
	// Where that is not allowed load may count as a stall, and is one to a bench.
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: stallPriority}, 0)
	for {
		select {
		case <-w.stop:
			return
		default:
		}
		pause := unix.NsecToTimespec(stallEvery.Nanoseconds())
		_ = unix.Nanosleep(&pause, nil)
		now := int64(time.Since(w.began))
		gap := now - w.last.Swap(now)
		for have := w.longest.Load(); gap > have && !w.longest.CompareAndSwap(have, gap); {
			have = w.longest.Load()
		}
	}
}
