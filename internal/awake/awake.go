// Package awake prevents the processors of a virtual machine from halting during a measurement.
//
// An idle virtual processor halts, and its hypervisor gives the physical one to other machines.
// When a timer expires or a packet arrives, the hypervisor must first schedule the virtual
// processor again, which takes milliseconds on a busy host, and is counted as stolen time although
// nothing was computed. Measured on such a machine (2 processors, Firecracker): pings over an idle
// emulated link were 19 to 53 ms late at p99, 200 Mbit/s of TCP had 42 ms, and 80 % of a processor
// counted as stolen; with both processors kept awake it was 0.1 to 1.5 ms, 6.9 ms and 1 %.
//
// If the kernel chooses idle states (a cpuidle driver: haltpoll on most virtual machines), the
// package requests a wake-up latency of 0 (Documentation/power/pm_qos_interface.rst), so that the
// idle task polls. The request ends when the file is closed, and so with this process, however it
// ends.
//
// Otherwise the package starts one process per processor that loops at SCHED_IDLE, in a session of
// its own, whose autogroup has the lowest weight (sched(7)). SCHED_IDLE is relative to the
// autogroup only: with a higher weight the loop competed with kernel threads as their equal, and a
// write to the disk sometimes took 200 ms to 3 s (decision 13). The loop is a process because a
// thread of this process that is rarely scheduled would delay Go's garbage collector.
//
// On a physical machine the package does nothing: there a halted processor wakes up within
// microseconds.
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
	end   func() // lets the processors halt again
)

// Start prevents the processors from halting until stop has been called for each call of Keep. On a
// physical machine it does nothing.
func Start() (stop func(), err error) {
	mu.Lock()
	defer mu.Unlock()
	if !Virtual() {
		return func() {}, nil
	}
	if users == 0 {
		var err error
		if end, err = poll(); err != nil {
			if end, err = spin(); err != nil {
				return nil, fmt.Errorf("cannot keep the processors awake: %w", err)
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

// Virtual reports whether the kernel runs under a hypervisor.
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
