package bench

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// stallWatch wakes up every few milliseconds and keeps the longest time that it was
// late.
type stallWatch struct {
	stop   chan struct{}
	lateBy chan time.Duration
}

// stallEvery is how often: a quiet machine is not kept awake by it.
const stallEvery = 5 * time.Millisecond

func watchStalls() *stallWatch {
	w := &stallWatch{make(chan struct{}), make(chan time.Duration)}
	go w.run()
	return w
}

// longest ends the watch, and says what it found.
func (w *stallWatch) longest() time.Duration {
	close(w.stop)
	return <-w.lateBy
}

func (w *stallWatch) run() {
	// The thread goes away with its priority when the goroutine ends.
	runtime.LockOSThread()
	// Before all other programs, so that late is the machine and not its load.
	// Where that is not allowed load may count as a stall, and is one to a bench.
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0)
	var longest time.Duration
	for last := time.Now(); ; {
		select {
		case <-w.stop:
			w.lateBy <- longest
			return
		default:
		}
		pause := unix.NsecToTimespec(stallEvery.Nanoseconds())
		_ = unix.Nanosleep(&pause, nil)
		now := time.Now()
		longest = max(longest, now.Sub(last)-stallEvery)
		last = now
	}
}
