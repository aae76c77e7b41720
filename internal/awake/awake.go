// Package awake keeps the processors of a virtual machine from halting, for as long
// as something is measured.
//
// A virtual processor that has nothing to do halts, and its hypervisor gives the
// real one to others. When a timer or a packet is due it must first get one back,
// which takes milliseconds on a busy host, and is counted as stolen time although
// nobody wanted to compute. Measured on such a machine (2 processors, Firecracker):
// pings over an idle emulated link were 19 to 53 ms late at p99, 200 Mbit/s of TCP
// had 42 ms, and 80 % of a processor counted as stolen; with both processors kept
// awake it was 0.1 to 1.5 ms, 6.9 ms and 1 %.
//
// Where the kernel chooses how deep a processor sleeps (a cpuidle driver: haltpoll on most
// virtual machines) it is told that nobody may wait for one to wake up
// (Documentation/power/pm_qos_interface.rst): the idle task polls. That ends as the file is
// closed, so with this process, however it ends.
//
// Elsewhere there is one process for each processor that does nothing at SCHED_IDLE, in a
// session of its own, whose group has least weight (sched(7), autogroups). With the weight of
// any other it was run beside threads of the kernel as their equal, for SCHED_IDLE counts
// within its group alone: a write to the disk took 200 ms to 3 s now and then (decision 13). It
// is a process because a thread of ours that is hardly ever run would hold up Go's garbage
// collector.
//
// A machine that is not virtual is left alone: there a halted processor wakes up
// within microseconds.
package awake

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

var (
	mu    sync.Mutex
	users int
	end   func() // lets them halt again
)

// Keep keeps the processors awake until stop is called as often as Keep. On a
// machine that is not virtual it does nothing.
func Keep() (stop func(), err error) {
	mu.Lock()
	defer mu.Unlock()
	if !Virtual() {
		return func() {}, nil
	}
	if users == 0 {
		var err error
		if end, err = poll(); err != nil {
			if end, err = spin(); err != nil {
				return nil, fmt.Errorf("keep the processors awake: %w", err)
			}
		}
	}
	users++
	return sync.OnceFunc(release), nil
}

func release() {
	mu.Lock()
	defer mu.Unlock()
	if users--; users == 0 {
		end()
	}
}

// Virtual tells whether this kernel runs under a hypervisor.
func Virtual() bool {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if name, flags, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "flags" {
			return strings.Contains(flags+" ", " hypervisor ")
		}
	}
	return false
}
