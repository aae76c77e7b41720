package train

import (
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"headgate/internal/realtime"
)

// priority among SCHED_FIFO threads: below those of the lab's emulator (10), whose
// links would otherwise be late because a packet is due. What a sender misses is in
// the sample.
const priority = 5

// spinning runs f, which spins, on a thread of its own that is pinned to its processor
// and, where that is allowed, SCHED_FIFO. The garbage collector waits for it.
func spinning(f func()) {
	rested()
	begun := nanotime()
	defer func() { tired(nanotime() - begun) }()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var allowed, here unix.CPUSet
	if cpu, err := currentCPU(); err == nil && unix.SchedGetaffinity(0, &allowed) == nil {
		here.Set(cpu)
		if unix.SchedSetaffinity(0, &here) == nil {
			defer unix.SchedSetaffinity(0, &allowed)
		}
	}
	defer realtime.Thread(priority)()
	realtime.Hold()
	defer realtime.Release()
	f()
}

func currentCPU() (int, error) {
	var cpu uint32
	if _, _, e := unix.RawSyscall(unix.SYS_GETCPU, uintptrOf(&cpu), 0, 0); e != 0 {
		return 0, e
	}
	return int(cpu), nil
}

func nanotime() int64 { return realtime.Now() }

// Of a pause all but the last alert is slept through, nap by nap. Alert is what a
// sleep may be late by. It is also why packets that are further apart than that do
// not need all of a processor: Linux takes it away from a SCHED_FIFO thread for 50 ms
// once it had it for 950 (sched_rt_runtime_us), which was seen.
const (
	alert = int64(50 * time.Microsecond)
	nap   = int64(50 * time.Millisecond)
)

// until waits for a time, and gives the one at which it stopped: earlier if done is.
func until(at int64, done <-chan struct{}) int64 {
	now := nanotime()
	for at-now > alert {
		realtime.Sleep(min(at-alert, now+nap))
		select {
		case <-done:
			return nanotime()
		default:
		}
		now = nanotime()
	}
	for now < at {
		now = nanotime()
	}
	return now
}

// What an ordinary thread of anybody's holds while a SCHED_FIFO one has its processor,
// others wait for, on all processors: Go's scheduler did, and an emulated link stood
// still until a train of 318 ms was over, one time in ten. So a long train lets others
// have its processor for a breath, every stride; hardly any is longer than unbroken.
const (
	unbroken = int64(20 * time.Millisecond)
	stride   = int64(2 * time.Millisecond)
	breath   = int64(100 * time.Microsecond)
)

// breather tells when a train has to let others have the processor.
type breather struct {
	now  int64 // when it last did, or began
	long bool
}

// due tells it for a train whose packets leave every gap, in ns: those that are
// far apart leave time between them.
func (b *breather) due(now int64, gap float64) bool {
	if gap > float64(alert) {
		return false
	}
	b.long = b.long || now-b.now > unbroken
	return b.long && now-b.now > stride
}

// Linux takes a processor from its SCHED_FIFO threads for 50 ms once they had it for 950
// of 1,000 (sched_rt_runtime_us), also in the middle of a train: long trains one after
// the other met that. So this process's have rests between them: half of the time at
// the most, but for what fits into mostAwake.
const mostAwake = int64(400 * time.Millisecond)

var awakeFor struct {
	sync.Mutex
	ns, last int64
}

// rested waits until a train may spin again.
func rested() {
	a := &awakeFor
	a.Lock()
	defer a.Unlock()
	now := nanotime()
	a.ns, a.last = max(a.ns-(now-a.last), 0), now
	if over := a.ns - mostAwake; over > 0 {
		time.Sleep(time.Duration(over))
	}
}

// tired notes for how long one has.
func tired(ns int64) {
	awakeFor.Lock()
	defer awakeFor.Unlock()
	awakeFor.ns += ns
}
