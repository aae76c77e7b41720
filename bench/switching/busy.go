package switching

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/bench"
)

// clock counts the processor time of programs, by the scheduler's own counters in ns. The machine's
// ticks (/proc/stat) would include other programs.
type clock struct {
	mu   sync.Mutex
	seen map[int]time.Duration // the maximum of each, because programs that have exited have no counters
	base time.Duration         // time before zero
}

// watch adds programs, which count from their start.
func (c *clock) watch(pids ...int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[int]time.Duration{}
	}
	for _, pid := range pids {
		c.seen[pid] += 0
	}
}

// zero makes all of them count from now.
func (c *clock) zero() {
	c.base = 0
	c.base = c.total()
}

// total returns what they have used since zero.
func (c *clock) total() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := -c.base
	for pid := range c.seen {
		c.seen[pid] = max(c.seen[pid], bench.Ran(pid))
		sum += c.seen[pid]
	}
	return sum
}

// glances is how often in a second clocks are read: a program that exits between two readings loses
// its time since the last.
const glances = 50

// each returns the time used in each of n seconds, in percent of one processor.
func (c *clock) each(ctx context.Context, n int) (percent []float64, err error) {
	began, last, at := time.Now(), c.total(), time.Now()
	every := time.NewTicker(time.Second / glances)
	defer every.Stop()
	for len(percent) < n {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-every.C:
		}
		now := c.total()
		if time.Since(began) < time.Duration(len(percent)+1)*time.Second {
			continue
		}
		percent = append(percent, 100*(now-last).Seconds()/time.Since(at).Seconds())
		last, at = now, time.Now()
	}
	return percent, nil
}

// softirqThreads returns the kernel's threads that forward packets under load, one on each processor.
func softirqThreads() (pids []int, err error) {
	names, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, path := range names {
		if text, err := os.ReadFile(path); err == nil && strings.HasPrefix(string(text), "ksoftirqd/") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	if len(pids) == 0 || bench.Ran(os.Getpid()) == 0 {
		return nil, fmt.Errorf("cannot read the processor time of ksoftirqd and programs from /proc (%d threads of ksoftirqd; /proc/PID/task/TID/schedstat): it needs that of the initial process namespace, and a kernel with CONFIG_SCHED_INFO", len(pids))
	}
	return pids, nil
}
