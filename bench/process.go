package bench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ProcessTime returns the processor time in seconds of a process, including its threads that have exited; 0 if there is
// no such process.
func ProcessTime(pid int) (seconds float64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // from field 3, state
	if len(fields) < 13 {
		return 0
	}
	for _, field := range fields[11:13] { // utime, stime
		n, _ := strconv.ParseFloat(field, 64)
		seconds += n / ticksPerSecond
	}
	return seconds
}

// UseProcessors makes a process use n processors only, the last ones. A Go program takes them for those of the machine after some seconds.
func UseProcessors(pid, n int) error {
	var some unix.CPUSet
	for i := range n {
		some.Set(runtime.NumCPU() - 1 - i)
	}
	for range 2 { // a thread may have started another one meanwhile
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return err
		}
		for _, t := range tasks {
			id, err := strconv.Atoi(t.Name())
			if err != nil {
				return err
			}
			if err := unix.SchedSetaffinity(id, &some); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("cannot set the processors of thread %d: %w", id, err)
			}
		}
	}
	return nil
}
