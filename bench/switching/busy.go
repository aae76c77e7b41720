package switching

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is USER_HZ, which is 100 on every architecture that Go runs on.
const ticksPerSecond = 100

// busy is the processor time that was not idle until now, of all processors, in
// seconds: programs, the kernel, and its interrupts. What a hypervisor kept back is
// not in it.
func busy() (float64, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return busyOf(line)
}

// busyOf reads the line "cpu user nice system idle iowait irq softirq steal ...".
func busyOf(line string) (sum float64, err error) {
	f := strings.Fields(line)
	if len(f) < 8 || f[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat begins with %q, which is not the processors' time", line)
	}
	for _, i := range []int{1, 2, 3, 6, 7} {
		v, err := strconv.ParseFloat(f[i], 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/stat: %w", err)
		}
		sum += v / ticksPerSecond
	}
	return sum, nil
}

// busyEach is how busy the processors are in each of n seconds, in percent of one.
func busyEach(ctx context.Context, n int) (percent []float64, err error) {
	last, err := busy()
	if err != nil {
		return nil, err
	}
	at := time.Now()
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for range n {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-every.C:
		}
		now, err := busy()
		if err != nil {
			return nil, err
		}
		percent = append(percent, 100*(now-last)/time.Since(at).Seconds())
		last, at = now, time.Now()
	}
	return percent, nil
}

// used is the processor time of one process until now, in seconds.
func used(pid int) float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	// The name is in parentheses and may hold anything; then field 3, the state.
	_, rest, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(f[11], 64)
	system, _ := strconv.ParseFloat(f[12], 64)
	return (user + system) / ticksPerSecond
}
