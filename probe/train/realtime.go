package train

import (
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/realtime"
)

// priority is the SCHED_FIFO priority of a sending thread. It is below that of the lab's
// link emulator (10), whose links would otherwise be late whenever a packet is due. The
// sample records the delays of the sender.
const priority = 5

// runRealtime runs f, which spins, on a thread of its own that is pinned to its processor
// and is SCHED_FIFO where that is permitted. The garbage collector is off meanwhile.
func runRealtime(f func()) {
	awaitSpinBudget()
	begun := nanotime()
	defer func() { chargeSpinBudget(nanotime() - begun) }()
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
	realtime.DisablePreemption()
	defer realtime.EnablePreemption()
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

// A wait sleeps in steps of at most maxSleep, until spinWindow before its end, and spins
// after that. spinWindow is the maximum lateness of a sleep. Packets that are further apart
// than spinWindow therefore do not use a whole processor. That matters because Linux
// throttles a SCHED_FIFO thread for 50 ms after it has run for 950 ms (sched_rt_runtime_us);
// this was observed.
const (
	spinWindow = int64(50 * time.Microsecond)
	maxSleep   = int64(50 * time.Millisecond)
)

// waitUntil waits until at or until done is closed, and returns the time of its return.
func waitUntil(at int64, done <-chan struct{}) int64 {
	now := nanotime()
	for at-now > spinWindow {
		realtime.Sleep(min(at-spinWindow, now+maxSleep))
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

// While a SCHED_FIFO thread has a processor, an ordinary thread that was preempted there
// may hold a lock that threads on other processors wait for. Go's scheduler held one: in
// one of ten runs an emulated link stalled until a train of 318 ms had ended. A train
// longer than yieldAfter therefore yields the processor for yieldDuration, every
// yieldInterval. Few trains are longer than yieldAfter.
const (
	yieldAfter    = int64(20 * time.Millisecond)
	yieldInterval = int64(2 * time.Millisecond)
	yieldDuration = int64(100 * time.Microsecond)
)

// yielder decides when a train yields the processor.
type yielder struct {
	now  int64 // time of the last yield, or of the start
	long bool
}

// due reports whether a train with gap ns between its packets must yield now. A train
// whose packets are far apart leaves the processor idle anyway.
func (b *yielder) due(now int64, gap float64) bool {
	if gap > float64(spinWindow) {
		return false
	}
	b.long = b.long || now-b.now > yieldAfter
	return b.long && now-b.now > yieldInterval
}

// maxSpin is the spinning time that is allowed without a rest. Linux throttles the
// SCHED_FIFO threads of a processor for 50 ms after they have run for 950 of 1,000 ms
// (sched_rt_runtime_us), also in the middle of a train, and consecutive long trains met
// that. The threads of this process therefore rest between trains: beyond maxSpin they
// spin for at most half of the time.
const maxSpin = int64(400 * time.Millisecond)

var spinBudget struct {
	sync.Mutex
	ns, last int64
}

// awaitSpinBudget waits until another train may spin.
func awaitSpinBudget() {
	a := &spinBudget
	a.Lock()
	defer a.Unlock()
	now := nanotime()
	a.ns, a.last = max(a.ns-(now-a.last), 0), now
	if over := a.ns - maxSpin; over > 0 {
		time.Sleep(time.Duration(over))
	}
}

// chargeSpinBudget adds the time for which a train has spun.
func chargeSpinBudget(ns int64) {
	spinBudget.Lock()
	defer spinBudget.Unlock()
	spinBudget.ns += ns
}
