package bench

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// stallWatch finds the longest time for which none of its threads ran on any processor, and for which
// an ordinary one waited. One thread on each processor wakes up every few milliseconds. A single
// processor may be used by one long system call (a batch of 8,000 tc requests takes a second), which
// may be what is measured. A stall of all is one of the machine, or of Go: a thread that returns from
// the kernel waits for a P (0.6 s with 2,000 agents in the process, while threads of another program
// were never late by 20 ms).
type stallWatch struct {
	stop    chan struct{}
	all     sync.WaitGroup
	began   time.Time
	last    atomic.Int64 // last wake-up of any of the threads, after began
	longest atomic.Int64
	starved atomic.Int64
}

// stallEvery is the wake-up interval; it does not keep an idle machine awake.
const stallEvery = 5 * time.Millisecond

// stallPriority is above that of the lab's link emulator (10). With a lower priority, an emulator
// thread that helped the garbage collector was spinning on this thread's processor, while it waited
// for this thread's stack to be scanned: a link stalled for 5 to 10 s in two of three runs of 45 s.
const stallPriority = 20

func watchStalls() *stallWatch {
	w := &stallWatch{stop: make(chan struct{}), began: time.Now()}
	for cpu := range runtime.NumCPU() {
		w.all.Go(func() { w.watch(cpu) })
	}
	w.all.Go(w.wait)
	return w
}

// end stops the watch, and returns the longest times.
func (w *stallWatch) end() (stall, starved time.Duration) {
	close(w.stop)
	w.all.Wait()
	return max(0, time.Duration(w.longest.Load())-stallEvery), time.Duration(w.starved.Load())
}

// wait runs an ordinary thread; real-time threads, such as those of emulated links, take precedence
// over it.
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
	// The thread ends with the goroutine, and with it its priority and affinity.
	runtime.LockOSThread()
	var at unix.CPUSet
	at.Set(cpu)
	_ = unix.SchedSetaffinity(0, &at)
	// With a priority above all other programs, a late wake-up is a stall of the machine, not its
	// load. Without permission for that, load may count as a stall, which disturbs a benchmark as
	// well.
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
