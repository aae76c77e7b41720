package awake

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// spin starts a spinner on each processor that this process may use.
func spin() (stop func(), err error) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, err
	}
	end, done := make(chan struct{}), make(chan struct{})
	started := make(chan error)
	go func() {
		// Pdeathsig is sent when the thread that created the child ends, so the thread must stay.
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
			s, err := spinner(cpu)
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
	if err := <-started; err != nil {
		<-done
		return nil, err
	}
	return func() { close(end); <-done }, nil
}

// lowestWeight is the nice value of a spinner's autogroup.
const lowestWeight = "19"

// spinner starts one spinner and sets its scheduling from outside: every machine has a shell, but
// not chrt.
func spinner(cpu int) (*exec.Cmd, error) {
	s := exec.Command("/bin/sh", "-c", "while :; do :; done # headgate keeps processor $0 awake", fmt.Sprint(cpu))
	s.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
	if err := s.Start(); err != nil {
		return nil, err
	}
	idle := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}
	if err := unix.SchedSetAttr(s.Process.Pid, &idle, 0); err != nil {
		return s, err
	}
	if err := setLowestWeight(s.Process.Pid); err != nil {
		return s, err
	}
	var one unix.CPUSet
	one.Set(cpu)
	return s, unix.SchedSetaffinity(s.Process.Pid, &one)
}

// setLowestWeight gives the lowest weight to a process's autogroup. It does nothing if the kernel has no
// autogroups.
func setLowestWeight(pid int) error {
	for {
		err := os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte(lowestWeight), 0)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return nil
		case !errors.Is(err, unix.EAGAIN):
			return err
		}
		// Users other than root may do this ten times per second in total (kernel/sched/autogroup.c).
		time.Sleep(100 * time.Millisecond)
	}
}
