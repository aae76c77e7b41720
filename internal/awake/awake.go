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
// For each processor there is one process that does nothing at SCHED_IDLE: whatever
// else wants to run takes its place at once (sched(7)). It is a process of its own
// because a thread of ours that is hardly ever run would hold up Go's garbage
// collector. It ends with this process, however that ends.
//
// A machine that is not virtual is left alone: there a halted processor wakes up
// within microseconds.
package awake

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

var (
	mu    sync.Mutex
	users int
	end   chan struct{} // closed to end the spinners
	done  chan struct{} // closed when they have ended
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
		if err := begin(); err != nil {
			return nil, fmt.Errorf("keep the processors awake: %w", err)
		}
	}
	users++
	return sync.OnceFunc(release), nil
}

func release() {
	mu.Lock()
	defer mu.Unlock()
	if users--; users == 0 {
		close(end)
		<-done
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

// begin starts a spinner on each processor that we may use.
func begin() error {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return err
	}
	end, done = make(chan struct{}), make(chan struct{})
	started := make(chan error)
	go func() {
		// Pdeathsig is sent when the thread ends that made the child, so it must last.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(done)
		var spinners []*exec.Cmd
		defer func() {
			for _, s := range spinners {
				s.Process.Kill()
				s.Wait()
			}
		}()
		var errs []error
		for cpu := range len(all) * 64 {
			if !all.IsSet(cpu) {
				continue
			}
			s, err := spin(cpu)
			if s != nil {
				spinners = append(spinners, s)
			}
			errs = append(errs, err)
		}
		err := errors.Join(errs...)
		started <- err
		if err == nil {
			<-end
		}
	}()
	err := <-started
	if err != nil {
		<-done
	}
	return err
}

// spin starts one. What it is given, it is given from outside: a shell is on every
// machine, and chrt is not.
func spin(cpu int) (*exec.Cmd, error) {
	s := exec.Command("/bin/sh", "-c", "while :; do :; done # headgate keeps processor $0 awake", fmt.Sprint(cpu))
	s.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := s.Start(); err != nil {
		return nil, err
	}
	idle := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}
	if err := unix.SchedSetAttr(s.Process.Pid, &idle, 0); err != nil {
		return s, err
	}
	var one unix.CPUSet
	one.Set(cpu)
	return s, unix.SchedSetaffinity(s.Process.Pid, &one)
}
